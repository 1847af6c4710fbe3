"""One record there and back through a socket, to show that a node works: no more of a client than that."""

import asyncio
import struct
from time import perf_counter
from types import TracebackType
from typing import Final, NamedTuple, TypeVar

from headrace.errors import ErrorCode, HeadraceError
from headrace.protocol.apis import APIS
from headrace.protocol.frame import decode_response, encode_request
from headrace.protocol.message import Message
from headrace.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.records.batch import batches
from headrace.records.builder import NewRecord, build_batch
from headrace.records.reader import Record, read_records

M = TypeVar("M", bound=Message)

CLIENT_ID: Final = "headrace-demo"
TIMEOUT_MS: Final = 10_000
FETCH_BYTES: Final = 1_048_576
#: The last versions that name topics by name.
PRODUCE_VERSION: Final = 12
FETCH_VERSION: Final = 12
_ALL_REPLICAS: Final = -1


class DemoFailed(HeadraceError):
    """The node did not do what it should."""


class Shown(NamedTuple):
    """A record and how long its way took."""

    offset: int
    value: str
    seconds: float


class DemoClient:
    """A connection to a node that takes one request at a time."""

    __slots__ = ("_correlation_id", "_host", "_port", "_reader", "_writer")

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._correlation_id = 0

    async def __aenter__(self) -> "DemoClient":
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    async def create_topic(self, name: str) -> None:
        """Create a topic of one partition, unless it is there."""
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)],
            timeout_ms=TIMEOUT_MS,
        )
        reply = await self._ask(request, APIS[request.API_KEY].stable_version_max, CreateTopicsResponse)
        if reply.topics[0].error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
            _check(reply.topics[0].error_code, f"creating topic {name}")

    async def produce(self, topic: str, value: str, now_ms: int) -> Shown:
        """Append one record and wait until it is acknowledged."""
        begun = perf_counter()
        records = build_batch([NewRecord(now_ms, None, value.encode())])
        request = ProduceRequest(
            acks=_ALL_REPLICAS,
            timeout_ms=TIMEOUT_MS,
            topic_data=[
                TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
            ],
        )
        reply = await self._ask(request, PRODUCE_VERSION, ProduceResponse)
        result = reply.responses[0].partition_responses[0]
        _check(result.error_code, "producing")
        return Shown(result.base_offset, value, perf_counter() - begun)

    async def consume(self, topic: str, offset: int) -> Shown:
        """The record at an offset."""
        begun = perf_counter()
        request = FetchRequest(
            max_wait_ms=TIMEOUT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            topics=[
                FetchTopic(
                    topic=topic,
                    partitions=[
                        FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
                    ],
                )
            ],
        )
        reply = await self._ask(request, FETCH_VERSION, FetchResponse)
        _check(reply.error_code, "fetching")
        result = reply.responses[0].partitions[0]
        _check(result.error_code, "fetching")
        record = _record_at(bytes(result.records or b""), offset)  # type: ignore[arg-type]  # bytes, when decoded
        return Shown(record.offset, bytes(record.value or b"").decode(), perf_counter() - begun)

    async def _ask(self, request: Message, version: int, response: type[M]) -> M:
        self._correlation_id += 1
        self._writer.write(encode_request(request, version, self._correlation_id, CLIENT_ID))
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return decode_response(response, version, await self._reader.readexactly(size))[1]


def _check(code: int, doing: str) -> None:
    if code != ErrorCode.NONE:
        raise DemoFailed(f"{doing} failed with {ErrorCode(code).name}")


def _record_at(data: bytes, offset: int) -> Record:
    for batch in batches(data):
        for record in read_records(batch):
            if record.offset == offset:
                return record
    raise DemoFailed(f"the record at offset {offset} did not come")
