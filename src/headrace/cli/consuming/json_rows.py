"""Records as JSON, an object a line, with everything that a record has.

Keys and values are text where they are UTF-8 and base64 otherwise, in a field that says so. What is printed
can be produced again with `headrace produce --format json`."""

import base64
from json.encoder import encode_basestring
from typing import Any, Final

import pyarrow as pa

_TIMESTAMP_TYPES: Final = {0: '"create"', 1: '"append"'}
_NO_TIME: Final = -1


class JsonRows:
    """Renders records as objects."""

    __slots__ = ("_partition", "_topic")

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = encode_basestring(topic)
        self._partition = partition

    def render(self, records: pa.RecordBatch) -> bytes:
        """A line for each record."""
        start = f'{{"topic": {self._topic}, "partition": {self._partition}, "offset": '
        lines = [
            f"{start}{offset}, {_time(time, kind)}, {_data('key', key)}, {_data('value', value)}, "
            f'"headers": {_headers(headers)}}}\n'
            for offset, time, kind, key, value, headers in zip(
                records.column("offset").to_pylist(),
                records.column("timestamp").cast(pa.int64()).to_pylist(),
                records.column("timestamp_type").to_pylist(),
                records.column("key").to_pylist(),
                records.column("value").to_pylist(),
                records.column("headers").to_pylist(),
                strict=True,
            )
        ]
        return "".join(lines).encode()


def _time(time: int, kind: int) -> str:
    shown = "null" if time == _NO_TIME else str(time)
    return f'"timestamp": {shown}, "timestamp_type": {_TIMESTAMP_TYPES.get(kind, "null")}'


def _data(name: str, data: bytes | None) -> str:
    if data is None:
        return f'"{name}": null'
    try:
        return f'"{name}": {encode_basestring(data.decode())}'
    except UnicodeDecodeError:
        return f'"{name}_base64": "{base64.b64encode(data).decode()}"'


def _headers(headers: list[dict[str, Any]] | None) -> str:
    if not headers:
        return "[]"
    shown = (
        f'{{"key": {encode_basestring(header["key"])}, {_data("value", header["value"])}}}'
        for header in headers
    )
    return f"[{', '.join(shown)}]"
