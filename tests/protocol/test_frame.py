"""Frames and headers: lengths are bounded before anything is read, headers follow Kafka's table."""

import struct

import pytest

from headrace.protocol.api_table import ApiKey
from headrace.protocol.apis import APIS
from headrace.protocol.codec import decode, encode
from headrace.protocol.errors import MalformedMessage
from headrace.protocol.frame import (
    FrameSplitter,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    encode_response_parts,
    frame_end,
)
from headrace.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from headrace.protocol.messages.headers import RequestHeader, ResponseHeader
from headrace.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support_protocol import MessageMaker

SIZE_MAX = 1000


def test_frames_come_out_whatever_pieces_they_arrive_in() -> None:
    stream = b"".join(struct.pack(">i", size) + b"x" * size for size in (0, 1, 999, 1000))
    for step in (1, 3, 500, len(stream)):
        splitter = FrameSplitter(SIZE_MAX)
        frames = []
        for start in range(0, len(stream), step):
            frames += splitter.feed(stream[start : start + step])
        assert [len(frame) for frame in frames] == [0, 1, 999, 1000]
        assert not splitter.is_amid_frame


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_a_size_out_of_bounds_is_refused_before_its_bytes_are_there(size: int) -> None:
    splitter = FrameSplitter(SIZE_MAX)
    assert splitter.feed(b"\0\0\0\1a" + struct.pack(">i", size)[:3]) == [b"a"]
    assert splitter.is_amid_frame
    with pytest.raises(MalformedMessage, match=f"size at byte 0: {size} is not between 0 and 1000"):
        splitter.feed(struct.pack(">i", size)[3:])


def test_the_end_of_a_frame_is_known_once_its_size_is_there() -> None:
    buffer = b"..\0\0\0\5ab"
    assert frame_end(buffer, 2, SIZE_MAX) == 11
    assert frame_end(buffer[:5], 2, SIZE_MAX) is None


@pytest.mark.parametrize(
    "api", [api for api in APIS.values() if not api.is_withdrawn], ids=lambda api: api.name
)
def test_requests_and_responses_of_every_api_pass_through_frames(api: object) -> None:
    assert api in APIS.values()
    maker = MessageMaker(seed=3)
    row = next(known for known in APIS.values() if known is api)
    for version in range(row.version_min, row.version_max + 1):
        request = maker.message(row.request_class(), version)
        frame = encode_request(request, version, correlation_id=77, client_id="client-ü")
        assert frame_end(frame, 0, len(frame)) == len(frame)
        header, message = decode_request(memoryview(frame)[4:])
        assert (header.request_api_key, header.request_api_version) == (row.key, version)
        assert (header.correlation_id, header.client_id) == (77, "client-ü")
        assert message == request
        response = maker.message(row.response_class(), version)
        frame = encode_response(response, version, correlation_id=78)
        assert frame_end(frame, 0, len(frame)) == len(frame)
        assert decode_response(type(response), version, frame[4:]) == (78, response)


def test_the_client_id_is_never_compact_and_may_be_null() -> None:
    header = RequestHeader(request_api_key=3, request_api_version=12, correlation_id=1, client_id="ab")
    assert encode(header, 2) == b"\0\3\0\x0c\0\0\0\1\0\2ab\0"
    nameless = encode_request(MetadataRequest(topics=None), 12, 1, None)
    assert decode_request_header(nameless[4:])[0].client_id is None


def test_header_versions_follow_the_flexible_versions() -> None:
    metadata = APIS[ApiKey.METADATA]
    assert [metadata.request_header_version(version) for version in (0, 8, 9, 13)] == [1, 1, 2, 2]
    assert [metadata.response_header_version(version) for version in (0, 8, 9, 13)] == [0, 0, 1, 1]
    handshake = APIS[ApiKey.SASL_HANDSHAKE]
    assert (handshake.request_header_version(1), handshake.response_header_version(1)) == (1, 0)


def test_the_answer_to_api_versions_always_has_the_oldest_header() -> None:
    api = APIS[ApiKey.API_VERSIONS]
    assert [api.response_header_version(version) for version in (0, 2, 3, 4, 99)] == [0] * 5
    assert [api.request_header_version(version) for version in (0, 2, 3, 4, 99)] == [1, 1, 2, 2, 2]
    response = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)])
    assert encode_response(response, 3, 9)[4:9] == b"\0\0\0\x09\0"
    assert encode_response(response, 3, 9)[8:10] == b"\0\0"
    assert decode_response(ApiVersionsResponse, 3, encode_response(response, 3, 9)[4:]) == (9, response)


def test_a_header_of_a_version_without_schema_is_still_read() -> None:
    frame = encode_request(ApiVersionsRequest(client_software_name="x"), 4, 5, "c")
    header, position = decode_request_header(b"\0\x12\0\x63" + frame[8:])
    assert (header.request_api_version, header.correlation_id, header.client_id) == (99, 5, "c")
    assert decode(ApiVersionsRequest, 4, frame[4:], position).client_software_name == "x"


@pytest.mark.parametrize(
    "head", [b"", b"\0", b"\0\3\0", b"\0\3\0\x0c\0\0", b"\7\7\0\0\0\0\0\1\0\0", b"\0\4\0\0\0\0\0\1\0\0"]
)
def test_a_header_that_is_none_is_refused(head: bytes) -> None:
    with pytest.raises(MalformedMessage, match="RequestHeader"):
        decode_request_header(head)


def test_a_version_without_schema_is_refused_by_name() -> None:
    frame = encode_request(MetadataRequest(topics=None), 13, 5, "c")
    with pytest.raises(MalformedMessage, match="MetadataRequest v99: message at byte 0: unknown version"):
        decode_request(b"\0\3\0\x63" + frame[8:])


def test_response_headers_keep_unknown_tags() -> None:
    header = ResponseHeader(correlation_id=3, unknown_tags=((8, b"new"),))
    frame = encode(header, 1) + encode(MetadataResponse(), 12)
    assert decode_response(MetadataResponse, 12, frame) == (3, MetadataResponse())


@pytest.mark.parametrize("records", [None, b"", b"abc", memoryview(b"x" * 50_000)])
def test_a_response_in_parts_is_the_same_frame(records: bytes | memoryview | None) -> None:
    topic = FetchableTopicResponse(
        partitions=[PartitionData(records=records), PartitionData(records=records)]
    )
    response = FetchResponse(responses=[topic])
    parts = encode_response_parts(response, 13, 5)
    assert b"".join(parts) == encode_response(response, 13, 5)  # type: ignore[arg-type]
    if records:
        assert parts[1] is records
        assert parts[3] is records


@pytest.mark.parametrize("name", ["LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"])
def test_withdrawn_apis_keep_their_keys_but_have_no_versions(name: str) -> None:
    api = next(api for api in APIS.values() if api.name == name)
    assert api.is_withdrawn
    assert not api.supports(0)


def test_an_unstable_version_has_a_schema_but_is_not_offered() -> None:
    api = APIS[ApiKey.INIT_PRODUCER_ID]
    assert (api.version_max, api.stable_version_max) == (6, 5)
    assert api.supports(6)
