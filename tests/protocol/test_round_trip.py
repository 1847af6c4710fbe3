"""Every message of every version comes back as it went, from any kind of buffer, with unknown tags kept."""

import random
from uuid import UUID

import pytest

from headrace.protocol.codec import decode, decode_prefix, encode, encode_parts
from headrace.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from headrace.protocol.messages.metadata import MetadataRequest
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headrace.protocol.schema import is_flexible
from tests.support_protocol import MessageMaker, message_classes, message_modules, versions_of

MESSAGES_PER_VERSION = 5


@pytest.mark.parametrize("module", message_modules())
def test_what_is_encoded_is_decoded(module: str) -> None:
    maker = MessageMaker(seed=len(module))
    for cls in message_classes(module):
        for version in versions_of(cls):
            for _ in range(MESSAGES_PER_VERSION):
                message = maker.message(cls, version)
                written = encode(message, version)
                assert decode(cls, version, written) == message
                assert decode(cls, version, bytearray(written)) == message
                assert decode(cls, version, memoryview(written)) == message
                assert decode_prefix(cls, version, memoryview(written + b"rest")) == (message, len(written))
                assert b"".join(encode_parts(message, version)) == written  # type: ignore[arg-type]


@pytest.mark.parametrize("module", message_modules())
def test_a_message_of_defaults_comes_back_as_defaults(module: str) -> None:
    for cls in message_classes(module):
        for version in versions_of(cls):
            assert decode(cls, version, encode(cls(), version)) == cls()


@pytest.mark.parametrize("module", message_modules())
def test_unknown_tagged_fields_are_written_back_as_they_came(module: str) -> None:
    tags = ((300, b"from the future"), (70_000, b""))
    for cls in message_classes(module):
        for version in versions_of(cls):
            if is_flexible(cls, version):
                written = encode(cls(unknown_tags=tags), version)
                message = decode(cls, version, written)
                assert message.unknown_tags == tags
                assert encode(message, version) == written


def test_tags_are_written_in_ascending_order() -> None:
    message = MetadataRequest(unknown_tags=((9, b"nine"), (4, b"four")))
    assert encode(message, 12).endswith(b"\x02\x04\x04four\x09\x04nine")


def test_a_message_is_decoded_from_the_middle_of_a_buffer() -> None:
    message = MetadataRequest(topics=None)
    assert decode(MetadataRequest, 12, b"head" + encode(message, 12), 4) == message


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_record_data_are_views_of_the_received_frame(kind: type) -> None:
    data = random.Random(1).randbytes(5000)
    partition = PartitionProduceData(index=3, records=data)
    topic = TopicProduceData(topic_id=UUID(int=7), partition_data=[partition])
    frame = kind(encode(ProduceRequest(acks=-1, topic_data=[topic]), 13))
    records = decode(ProduceRequest, 13, frame).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records == data
    assert records.obj is (frame.obj if isinstance(frame, memoryview) else frame)


def test_record_data_of_a_fetch_are_views_of_the_received_frame() -> None:
    partition = PartitionData(partition_index=1, records=b"x" * 1000)
    topic = FetchableTopicResponse(topic_id=UUID(int=7), partitions=[partition])
    frame = encode(FetchResponse(responses=[topic]), 17)
    records = decode(FetchResponse, 17, frame).responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame


class _Range:
    """A stand-in for bytes that stay in their file."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


def test_record_data_is_handed_out_as_the_object_it_is() -> None:
    first, second, nothing = memoryview(b"abc"), _Range(70_000), b""
    partitions = [PartitionData(partition_index=i, records=r) for i, r in enumerate((first, second, nothing))]  # type: ignore[arg-type]
    message = FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])
    parts = encode_parts(message, 12)
    assert [part for part in parts if not isinstance(part, bytes)] == [first, second]
    assert parts[1] is first
    stand_in = [b"z" * len(part) if isinstance(part, _Range) else bytes(part) for part in parts]  # type: ignore[arg-type]
    decoded = decode(FetchResponse, 12, b"".join(stand_in)).responses[0].partitions
    assert [bytes(part.records or b"") for part in decoded] == [b"abc", b"z" * 70_000, b""]  # type: ignore[arg-type]
