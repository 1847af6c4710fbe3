"""What a request costs on its way through the dispatch, beside reading and writing it alone."""

import time
from collections.abc import Callable, Sequence
from typing import Any, cast
from uuid import UUID

from bench.harness import Row, alternate, spell_time
from headrace.api import k03_metadata
from headrace.api.context import RequestContext
from headrace.api.dispatch import Dispatch
from headrace.api.services import Api, Services
from headrace.metadata.delta import MetadataDelta
from headrace.metadata.image import MetadataImage
from headrace.protocol.codec import decode, encode_parts
from headrace.protocol.disk_records.cluster_metadata import (
    BrokerEndpoint,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from headrace.protocol.fields import RecordData
from headrace.protocol.frame import SIZE_BYTES, decode_request_header, encode_request
from headrace.protocol.message import Message
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.protocol.messages.metadata import MetadataRequest

#: What the way may cost beyond the codec.
DISPATCH_SECONDS_MAX = 5e-6
PARTITIONS = 1000


class _Slot:
    __slots__ = ("connection", "on_close", "parts")

    def __init__(self, connection: "_Connection") -> None:
        self.connection = connection
        self.on_close: Callable[[], None] | None = None
        self.parts: Sequence[RecordData] = ()

    def complete(self, parts: Sequence[RecordData]) -> None:
        self.parts = parts


class _Connection:
    """As little as a connection can be."""

    listener_name = "PLAINTEXT"
    peer = "/127.0.0.1"
    client_id: str | None = None
    shortcut = None

    def reserve(self) -> _Slot:
        return _Slot(self)


def run() -> list[Row]:
    return [_small_request(), _large_reply()]


def _small_request() -> Row:
    reply = InitProducerIdResponse(producer_id=7)
    api = Api(
        22,
        "InitProducerId",
        (0, 5),
        InitProducerIdRequest,
        InitProducerIdResponse,
        lambda services, context, request: reply,
    )
    request = InitProducerIdRequest(transactional_id=None)
    through, alone = _measure(cast(Services, None), api, request, 4, lambda services, decoded: reply)
    extra = through - alone
    return Row(
        "dispatch of a small request, beyond its codec",
        spell_time(extra),
        spell_time(DISPATCH_SECONDS_MAX),
        extra / DISPATCH_SECONDS_MAX,
        1.0,
        higher_is_better=False,
    )


def _large_reply() -> Row:
    services = _services()
    context = RequestContext(3, 12, "bench", "PLAINTEXT", "/127.0.0.1", cast(Any, _Connection()))
    request = MetadataRequest(topics=None)
    reply = k03_metadata.handle(services, context, request)
    through, alone = _measure(services, k03_metadata.API, request, 12, lambda services, decoded: reply)
    return Row(
        f"metadata of {PARTITIONS} partitions beside writing its reply",
        spell_time(through),
        spell_time(alone),
        through / alone,
        higher_is_better=False,
    )


def _measure(
    services: Services,
    api: Api,
    request: Message,
    version: int,
    answer: Callable[[Services, Message], Message],
) -> tuple[float, float]:
    """Seconds through the dispatch, and for the codec alone."""
    frame = memoryview(bytearray(encode_request(request, version, 1, "bench")[SIZE_BYTES:]))
    _, position = decode_request_header(frame)
    dispatch = Dispatch(services, [api], time.perf_counter_ns)
    connection = cast(Any, _Connection())

    def alone() -> None:
        encode_parts(answer(services, decode(api.request, version, frame, position)), version)

    through_seconds, alone_seconds = alternate(lambda: dispatch.on_frame(connection, frame), alone)
    return through_seconds, alone_seconds


def _services() -> Services:
    from headrace.config.server_properties import read_node_config
    from headrace.system.clock import SystemClock

    image = MetadataImage()
    endpoint = BrokerEndpoint(name="PLAINTEXT", host="localhost", port=9092, security_protocol=0)
    records: list[Message] = [RegisterBrokerRecord(broker_id=1, fenced=False, end_points=[endpoint])]
    records.append(TopicRecord(name="orders", topic_id=UUID(int=1)))
    records += [
        PartitionRecord(partition_id=index, topic_id=UUID(int=1), replicas=[1], isr=[1], leader=1)
        for index in range(PARTITIONS)
    ]
    for record in records:
        image.apply(record, MetadataDelta())
    config = read_node_config(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "localhost:9093",
        }
    )
    nothing = cast(Any, None)
    return Services(config, SystemClock(), image, nothing, nothing, nothing, nothing)
