"""The `meta.properties` file of a log directory: which cluster, node and directory it is."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from headrace.log.checkpoints import CorruptCheckpoint
from headrace.ports import Disk

FILE_NAME: Final = "meta.properties"
VERSION: Final = 1
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(slots=True, frozen=True)
class MetaProperties:
    """Who owns a log directory. `directory_id` is absent in directories formatted before Kafka 3.7."""

    cluster_id: str
    node_id: int
    directory_id: str | None = None
    version: int = VERSION


def read_meta_properties(disk: Disk, directory: str) -> MetaProperties | None:
    """What the directory's file says; None if it is not formatted."""
    path = f"{directory}/{FILE_NAME}"
    try:
        content = disk.read(path)
    except FileNotFoundError:
        return None
    try:
        return _from_properties(parse_properties(content.decode("utf-8")))
    except ValueError as error:
        raise CorruptCheckpoint(path, str(error)) from error


def write_meta_properties(disk: Disk, directory: str, properties: MetaProperties, now_ms: int) -> None:
    """Format a log directory; durable on return."""
    disk.replace(f"{directory}/{FILE_NAME}", encode_meta_properties(properties, now_ms))


def encode_meta_properties(properties: MetaProperties, now_ms: int) -> bytes:
    """The file's content, with the date in a comment as Java's Properties writes it."""
    fields = {"node.id": str(properties.node_id)}
    if properties.directory_id is not None:
        fields["directory.id"] = properties.directory_id
    fields["version"] = str(properties.version)
    fields["cluster.id"] = properties.cluster_id
    lines = ["#", f"#{_java_date(now_ms)}", *(f"{key}={_escape(value)}" for key, value in fields.items()), ""]
    return "\n".join(lines).encode()


def parse_properties(text: str) -> dict[str, str]:
    """The keys and values of a Java properties file."""
    fields = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        fields[_unescape(key)] = _unescape(value)
    return fields


def _from_properties(fields: dict[str, str]) -> MetaProperties:
    version = int(fields.get("version", "0"))
    node_id = fields.get("node.id", fields.get("broker.id"))
    cluster_id = fields.get("cluster.id")
    if version not in (0, VERSION):
        raise ValueError(f"version {version} is not supported")
    if cluster_id is None or node_id is None:
        raise ValueError("cluster.id and node.id must be there")
    return MetaProperties(cluster_id, int(node_id), fields.get("directory.id"), version)


def _logical_lines(text: str) -> list[str]:
    """Lines without comments and blanks, those that end in a backslash joined with the next."""
    lines = []
    joined = ""
    for raw in text.splitlines():
        line = joined + raw.lstrip(" \t\f")
        if not joined and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            joined = line[:-1]
            continue
        lines.append(line)
        joined = ""
    return [*lines, joined] if joined else lines


def _split(line: str) -> tuple[str, str]:
    """Key and value, parted by the first `=`, `:` or blank that is not escaped."""
    end = 0
    while end < len(line) and line[end] not in "=: \t\f":
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return line[:end], rest


def _escape(value: str) -> str:
    escaped = value.replace("\\", "\\\\")
    for character in "=:#!":
        escaped = escaped.replace(character, "\\" + character)
    for letter, character in _ESCAPES.items():
        escaped = escaped.replace(character, "\\" + letter)
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    characters = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            character = text[position]
            position += 1
            if character == "u":
                character = chr(int(text[position : position + 4], 16))
                position += 4
            else:
                character = _ESCAPES.get(character, character)
        characters.append(character)
    return "".join(characters)


def _java_date(now_ms: int) -> str:
    now = datetime.fromtimestamp(now_ms // 1000, UTC)
    return f"{_DAYS[now.weekday()]} {_MONTHS[now.month - 1]} {now:%d %H:%M:%S} UTC {now:%Y}"
