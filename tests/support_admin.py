"""What tests of the APIs share: a client's end of the dispatch, and the image of a small cluster."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast
from uuid import UUID

from headrace.api.dispatch import Dispatch
from headrace.api.services import Api, Services
from headrace.metadata.delta import MetadataDelta
from headrace.metadata.image import MetadataImage
from headrace.protocol.disk_records.cluster_metadata import (
    BrokerEndpoint,
    ConfigRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from headrace.protocol.fields import RecordData
from headrace.protocol.frame import decode_response, encode_request
from headrace.protocol.message import Message
from headrace.testing.clock import ManualClock
from tests.support_config import node

R = TypeVar("R", bound=Message)

SIZE_BYTES = 4


class FakeSlot:
    """The place of one reply."""

    def __init__(self, connection: "FakeConnection") -> None:
        self.connection = connection
        self.frame: bytes | None = None
        self.is_discarded = False
        self.on_close: Callable[[], object] | None = None

    @property
    def is_answered(self) -> bool:
        return self.frame is not None or self.is_discarded

    def complete(self, parts: Sequence[RecordData]) -> None:
        assert not self.is_answered
        self.is_discarded = not parts
        if parts:
            self.frame = b"".join(_bytes_of(part) for part in parts)


def _bytes_of(part: Any) -> bytes:
    """A piece of a reply, read from its file if that is where it is."""
    return bytes(part.read() if hasattr(part, "read") else part)


class FakeConnection:
    """A client that came in on a listener."""

    def __init__(self, listener: str = "PLAINTEXT") -> None:
        self.listener_name = listener
        self.peer = "/192.0.2.7"
        self.client_id: str | None = None
        self.software_name = self.software_version = "unknown"
        self.close_reason: str | None = None
        self.shortcut: Any = None
        self.slots: list[FakeSlot] = []

    def __str__(self) -> str:
        return f"192.0.2.7:4711 on {self.listener_name}"

    def reserve(self) -> FakeSlot:
        self.slots.append(FakeSlot(self))
        return self.slots[-1]

    def answer(self, reply: bytes) -> None:
        self.reserve().complete((reply,))

    def answer_parts(self, parts: Sequence[RecordData]) -> None:
        self.reserve().complete(parts)

    def hurry(self) -> None:
        """Nothing is sent here, neither sooner nor later."""

    flush_due = hurry

    def close(self, reason: str, level: int = 0) -> None:
        self.close_reason = reason
        for slot in self.slots:
            if slot.on_close is not None and not slot.is_answered:
                slot.on_close()

    close_when_sent = close


class Client:
    """Sends requests to a dispatch and reads its replies."""

    def __init__(self, services: Services | None, apis: Iterable[Api], listener: str = "PLAINTEXT") -> None:
        self.connection = FakeConnection(listener)
        self.dispatch = Dispatch(cast(Services, services), apis, time.perf_counter_ns)

    def send(
        self,
        request: Message,
        version: int,
        correlation_id: int = 1,
        client_id: str | None = "tester",
        trailing: bytes = b"",
    ) -> None:
        """One request; `trailing` bytes follow it within its frame."""
        frame = encode_request(request, version, correlation_id, client_id)[SIZE_BYTES:]
        self.send_frame(frame + trailing)

    def send_frame(self, frame: bytes) -> None:
        """Any bytes as one frame; they are overwritten afterwards, as a receive buffer's are."""
        buffer = bytearray(frame)
        self.dispatch.on_frame(cast(Any, self.connection), memoryview(buffer))
        buffer[:] = b"\xff" * len(buffer)

    def reply(self, kind: type[R], version: int, index: int = -1) -> tuple[int, R]:
        """A reply's correlation id and message."""
        frame = self.connection.slots[index].frame
        assert frame is not None, "not answered"
        assert int.from_bytes(frame[:SIZE_BYTES], "big") == len(frame) - SIZE_BYTES
        return decode_response(kind, version, frame[SIZE_BYTES:])


LISTENER = "PLAINTEXT"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
DIRECTORY = UUID(int=0xD1)


class FakeController:
    """Keeps what it is asked and answers what it was told to."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.answers: dict[str, Any] = {}
        self.kraft_version = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def answer(*arguments: Any) -> Any:
            self.asked.append((name, *arguments))
            given = self.answers[name]
            return given(*arguments) if callable(given) else given

        return answer


def image_of(*records: Message) -> MetadataImage:
    """What records add up to."""
    image = MetadataImage()
    for offset, record in enumerate(records):
        image.apply(record, MetadataDelta(), offset)
        image.offset = offset
    return image


def broker_record(broker_id: int = 1, **fields: Any) -> RegisterBrokerRecord:
    """A broker that is alive on the listener of the tests."""
    defaults: dict[str, Any] = {
        "broker_epoch": 10,
        "fenced": False,
        "log_dirs": [DIRECTORY],
        "end_points": [
            BrokerEndpoint(
                name=LISTENER, host=f"host-{broker_id}", port=9000 + broker_id, security_protocol=0
            )
        ],
    }
    return RegisterBrokerRecord(broker_id=broker_id, **(defaults | fields))


def topic_records(
    name: str, topic_id: int, replicas: Sequence[Sequence[int]] = ((1,),), **fields: Any
) -> list[Message]:
    """A topic with a partition for each list of replicas, all in sync and led by the first."""
    records: list[Message] = [TopicRecord(name=name, topic_id=UUID(int=topic_id))]
    for index, brokers in enumerate(replicas):
        defaults: dict[str, Any] = {
            "replicas": list(brokers),
            "isr": list(brokers),
            "leader": brokers[0],
            "leader_epoch": 3,
            "directories": [DIRECTORY] * len(brokers),
        }
        records.append(
            PartitionRecord(partition_id=index, topic_id=UUID(int=topic_id), **(defaults | fields))
        )
    return records


def config_record(kind: int, name: str, key: str, value: str) -> ConfigRecord:
    """A key that is set for a resource."""
    return ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def services_of(
    image: MetadataImage | None = None, texts: dict[str, str] | None = None
) -> tuple[Services, FakeController]:
    """Services with an image and a node's configuration, and the controller behind them."""
    controller = FakeController()
    services = Services(
        config=node(texts),
        clock=ManualClock(),
        image=image_of(broker_record()) if image is None else image,
        controller=cast(Any, controller),
        replicas=cast(Any, None),
        fetch_sessions=cast(Any, None),
        producer_ids=cast(Any, None),
        cluster_id=CLUSTER_ID,
    )
    return services, controller


def ask(
    services: Services, api: Api, request: Message, kind: type[R], version: int, listener: str = LISTENER
) -> R:
    """Send one request through the codec and the dispatch, and wait for its reply."""

    async def exchange() -> R:
        client = Client(services, [api], listener)
        client.send(request, version)
        assert client.connection.close_reason is None, client.connection.close_reason
        loop = asyncio.get_running_loop()
        while not client.connection.slots[-1].is_answered:
            turn = loop.create_future()
            loop.call_soon(turn.set_result, None)
            await turn
        await services.auto_topics.settled()
        return client.reply(kind, version)[1]

    return asyncio.run(exchange())


def spoken_versions(api: Api) -> range:
    """Every version of an API."""
    return range(api.versions[0], api.versions[1] + 1)
