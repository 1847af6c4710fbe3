"""Messages as plain data that can be kept in a file and compared: every field of the version, masked.

Arrays whose order Kafka takes from hash tables are sorted. Record data are taken apart into batches and
records, since a broker may compress anew.
"""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from headrace.errors import HeadraceError
from headrace.protocol.message import Message
from headrace.protocol.schema import FieldLayout, is_flexible, layout_of
from headrace.records.batch import Batch, batches
from headrace.records.reader import read_records
from tests.answers.masking import Masks

#: Arrays of structures that are kept in order, as clients rely on it or the protocol says so.
IN_ORDER = frozenset(
    {
        ("ApiVersionsResponse", "api_keys"),
        ("DescribeConfigsResourceResult", "synonyms"),
        ("DescribeTopicPartitionsResponse", "topics"),
        ("DescribeTopicPartitionsResponseTopic", "partitions"),
        ("FetchResponse", "responses"),
        ("FetchableTopicResponse", "partitions"),
        ("PartitionData", "aborted_transactions"),
    }
)


def describe(message: Message, version: int, masks: Masks) -> dict[str, Any]:
    """A whole message."""
    cls = type(message)
    describer = _Describer(version, is_flexible(cls, version), cls.__name__.endswith("Response"), masks)
    return describer.structure(message)


@dataclass(slots=True)
class _Describer:
    version: int
    flexible: bool
    is_reply: bool
    masks: Masks

    def structure(self, value: Message) -> dict[str, Any]:
        layout = layout_of(type(value), self.version, self.flexible)
        described = {field.name: self._field(value, field) for field in layout.present + layout.tagged}
        if value.unknown_tags:
            described["unknown_tags"] = [[tag, data.hex()] for tag, data in value.unknown_tags]
        return described

    def _field(self, owner: Message, field: FieldLayout) -> Any:
        value = getattr(owner, field.name)
        structure = type(owner).__name__
        if value is None:
            return None
        if field.kind == "records":
            return describe_records(bytes(value), self.masks)
        if field.kind == "bytes":
            return _text(bytes(value))
        if field.structure is None:
            items = value if field.is_array else [value]
            plain = [self.masks.value(structure, field.name, item) for item in items]
            return plain if field.is_array else plain[0]
        if not field.is_array:
            return self.structure(value)
        if self.is_reply and (structure, field.name) not in IN_ORDER:
            value = sorted(value, key=lambda item: _natural_key(item, self.masks))
        return [self.structure(item) for item in value]


def _natural_key(item: Message, masks: Masks) -> str:
    """What an item is sorted by: its own plain fields, ids only by the names they already have."""
    values = [
        masks.known(name, value) for name in item.FIELD_NAMES if _is_plain(value := getattr(item, name))
    ]
    return json.dumps(values)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, int | str | UUID)


def describe_records(data: bytes, masks: Masks) -> Any:
    """Batch by batch and record by record; what is no sequence of batches, as its bytes."""
    try:
        found = [_batch(batch, masks) for batch in batches(data)]
        size = sum(batch.size for batch in batches(data))
    except HeadraceError:
        return {"bytes": data.hex()}
    if size < len(data):
        found.append({"torn_bytes": len(data) - size})
    return found


def _batch(batch: Batch, masks: Masks) -> dict[str, Any]:
    described: dict[str, Any] = {
        name: masks.value("Batch", name, getattr(batch, name))
        for name in (
            "base_offset",
            "last_offset_delta",
            "leader_epoch",
            "attributes",
            "base_timestamp",
            "max_timestamp",
            "producer_id",
            "producer_epoch",
            "base_sequence",
            "count",
        )
    }
    if not batch.attributes & 7:
        described["size"] = batch.size
    described["crc"] = "right" if batch.crc_is_valid() else "wrong"
    try:
        described["records"] = [
            [
                record.offset,
                masks.value("Record", "timestamp", record.timestamp),
                _text(record.key),
                _text(record.value),
                [[key, _text(value)] for key, value in record.headers],
            ]
            for record in read_records(batch)
        ]
    except (HeadraceError, ValueError):
        described["payload"] = batch.payload.hex()
    return described


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    if len(data) > 200:
        return f"{len(data)} bytes of {data[:1].hex()}"
    return data.decode("ascii") if data.isascii() else "hex:" + data.hex()
