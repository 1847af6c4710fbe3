"""Frames: APIs and versions that are not served, headers and bodies that do not parse, impossible sizes."""

from headrace.protocol.apis import APIS
from headrace.protocol.codec import encode
from headrace.protocol.frame import encode_request
from headrace.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.messages.fetch import FetchRequest
from headrace.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.answers.requests import metadata
from tests.answers.session import Session
from tests.support_answers import CLIENT_ID, request_head

COVERED_KEYS = (0, 1, 2, 3, 18, 19, 20, 21, 22, 23, 32, 33, 34, 35, 37, 44, 55, 57, 60, 61, 64, 74, 75)
API_VERSIONS = 18
METADATA = 3


def unknown_apis(session: Session) -> None:
    """Keys that no API has, that none has any more, and that only other listeners have."""
    for key in (-1, 999, 32767, 4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 82, 93, 200):
        session.send_raw(f"key {key}", request_head(key, 0, 1))


def unsupported_versions(session: Session) -> None:
    """One above the highest and one below the lowest version of every API closes the connection."""
    for key in COVERED_KEYS:
        if key == API_VERSIONS:
            continue
        api = APIS[key]
        for version in (api.version_min - 1, api.version_max + 1, -1, 127):
            header = api.request_header_version(version)
            session.send_raw(f"{api.name} {version}", request_head(key, version, header))


def old_appends(session: Session) -> None:
    """Versions of Produce that are announced for the sake of old clients, but not served."""
    for version in (0, 1, 2):
        body = b"\xff\xff\x00\x00\x03\xe8\x00\x00\x00\x00"
        session.send_raw(f"Produce {version}", request_head(0, version, 1) + body)
    body = encode(FetchRequest(), 4)
    session.send_raw("Fetch 3", request_head(1, 3, 1) + body)


def unknown_versions_of_api_versions(session: Session) -> None:
    """A question in a version to come is answered in version 0 with the versions of this API alone."""
    for version in (5, 6, 100, 32767):
        for body in (b"", encode(ApiVersionsRequest(client_software_name="a"), 3)):
            head = request_head(API_VERSIONS, version, 2)
            session.send_raw(f"version {version}", head + body, ApiVersionsResponse)
    session.send_raw("version -1", request_head(API_VERSIONS, -1, 1), ApiVersionsResponse)


def broken_headers(session: Session) -> None:
    """Headers that end early or hold impossible lengths."""
    whole = encode_request(metadata("x"), 9, 1, CLIENT_ID)[4:]
    for size in (0, 1, 2, 4, 7, 9, 10, 12):
        session.send_raw(f"{size} bytes", whole[:size])
    negative = whole[:8] + b"\xff\xfe" + whole[10:]
    session.send_raw("a client id of length -2", negative)
    longer = whole[:8] + b"\x7f\xff" + whole[10:]
    session.send_raw("a client id beyond the frame", longer)
    nobody = encode_request(MetadataRequest(topics=[]), 9, 1, None)[4:]
    session.send_raw("no client id", nobody, MetadataResponse, 9)
    invalid = whole[:10] + b"\xff\xfe\xfd" + whole[13:]
    session.send_raw("a client id that is no text", invalid, MetadataResponse, 9)


def broken_bodies(session: Session) -> None:
    """Bodies that end early, hold impossible lengths, or go on after their end."""
    for version in (1, 9):
        whole = encode_request(MetadataRequest(topics=[]), version, 1, CLIENT_ID)[4:]
        head = len(request_head(METADATA, version, 1 if version < 9 else 2))
        session.send_raw("no body", whole[:head])
        session.send_raw("half a body", whole[: head + 1] if version == 1 else whole[:-2])
        session.send_raw("bytes after the body", whole + b"\x00\x01\x02", MetadataResponse, version)
    head_1 = request_head(METADATA, 1, 1)
    session.send_raw("a count beyond the frame", head_1 + b"\x7f\xff\xff\xff")
    session.send_raw("a negative count", head_1 + b"\xff\xff\xff\xfe", MetadataResponse, 1)
    session.send_raw("a null where none may be", head_1 + b"\x00\x00\x00\x01\xff\xff")
    head_9 = request_head(METADATA, 9, 2)
    session.send_raw("a varint without end", head_9 + b"\xff" * 12)
    session.send_raw("a compact count beyond the frame", head_9 + b"\xff\xff\xff\xff\x07")
    tail = b"\x00\x00\x00"
    tagged = head_9 + b"\x01" + tail + b"\x01\x05\x02ab"
    session.send_raw("a tag nobody knows", tagged, MetadataResponse, 9)
    unsorted = head_9 + b"\x01" + tail + b"\x02\x05\x00\x04\x00"
    session.send_raw("tags out of order", unsorted, MetadataResponse, 9)
    longer = head_9 + b"\x01" + tail + b"\x01\x05\x7fab"
    session.send_raw("a tag beyond the frame", longer)


def impossible_sizes(session: Session) -> None:
    """A length that is negative, none, or above the limit."""
    session.send_unframed("negative", b"\xff\xff\xff\xff" + b"x" * 8)
    session.send_unframed("none", b"\x00\x00\x00\x00")
    session.send_unframed("huge", b"\x7f\xff\xff\xff" + b"x" * 8)
    session.send_unframed("another protocol", b"GET / HTTP/1.1\r\n\r\n")


SCENARIOS = (
    unknown_apis,
    unsupported_versions,
    old_appends,
    unknown_versions_of_api_versions,
    broken_headers,
    impossible_sizes,
)
ALONE = (broken_bodies,)
