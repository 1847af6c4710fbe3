"""Bad input of every kind raises one error, which names message, version, field and position."""

import pickle
import struct

import pytest

from headrace.protocol.codec import decode, decode_prefix, encode
from headrace.protocol.disk_records.consumer_groups import ConsumerGroupMemberMetadataValue
from headrace.protocol.errors import MalformedMessage
from headrace.protocol.message import Message
from headrace.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from headrace.protocol.messages.fetch import FetchRequest, FetchResponse
from headrace.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tests.support_protocol import MessageMaker, message_classes, message_modules, versions_of


def refused(cls: type[Message], version: int, frame: bytes) -> MalformedMessage:
    """The error for a frame, the same for every kind of buffer."""
    with pytest.raises(MalformedMessage) as caught:
        decode(cls, version, frame)
    for other in (bytearray(frame), memoryview(frame)):
        with pytest.raises(MalformedMessage) as again:
            decode(cls, version, other)
        assert str(again.value) == str(caught.value)
    assert (caught.value.message_name, caught.value.version) == (cls.__name__, version)
    return caught.value


def test_the_error_names_message_version_field_and_position() -> None:
    topics = [MetadataRequestTopic(name="a"), MetadataRequestTopic(name="b")]
    frame = encode(MetadataRequest(topics=topics), 9).replace(b"b", b"\xff")
    error = refused(MetadataRequest, 9, frame)
    assert (error.field, error.position) == ("topics[1].name", 5)
    assert str(error) == "MetadataRequest v9: topics[1].name at byte 5: bad UTF-8: invalid start byte"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize("module", message_modules())
def test_a_frame_cut_anywhere_is_refused(module: str) -> None:
    maker = MessageMaker(seed=7)
    for cls in message_classes(module):
        for version in versions_of(cls):
            whole = encode(maker.message(cls, version), version)
            for size in range(0, len(whole), 1 + len(whole) // 9):
                if size < len(whole):
                    error = refused(cls, version, whole[:size])
                    assert error.position <= size
                    with pytest.raises(MalformedMessage):
                        decode_prefix(cls, version, whole[:size])


def test_bytes_left_over_are_refused() -> None:
    error = refused(MetadataRequest, 12, encode(MetadataRequest(topics=None), 12) + b"?")
    assert error.reason == "1 bytes left over"


@pytest.mark.parametrize("version", [-1, 14, 32767])
def test_an_unknown_version_is_refused(version: int) -> None:
    error = refused(MetadataRequest, version, b"\0" * 20)
    assert error.reason == "unknown version, known are 0 to 13"


LEADING = struct.pack(">hhi", -1, 1, 1000)
TOPIC = LEADING + b"\0\0\0\1\0\1a\0\0\0\1\0\0\0\0"
NAMELESS = LEADING + b"\0\0\0\1\xff\xff\0\0\0\1\0\0\0\0"
RECORDS = "topic_data[0].partition_data[0].records"


@pytest.mark.parametrize(
    ("cls", "version", "frame", "field", "position", "reason"),
    [
        (MetadataRequest, 0, b"\xff\xff\xff\xff", "topics", 0, "null where there must be a value"),
        (MetadataRequest, 1, b"\xff\xff\xff\xfe\1", "topics", 0, "negative length -2"),
        (MetadataRequest, 1, b"\x7f\xff\xff\xff\1", "topics", 0, "2147483647 elements"),
        (MetadataRequest, 9, b"\x02\0\0\0\0\0\0", "topics[0].name", 1, "null where"),
        (MetadataRequest, 9, b"\xff\xff\xff\xff\x07", "topics", 0, "2147483646 elements"),
        (MetadataRequest, 9, b"\xff\xff\xff\xff\x0f", "topics", 0, "exceeds"),
        (MetadataRequest, 9, b"\xff\xff\xff\xff\xff\x01", "topics", 0, "longer than 5 bytes"),
        (MetadataRequest, 9, b"\xff\xff", "topics", 0, "truncated varint"),
        (ProduceRequest, 3, LEADING + b"\xff\xff\xff\xff", "topic_data", 8, "null where"),
        (ProduceRequest, 3, TOPIC + b"\xff\xff\xff\xf0", RECORDS, 23, "negative length -16"),
        (ProduceRequest, 3, TOPIC + b"\0\0\1\0ab", RECORDS, 27, "256 bytes needed, 2 left"),
        (ProduceRequest, 3, NAMELESS + b"\0\0\1\0ab", "topic_data[0].name", 12, "null"),
        (ProduceRequest, 3, b"\xff\xf0" + LEADING, "transactional_id", 0, "negative length -16"),
        (SaslAuthenticateRequest, 0, b"\xff\xff\xff\xff", "auth_bytes", 0, "null where"),
        (SaslAuthenticateRequest, 2, b"\0\0", "auth_bytes", 0, "null where"),
        (SaslAuthenticateRequest, 2, b"\x08abc", "auth_bytes", 1, "7 bytes needed, 3 left"),
        (ApiVersionsRequest, 3, b"\x02a\x02b\x05", "tags", 4, "5 tagged fields cannot fit"),
        (ApiVersionsRequest, 3, b"\x02a\x02b\x01\x09\x05ab", "tags", 7, "5 bytes needed, 2 left"),
        (ApiVersionsRequest, 3, b"\x02a\x02b\x02\x09\0\x09\0", "tags", 9, "tag 9 is there twice"),
    ],
)  # fmt: skip
def test_bad_lengths_and_nulls_are_refused(
    cls: type[Message], version: int, frame: bytes, field: str, position: int, reason: str
) -> None:
    error = refused(cls, version, frame)
    assert reason in error.reason
    assert (error.field, error.position) == (field, position)


def test_a_string_longer_than_java_allows_is_refused() -> None:
    frame = b"\x02" + b"\x81\x80\x02" + b"a" * 32768 + b"\0" * 5
    error = refused(MetadataRequest, 9, frame)
    assert error.reason == "string of 32768 bytes exceeds 32767"


def test_a_tagged_field_must_be_as_long_as_it_says() -> None:
    good = encode(ApiVersionsResponse(finalized_features_epoch=5), 3)
    assert decode(ApiVersionsResponse, 3, good).finalized_features_epoch == 5
    error = refused(ApiVersionsResponse, 3, good.replace(b"\x01\x08\0\0", b"\x01\x07\0\0"))
    assert error.field == "finalized_features_epoch"
    assert "should end at byte" in error.reason


def test_a_tag_of_another_version_is_refused() -> None:
    frame = encode(FetchResponse(unknown_tags=((0, b"\x01"),)), 12)
    assert refused(FetchResponse, 12, frame).reason == "tag 0 is not valid in this version"


def test_a_missing_marker_of_a_structure_is_refused() -> None:
    whole = encode(ConsumerGroupHeartbeatResponse(assignment=None), 0)
    assert refused(ConsumerGroupHeartbeatResponse, 0, whole[:-2]).field == "assignment"


def test_a_tagged_structure_may_be_null() -> None:
    for value in (
        ConsumerGroupMemberMetadataValue(),
        ConsumerGroupMemberMetadataValue(classic_member_metadata=None),
    ):
        assert decode(ConsumerGroupMemberMetadataValue, 0, encode(value, 0)) == value


def test_nothing_is_allocated_for_a_length_that_cannot_be() -> None:
    bomb = b"\xff\xff\xff\xff\x07"
    partition = PartitionProduceData(index=0, records=b"")
    frame = encode(ProduceRequest(topic_data=[TopicProduceData(name="a", partition_data=[partition])]), 9)
    assert "2147483646 bytes needed" in refused(ProduceRequest, 9, frame[:-4] + bomb + b"\0\0\0").reason
    assert "elements" in refused(FetchRequest, 12, b"\0" * 25 + bomb).reason
