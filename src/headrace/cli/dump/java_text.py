"""Text as a Java program prints it: strings from doubtful UTF-8, and compact JSON."""

import json
import math
import re

from headrace.cli.dump.line import Json
from headrace.config.values import java_double

_SMALL_ESCAPE = re.compile(r"\\u00([0-9a-f]{2})")
# Java takes an encoded surrogate for one bad piece, Python for one per byte.
_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


def java_utf8(data: bytes) -> str:
    """Bytes as `new String(bytes, UTF_8)` has them, with a replacement character for each bad piece."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _ENCODED_SURROGATE.sub(_REPLACEMENT, data).decode("utf-8", "replace")


def java_json(value: Json) -> str:
    """Compact JSON as Jackson writes it."""
    match value:
        case dict():
            return "{" + ",".join(f"{_quoted(name)}:{java_json(item)}" for name, item in value.items()) + "}"
        case list():
            return "[" + ",".join(java_json(item) for item in value) + "]"
        case str():
            return _quoted(value)
        case float():
            return java_double(value) if math.isfinite(value) else f'"{java_double(value)}"'
        case _:
            return json.dumps(value)


def _quoted(text: str) -> str:
    escaped = json.dumps(text, ensure_ascii=False)
    return (
        _SMALL_ESCAPE.sub(lambda found: f"\\u00{found[1].upper()}", escaped) if "\\u" in escaped else escaped
    )
