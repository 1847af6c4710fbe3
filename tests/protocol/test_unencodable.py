"""A message that cannot be written in the version asked for raises one error that names the field."""

import pickle
from typing import Any
from uuid import UUID

import pytest

from headrace.protocol.codec import decode, encode, encode_parts
from headrace.protocol.errors import UnencodableMessage
from headrace.protocol.message import Message
from headrace.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from headrace.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from headrace.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.sasl_authenticate import SaslAuthenticateRequest


def topic_named(name: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(), MetadataRequestTopic(name=name)])


class _Range:
    def __len__(self) -> int:
        return 7


def with_records(records: Any) -> FetchResponse:
    partition = PartitionData(records=records)
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])


PARTITION = FetchPartition(last_fetched_epoch=3)
EPOCH_FIELD = "topics[0].partitions[0].last_fetched_epoch"
BAD: list[tuple[Message, int, str, str]] = [
    (MetadataRequest(), 14, "", "unknown version, known are 0 to 13"),
    (MetadataRequest(topics=None), 0, "topics", "None, which this version has no null for"),
    (topic_named(None), 9, "topics[1].name", "None, which this version has no null for"),
    (topic_named(b"a"), 9, "topics[1].name", "str expected, not bytes"),
    (topic_named("x" * 32768), 9, "topics[1].name", "string of 32768 bytes exceeds 32767"),
    (topic_named("x" * 32768), 1, "topics[1].name", "string of 32768 bytes exceeds 32767"),
    (topic_named("\ud800"), 9, "topics[1].name", "cannot be spelt in UTF-8: surrogates not allowed"),
    (MetadataRequest(topics=[FetchTopic()]), 9, "topics[0]", "MetadataRequestTopic expected, not FetchTopic"),  # type: ignore[list-item]
    (MetadataRequest(topics=5), 9, "topics", "list expected, not int"),  # type: ignore[arg-type]
    (MetadataRequest(topics=[MetadataRequestTopic(topic_id=5)]), 12, "topics[0].topic_id", "UUID expected"),  # type: ignore[arg-type]
    (FetchRequest(max_wait_ms=2**31), 4, "max_wait_ms", "2147483648 is no int32"),
    (FetchRequest(max_wait_ms="5"), 4, "max_wait_ms", "'5' is no int32"),  # type: ignore[arg-type]
    (FetchRequest(replica_id=5), 15, "replica_id", "set, but not part of this version"),
    (FetchRequest(replica_state=ReplicaState(replica_id=5)), 14, "replica_state", "not part of this version"),
    (FetchRequest(topics=[FetchTopic(partitions=[PARTITION])]), 11, EPOCH_FIELD, "set"),
    (FetchRequest(unknown_tags=((1, b""),)), 11, "unknown_tags", "this version has no tagged fields"),
    (FetchRequest(unknown_tags=((7, b""), (7, b"x"))), 12, "unknown_tags", "tag 7 is there twice"),
    (FetchRequest(cluster_id="a", unknown_tags=((0, b""),)), 12, "unknown_tags", "tag 0 is there twice"),
    (SaslAuthenticateRequest(auth_bytes="abc"), 2, "auth_bytes", "bytes expected, not str"),  # type: ignore[arg-type]
    (with_records(_Range()), 12, "responses[0].partitions[0].records", "use encode_parts"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "version", "field", "reason"), BAD)
def test_the_error_names_the_field(message: Message, version: int, field: str, reason: str) -> None:
    with pytest.raises(UnencodableMessage) as caught:
        encode(message, version)
    assert (caught.value.message_name, caught.value.version) == (type(message).__name__, version)
    assert caught.value.field == field
    assert reason in caught.value.reason
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_file_range_is_fit_for_parts_only() -> None:
    assert any(isinstance(part, _Range) for part in encode_parts(with_records(_Range()), 12))


def test_parts_name_the_field_as_well() -> None:
    with pytest.raises(UnencodableMessage) as caught:
        encode_parts(topic_named(None), 9)
    assert caught.value.field == "topics[1].name"


def test_a_field_that_may_be_ignored_is_left_out_of_versions_without_it() -> None:
    request = FetchRequest(rack_id="r1", topics=[FetchTopic(topic="a", topic_id=UUID(int=3))])
    decoded = decode(FetchRequest, 4, encode(request, 4))
    assert decoded.rack_id == ""
    assert decoded.topics == [FetchTopic(topic="a")]


def test_a_tagged_field_with_its_default_is_left_out() -> None:
    plain = encode(CreateTopicsResponse(topics=[CreatableTopicResult(name="a")]), 5)
    tagged = encode(
        CreateTopicsResponse(topics=[CreatableTopicResult(name="a", topic_config_error_code=7)]), 5
    )
    assert len(tagged) == len(plain) + 4
