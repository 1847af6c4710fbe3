"""The `partition.metadata` file, which ties a partition's directory to a topic id."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final
from uuid import UUID

from headrace.log.checkpoints import CorruptCheckpoint
from headrace.ports import Disk
from headrace.types import TopicId

FILE_NAME: Final = "partition.metadata"
VERSION: Final = 0
_NO_ID: Final = UUID(int=0)
_USUAL_START: Final = b"version: 0\ntopic_id: "
_USUAL_LENGTH: Final = len(_USUAL_START) + 22


def encode_id(topic_id: UUID) -> str:
    """An id as Kafka spells it: 22 characters of URL-safe base64."""
    return urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def decode_id(text: str) -> UUID:
    """The id that Kafka would spell so; ValueError if it would spell none so."""
    raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(raw) != 16:
        raise ValueError(f"{text!r} is {len(raw)} bytes long, not 16")
    return UUID(bytes=raw)


def read_topic_id(disk: Disk, directory: str) -> TopicId | None:
    """The topic id of a partition's directory; None if it has no such file."""
    path = f"{directory}/{FILE_NAME}"
    try:
        content = disk.read(path)
    except FileNotFoundError:
        return None
    try:
        return _parse_usual(content) or _parse(content.decode())
    except ValueError as error:
        raise CorruptCheckpoint(path, str(error)) from error


def write_topic_id(disk: Disk, directory: str, topic_id: TopicId) -> None:
    """Tie a partition's directory to a topic id; durable on return."""
    disk.replace(f"{directory}/{FILE_NAME}", encode_file(topic_id))


def encode_file(topic_id: TopicId) -> bytes:
    """What the file holds."""
    return f"version: {VERSION}\ntopic_id: {encode_id(topic_id)}".encode()


def _parse_usual(content: bytes) -> TopicId | None:
    """What Kafka and Headrace write, without ado: a broker reads one for each of its partitions."""
    if len(content) != _USUAL_LENGTH or not content.startswith(_USUAL_START):
        return None
    topic_id = UUID(bytes=urlsafe_b64decode(content[len(_USUAL_START) :] + b"=="))
    return None if topic_id == _NO_ID else topic_id


def _parse(content: str) -> TopicId:
    fields = dict(_field(line) for line in content.splitlines()[:2])
    if int(fields.get("version", "-1")) < VERSION:
        raise ValueError(f"the version must be {VERSION} or later")
    if "topic_id" not in fields:
        raise ValueError("there is no topic_id")
    topic_id = decode_id(fields["topic_id"])
    if topic_id == _NO_ID:
        raise ValueError("the topic id is zero")
    return topic_id


def _field(line: str) -> tuple[str, str]:
    key, separator, value = line.partition(":")
    if not separator:
        raise ValueError(f"the line {line!r} is malformed")
    return key, value.strip()
