"""Brokers that do as they are told: they speak the wire, know a few topics, and misbehave on request.

A `FakeCluster` keeps topics with their leaders and logs; its brokers answer from it. What a broker answers to
an API next can be scripted: another reply, none, half of one, a wrong one, or a closed connection.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from headrace.client.cluster import Cluster
from headrace.client.config import ClientConfig
from headrace.errors import ErrorCode
from headrace.protocol.api_table import ApiKey
from headrace.protocol.apis import APIS
from headrace.protocol.frame import decode_request, decode_request_header, encode_response
from headrace.protocol.message import Message
from headrace.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from headrace.protocol.messages.headers import RequestHeader
from headrace.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.support_client_log import FakePartition, answer_epochs, answer_fetch, answer_offsets

HOST = "127.0.0.1"
CLUSTER_ID = "ZmFrZS1jbHVzdGVyLWlkMQ"
PATIENCE_SECONDS = 60
#: As little waiting as possible, but no fewer attempts.
QUICK = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 5,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
    "fetch_max_wait_ms": 20,
    "topic_wait_ms": 50,
    "default_api_timeout_ms": 20_000,
}
SERVED = (
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.API_VERSIONS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.CREATE_TOPICS,
    ApiKey.OFFSET_FETCH,
    ApiKey.PRODUCE,
)


Action = Callable[["Exchange"], Awaitable[None]]


@dataclass(slots=True)
class Exchange:
    """One request, and the connection that it came by."""

    broker: "FakeBroker"
    header: RequestHeader
    frame: bytes
    writer: asyncio.StreamWriter
    usual: bytes

    @property
    def request(self) -> Any:
        return decode_request(self.frame)[1]

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def encoded(self, message: Message) -> bytes:
        version = self.header.request_api_version
        return encode_response(message, version, self.header.correlation_id)


async def hang_up(exchange: Exchange) -> None:
    """Close the connection instead of answering."""
    exchange.writer.close()


async def half_a_reply(exchange: Exchange) -> None:
    """Send the first half of the reply and close the connection."""
    exchange.send(exchange.usual[: len(exchange.usual) // 2])
    await exchange.writer.drain()
    exchange.writer.close()


async def silence(exchange: Exchange) -> None:
    """Never answer."""


async def wrong_id(exchange: Exchange) -> None:
    """Answer a request that was not made."""
    exchange.send(exchange.usual[:4] + (999_999).to_bytes(4, "big") + exchange.usual[8:])


async def in_crumbs(exchange: Exchange) -> None:
    """Send the reply byte by byte."""
    for index in range(len(exchange.usual)):
        exchange.send(exchange.usual[index : index + 1])
        await exchange.writer.drain()
        await asyncio.sleep(0)


def raw(data: bytes) -> Action:
    """Send these bytes, whatever they mean."""

    async def act(exchange: Exchange) -> None:
        exchange.send(data)

    return act


def saying(message: Message) -> Action:
    """Answer with this."""

    async def act(exchange: Exchange) -> None:
        exchange.send(exchange.encoded(message))

    return act


def when(event: asyncio.Event) -> Action:
    """Answer as usual, but not before something has happened."""

    async def act(exchange: Exchange) -> None:
        await event.wait()
        exchange.send(exchange.usual)

    return act


@dataclass(slots=True)
class FakeTopic:
    """A topic of the fake cluster."""

    topic_id: UUID = field(default_factory=uuid4)
    partitions: dict[int, FakePartition] = field(default_factory=dict)
    error: int = 0


class FakeBroker:
    """One broker. `seen` are the requests it got, by API key."""

    def __init__(self, cluster: "FakeCluster", node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.port = 0
        self.rack: str | None = None
        self.is_listed = True
        self.connections = self.disconnections = 0
        self.versions: dict[int, tuple[int, int]] = {
            key: (APIS[key].version_min, APIS[key].stable_version_max) for key in SERVED
        }
        self.seen: dict[int, list[Message]] = defaultdict(list)
        self.headers: list[RequestHeader] = []
        self.sessions: dict[int, dict[Any, Any]] = {}
        self._scripts: dict[int, deque[Action]] = defaultdict(deque)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Condition()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def next(self, key: ApiKey, *actions: Action) -> None:
        """What to do with the next requests of an API, one action each."""
        self._scripts[key].extend(actions)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the listener and all connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.hang_up()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def hang_up(self) -> None:
        """Close all connections, as they are."""
        for writer in list(self._writers):
            writer.close()

    async def asked(self, key: ApiKey, count: int = 1) -> None:
        """Wait until so many requests of an API have come."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._changed:
            await self._changed.wait_for(lambda: len(self.seen[key]) >= count)

    async def left_by(self, count: int) -> None:
        """Wait until so many clients have gone."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._changed:
            await self._changed.wait_for(lambda: self.disconnections >= count)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self.connections += 1
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                await self._on_frame(await reader.readexactly(size), writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            # The streams' own callback takes a cancelled task for a failure.
            return
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()
            self.disconnections += 1
            async with self._changed:
                self._changed.notify_all()

    async def _on_frame(self, frame: bytes, writer: asyncio.StreamWriter) -> None:
        header, _ = decode_request_header(frame)
        key, version = header.request_api_key, header.request_api_version
        low, high = self.versions.get(key, (0, -1))
        self.headers.append(header)
        if not low <= version <= high and key == ApiKey.API_VERSIONS:
            await self._note(key, ApiVersionsResponse())
            writer.write(encode_response(self._refused_versions(), 0, header.correlation_id))
            return
        assert low <= version <= high, f"{ApiKey(key).name} v{version} was not offered"
        request = decode_request(frame)[1]
        answer = await self.cluster.answer(self, request)
        usual = b"" if answer is None else encode_response(answer, version, header.correlation_id)
        await self._note(key, request)
        exchange = Exchange(self, header, frame, writer, usual)
        if self._scripts[key]:
            await self._scripts[key].popleft()(exchange)
        elif usual:
            writer.write(usual)

    async def _note(self, key: int, request: Message) -> None:
        async with self._changed:
            self.seen[key].append(request)
            self._changed.notify_all()

    def _refused_versions(self) -> ApiVersionsResponse:
        low, high = self.versions[ApiKey.API_VERSIONS]
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=low, max_version=high)],
        )


class FakeCluster:
    """Brokers, topics and logs, all in this process."""

    def __init__(self, brokers: int = 1) -> None:
        self.brokers = {node_id: FakeBroker(self, node_id) for node_id in range(1, brokers + 1)}
        self.topics: dict[str, FakeTopic] = {}
        self.answers: dict[int, Callable[[FakeBroker, Any], Message | None]] = {}
        self.cluster_id = CLUSTER_ID

    @property
    def bootstrap(self) -> list[str]:
        return [broker.address for broker in self.brokers.values()]

    def broker(self, node_id: int = 1) -> FakeBroker:
        return self.brokers[node_id]

    def create(self, name: str, leaders: Iterable[int] = (1,), epoch: int = 0) -> FakeTopic:
        """A topic whose partitions are led by these brokers."""
        partitions = {index: FakePartition(leader, epoch) for index, leader in enumerate(leaders)}
        self.topics[name] = topic = FakeTopic(partitions=partitions)
        return topic

    def partition(self, name: str, index: int = 0) -> FakePartition:
        return self.topics[name].partitions[index]

    def config(self, **fields: Any) -> ClientConfig:
        return ClientConfig(**{"bootstrap_servers": self.bootstrap, **QUICK, **fields})

    async def answer(self, broker: FakeBroker, request: Message) -> Message | None:
        """What a broker in good health answers."""
        key = request.API_KEY
        if key in self.answers:
            return self.answers[key](broker, request)
        if key == ApiKey.API_VERSIONS:
            ranges = broker.versions.items()
            return ApiVersionsResponse(
                api_keys=[
                    ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in ranges
                ]
            )
        if key == ApiKey.METADATA:
            return self._metadata(request)  # type: ignore[arg-type]
        if key == ApiKey.LIST_OFFSETS:
            return answer_offsets(self.topics, broker.node_id, request)  # type: ignore[arg-type]
        if key == ApiKey.FETCH:
            return await answer_fetch(self.topics, broker, request)  # type: ignore[arg-type]
        if key == ApiKey.OFFSET_FOR_LEADER_EPOCH:
            return answer_epochs(self.topics, broker.node_id, request)  # type: ignore[arg-type]
        raise AssertionError(f"nobody said how to answer {type(request).__name__}")

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        names = (
            list(self.topics) if request.topics is None else [topic.name or "" for topic in request.topics]
        )
        listed = [broker for broker in self.brokers.values() if broker.is_listed]
        return MetadataResponse(
            cluster_id=self.cluster_id,
            controller_id=listed[0].node_id if listed else -1,
            brokers=[
                MetadataResponseBroker(node_id=each.node_id, host=HOST, port=each.port, rack=each.rack)
                for each in listed
            ],
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        topic = self.topics.get(name)
        if topic is None:
            return MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return MetadataResponseTopic(
            name=name,
            topic_id=topic.topic_id,
            error_code=topic.error,
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=each.leader,
                    leader_epoch=each.epoch,
                    replica_nodes=sorted(self.brokers),
                    isr_nodes=sorted(self.brokers),
                    error_code=0 if each.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                )
                for index, each in topic.partitions.items()
            ],
        )


@asynccontextmanager
async def fake_cluster(brokers: int = 1) -> AsyncIterator[FakeCluster]:
    """Running brokers with nothing in them."""
    cluster = FakeCluster(brokers)
    for broker in cluster.brokers.values():
        await broker.start()
    try:
        yield cluster
    finally:
        for broker in cluster.brokers.values():
            await broker.stop()


@asynccontextmanager
async def connected(fake: FakeCluster, **fields: Any) -> AsyncIterator[Cluster]:
    """A client of the fake cluster."""
    async with Cluster(fake.config(**fields)) as cluster:
        yield cluster


async def soon(waiting: Awaitable[Any]) -> Any:
    """Wait for what has to happen; a test that waits in vain fails."""
    return await asyncio.wait_for(waiting, PATIENCE_SECONDS)
