"""A bare client on a blocking socket, for what is measured without a client library in between.

Requests that are sent over and over are encoded once; of replies no more is read than is needed to go on.
"""

import socket
import struct
import time
from types import TracebackType
from typing import TypeVar
from uuid import UUID

from headrace.errors import ErrorCode
from headrace.protocol.apis import APIS
from headrace.protocol.frame import decode_response, encode_request
from headrace.protocol.message import Message
from headrace.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from headrace.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from headrace.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.records.batch import batches
from headrace.records.builder import build_batch

M = TypeVar("M", bound=Message)

CLIENT_ID = "bench"
TIMEOUT_S = 60.0
PRODUCE_VERSION = 12
FETCH_VERSION = 12
_RECEIVE_BYTES = 8 * 1024 * 1024
_SIZE = struct.Struct(">i")


class Refused(Exception):
    """The broker answered with an error."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"{what}: {ErrorCode(code).name}")
        self.code = code


class WireClient:
    """One connection; one request at a time unless the caller sends several."""

    def __init__(self, host: str, port: int, timeout_s: float = TIMEOUT_S) -> None:
        self.socket = socket.create_connection((host, port), timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = memoryview(bytearray(_RECEIVE_BYTES))

    def __enter__(self) -> "WireClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def call(self, request: Message, response: type[M], version: int | None = None) -> M:
        """Send a request and wait for its reply."""
        spoken = APIS[type(request).API_KEY].stable_version_max if version is None else version
        self.socket.sendall(encode_request(request, spoken, 1, CLIENT_ID))
        return decode_response(response, spoken, self.frame())[1]

    def frame(self) -> memoryview:
        """The next reply without its length; it is overwritten by the one after."""
        received = self._received
        self._fill(0, _SIZE.size)
        (size,) = _SIZE.unpack_from(received)
        self._fill(0, size)
        return received[:size]

    def _fill(self, start: int, end: int) -> None:
        while start < end:
            count = self.socket.recv_into(self._received[start:end])
            if not count:
                raise ConnectionResetError("the broker hung up")
            start += count


def produce_frame(topic: str, value: bytes, *, key: bytes | None = None, partition: int = 0) -> bytes:
    """A whole request that appends one record."""
    batch = build_batch([(time.time_ns() // 1_000_000, key, value, ())])
    data = PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    return encode_request(request, PRODUCE_VERSION, 1, CLIENT_ID)


def check_produced(frame: memoryview) -> None:
    """Refused unless a reply says that everything was appended."""
    reply = decode_response(ProduceResponse, PRODUCE_VERSION, frame)[1]
    for topic in reply.responses:
        for result in topic.partition_responses:
            if result.error_code:
                raise Refused(f"produce to {topic.name}-{result.index}", result.error_code)


class FetchLoop:
    """Reads one partition from the start on, as fast as the replies come."""

    def __init__(self, client: WireClient, topic: str, max_bytes: int) -> None:
        self._client = client
        self._wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
        self._request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=max_bytes,
            session_id=0,
            session_epoch=-1,
            topics=[FetchTopic(topic=topic, partitions=[self._wanted])],
        )

    def next_bytes(self) -> int:
        """How many bytes of records the next fetch brought; at the end it starts over."""
        reply = self._client.call(self._request, FetchResponse, FETCH_VERSION)
        result = reply.responses[0].partitions[0]
        if result.error_code:
            raise Refused("fetch", result.error_code)
        records = result.records
        size = 0
        for batch in batches(memoryview(records) if records is not None else b""):  # type: ignore[arg-type]
            self._wanted.fetch_offset = batch.next_offset
            size += batch.size
        if self._wanted.fetch_offset >= result.high_watermark:
            self._wanted.fetch_offset = 0
        return size


def create_topic(client: WireClient, name: str, partitions: int = 1, **configs: str) -> None:
    """Create a topic; underscores in the names of configs stand for dots."""
    wanted = [CreatableTopicConfig(name=key.replace("_", "."), value=text) for key, text in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=wanted)
    reply = client.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), CreateTopicsResponse)
    if reply.topics[0].error_code:
        raise Refused(f"creating {name}", reply.topics[0].error_code)


def delete_topic(client: WireClient, name: str) -> None:
    """Delete a topic, so that its files are not in the way of what is measured next."""
    wanted = DeleteTopicState(name=name, topic_id=UUID(int=0))
    reply = client.call(DeleteTopicsRequest(topics=[wanted], timeout_ms=30_000), DeleteTopicsResponse)
    if reply.responses[0].error_code:
        raise Refused(f"deleting {name}", reply.responses[0].error_code)


def end_offset(client: WireClient, topic: str) -> int:
    """Where the next record of a topic's first partition will go."""
    wanted = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    reply = client.call(ListOffsetsRequest(replica_id=-1, topics=[wanted]), ListOffsetsResponse)
    found = reply.topics[0].partitions[0]
    if found.error_code:
        raise Refused(f"asking for the end of {topic}", found.error_code)
    return found.offset
