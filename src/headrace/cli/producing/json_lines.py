"""JSON objects, one a line, as records.

`key`, `value` and the values of headers are text or null; bytes that are not text come as base64 in a field
of the same name with `_base64` behind it. What `headrace consume --format json` prints is understood, too.
"""

import base64
import json
from difflib import get_close_matches
from typing import Any, Final

import pyarrow as pa

from headrace.cli.producing.lines import LINE_END, BadLine, Lines
from headrace.cli.producing.parsed import Parsed

_BASE64: Final = "_base64"
_FIELDS: Final = frozenset(
    {"key", "key_base64", "value", "value_base64", "headers", "partition", "timestamp"}
)
_CONTENTS: Final = frozenset({"key", "key_base64", "value", "value_base64"})
#: Where a record was read from says nothing about where it goes.
_ORIGIN_FIELDS: Final = frozenset({"topic", "offset", "timestamp_type"})
_HEADER_FIELDS: Final = frozenset({"key", "value", "value_base64"})
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
_SCHEMA: Final = pa.schema(
    [
        ("key", pa.large_binary()),
        ("value", pa.large_binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("partition", pa.int32()),
        ("timestamp", pa.int64()),
    ]
)


class _Unusable(Exception):
    """Why a line is not a record."""


def parse_json(lines: Lines) -> Parsed:
    """One record for each line that is not blank."""
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    bad = None
    for number, line in enumerate(lines.data.split(LINE_END), lines.first):
        if not line or line.isspace():
            continue
        try:
            rows.append(_row(line))
            numbers.append(number)
        except _Unusable as reason:
            bad = BadLine(number, str(reason))
            break
    return Parsed(pa.RecordBatch.from_pylist(rows, _SCHEMA), numbers, bad)


def _row(line: bytes) -> dict[str, Any]:
    given = _object(line)
    _refuse_unknown(given, _FIELDS | _ORIGIN_FIELDS, "")
    if not _CONTENTS & given.keys():
        raise _Unusable("it has neither key nor value")
    return {
        "key": _bytes(given, "key", ""),
        "value": _bytes(given, "value", ""),
        "headers": _headers(given.get("headers")),
        "partition": _integer(given, "partition", _INT32_MAX),
        "timestamp": _integer(given, "timestamp", _INT64_MAX),
    }


def _object(line: bytes) -> dict[str, Any]:
    try:
        given = json.loads(line)
    except UnicodeDecodeError as error:
        raise _Unusable(f"it is not UTF-8 (byte {error.start + 1})") from None
    except json.JSONDecodeError as error:
        raise _Unusable(f"it is not JSON: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise _Unusable(f"it is JSON that can't be read: {error}") from None
    if not isinstance(given, dict):
        raise _Unusable(f"it is {_kind(given)}; each line must be an object with key, value and so on")
    return given


def _refuse_unknown(given: dict[str, Any], known: frozenset[str], where: str) -> None:
    for name in given.keys() - known:
        near = get_close_matches(name, known, 1)
        advice = f"did you mean {near[0]}?" if near else f"say {', '.join(sorted(known))}"
        raise _Unusable(f"{where}{name} is not a field of a record; {advice}")


def _bytes(given: dict[str, Any], name: str, where: str) -> bytes | None:
    text, encoded = given.get(name), given.get(name + _BASE64)
    if text is not None and encoded is not None:
        raise _Unusable(f"{where}{name} and {name}{_BASE64} exclude each other")
    if encoded is not None:
        return _decoded(encoded, where + name + _BASE64)
    if text is None:
        return None
    if not isinstance(text, str):
        raise _Unusable(
            f"{where}{name} is {_kind(text)}; it must be text or null (a string of JSON, if that is meant)"
        )
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _Unusable(f"{where}{name} has half of a surrogate pair, which no text has") from None


def _decoded(encoded: object, name: str) -> bytes:
    if not isinstance(encoded, str):
        raise _Unusable(f"{name} is {_kind(encoded)}; it must be base64")
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:
        raise _Unusable(f"{name} is not base64") from None


def _headers(given: object) -> list[dict[str, Any]] | None:
    if given is None:
        return None
    if isinstance(given, dict):
        given = [{"key": key, "value": value} for key, value in given.items()]
    if not isinstance(given, list) or not all(isinstance(header, dict) for header in given):
        raise _Unusable("headers must be a list of objects with key and value, or one object of texts")
    return [_header(header) for header in given]


def _header(header: dict[str, Any]) -> dict[str, Any]:
    _refuse_unknown(header, _HEADER_FIELDS, "headers: ")
    key = header.get("key")
    if not isinstance(key, str):
        raise _Unusable("headers: each needs a key, which is text")
    _bytes({"key": key}, "key", "headers: ")
    return {"key": key, "value": _bytes(header, "value", "headers: ")}


def _integer(given: dict[str, Any], name: str, most: int) -> int | None:
    number = given.get(name)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= most:
        raise _Unusable(f"{name} is {json.dumps(number)[:40]}; it must be a whole number from 0 to {most}")
    return number


def _kind(value: object) -> str:
    if value is None:
        return "null"
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return names.get(type(value), "a number")
