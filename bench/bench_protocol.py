"""The wire codec beside kio, whose decoder is native code."""

import gc
import io
import pathlib
import subprocess
import sys
from typing import Any
from uuid import UUID

import kio.schema.fetch.v12.request as kio_fetch_request
import kio.schema.fetch.v12.response as kio_fetch_response
import kio.schema.metadata.v12.response as kio_metadata
import kio.schema.produce.v9.request as kio_produce_request
import kio.schema.produce.v9.response as kio_produce_response
from kio.serial import entity_reader, entity_writer

from bench.harness import Row, alternate, spell_time
from headrace.protocol.codec import decode, encode
from headrace.protocol.message import Message
from headrace.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from headrace.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

IMPORT_RUNS = 7
IMPORT_ALL = """
import importlib, pkgutil, time
start = time.perf_counter()
import headrace.protocol.frame
for package in ("headrace.protocol.messages", "headrace.protocol.disk_records"):
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(package + "." + module.name)
print(time.perf_counter() - start)
"""
IMPORT_ONE = """
import time
start = time.perf_counter()
import headrace.protocol.codec, headrace.protocol.messages.metadata
print(time.perf_counter() - start)
"""
IMPORT_KIO = """
import time
start = time.perf_counter()
import kio.serial, kio.schema.metadata.v12.response
print(time.perf_counter() - start)
"""


class _Kio:
    """kio's reader and writer of one message."""

    def __init__(self, cls: Any, encoded: bytes) -> None:
        self._read = entity_reader(cls)
        self._write = entity_writer(cls)
        self.encoded = encoded
        self.message = self.decode()
        assert self.encode() == encoded

    def decode(self) -> Any:
        return self._read(self.encoded, 0)[0]

    def encode(self) -> bytes:
        buffer = io.BytesIO()
        self._write(buffer, self.message)
        return buffer.getvalue()


class _Ours:
    """One of our messages, encoded and decoded."""

    def __init__(self, message: Message, version: int) -> None:
        self.message = message
        self.version = version
        self.encoded = encode(message, version)
        assert self.decode() == message

    def decode(self) -> Message:
        return decode(type(self.message), self.version, self.encoded)

    def encode(self) -> bytes:
        return encode(self.message, self.version)


def metadata_response() -> MetadataResponse:
    """Ten topics of a hundred partitions on three brokers."""
    partitions = [
        MetadataResponsePartition(
            partition_index=index,
            leader_id=index % 3,
            leader_epoch=5,
            replica_nodes=[0, 1, 2],
            isr_nodes=[0, 1, 2],
            offline_replicas=[],
        )
        for index in range(100)
    ]
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=i, host=f"broker-{i}.test", port=9092) for i in range(3)],
        cluster_id="cluster",
        controller_id=1,
        topics=[
            MetadataResponseTopic(name=f"topic-{i}", topic_id=UUID(int=i + 1), partitions=partitions)
            for i in range(10)
        ],
    )


def produce_request() -> ProduceRequest:
    """One batch of 16 KB for one partition."""
    partition = PartitionProduceData(index=3, records=b"r" * 16_384)
    topic = TopicProduceData(name="topic-1", partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def produce_response() -> ProduceResponse:
    """The answer to it."""
    partition = PartitionProduceResponse(index=3, base_offset=123_456, log_start_offset=0)
    return ProduceResponse(responses=[TopicProduceResponse(name="topic-1", partition_responses=[partition])])


def fetch_request() -> FetchRequest:
    """A full fetch of a hundred partitions."""
    partitions = [FetchPartition(partition=i, fetch_offset=i, partition_max_bytes=2**20) for i in range(100)]
    return FetchRequest(
        max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic="topic-1", partitions=partitions)]
    )


def fetch_response() -> FetchResponse:
    """A hundred partitions with 1 KB each."""
    partitions = [PartitionData(partition_index=i, high_watermark=9, records=b"r" * 1024) for i in range(100)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="topic-1", partitions=partitions)])


def _faster(name: str, ours: float, theirs: float, target: float | None = None) -> Row:
    return Row(name, spell_time(ours), spell_time(theirs), ratio=theirs / ours, target=target)


def _metadata_rows() -> list[Row]:
    ours = _Ours(metadata_response(), 12)
    theirs = _Kio(kio_metadata.MetadataResponse, ours.encoded)
    encoding, kio_encoding = alternate(ours.encode, theirs.encode)
    decoding, kio_decoding = alternate(ours.decode, theirs.decode)
    figures = spell_time(decoding), spell_time(kio_decoding)
    return [
        _faster("encode Metadata v12 response, 1,000 partitions: times as fast", encoding, kio_encoding, 8),
        Row(
            "decode it: our time over kio's native",
            *figures,
            ratio=decoding / kio_decoding,
            target=4,
            higher_is_better=False,
        ),
    ]


def _produce_rows() -> list[Row]:
    request, response = _Ours(produce_request(), 9), _Ours(produce_response(), 9)
    kio_request = _Kio(kio_produce_request.ProduceRequest, request.encoded)
    kio_response = _Kio(kio_produce_response.ProduceResponse, response.encoded)

    def ours() -> None:
        request.decode()
        response.encode()

    def theirs() -> None:
        kio_request.decode()
        kio_response.encode()

    both, kio_both = alternate(ours, theirs)
    decoding, kio_decoding = alternate(request.decode, kio_request.decode)
    encoding, kio_encoding = alternate(response.encode, kio_response.encode)
    return [
        _faster("decode Produce v9 request and encode its response: times as fast", both, kio_both, 2.5),
        _faster("  the request alone", decoding, kio_decoding),
        _faster("  the response alone", encoding, kio_encoding),
    ]


def _fetch_rows() -> list[Row]:
    request, response = _Ours(fetch_request(), 12), _Ours(fetch_response(), 12)
    kio_request = _Kio(kio_fetch_request.FetchRequest, request.encoded)
    kio_response = _Kio(kio_fetch_response.FetchResponse, response.encoded)
    rows = []
    for name, own, their in (("request", request, kio_request), ("response", response, kio_response)):
        encoding, kio_encoding = alternate(own.encode, their.encode, rounds=4)
        decoding, kio_decoding = alternate(own.decode, their.decode, rounds=4)
        rows.append(
            _faster(f"encode Fetch v12 {name}, 100 partitions: times as fast", encoding, kio_encoding)
        )
        rows.append(_faster("decode it: times as fast as native", decoding, kio_decoding))
    return rows


def _import_seconds(code: str) -> float:
    """The best of several fresh interpreters, with bytecode in the usual cache."""
    environment = {"PYTHONPYCACHEPREFIX": str(pathlib.Path(".cache/pycache").resolve())}
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
        )
        for _ in range(IMPORT_RUNS)
    ]
    return min(float(run.stdout) for run in runs)


def _import_rows() -> list[Row]:
    one, everything, kio = (_import_seconds(code) for code in (IMPORT_ONE, IMPORT_ALL, IMPORT_KIO))
    return [
        _faster("import the codec and one API: times as fast as kio", one, kio),
        Row("import the codec and all messages, APIs and disk records", spell_time(everything), "-"),
    ]


def run() -> list[Row]:
    """Every measurement of the codec.

    The modules that kio loads are set aside first, as a server does after its start: otherwise the collector
    walks all of them again and again while either side decodes, and the figures tell more of that.
    """
    gc.collect()
    gc.freeze()
    try:
        return [*_metadata_rows(), *_produce_rows(), *_fetch_rows(), *_import_rows()]
    finally:
        gc.unfreeze()
