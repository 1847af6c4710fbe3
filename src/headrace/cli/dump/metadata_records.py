"""Decodes the records of `__cluster_metadata`, in logs and in snapshots."""

import re

from headrace.cli.dump.line import Fields
from headrace.cli.dump.message_json import message_json
from headrace.cli.dump.record_contents import ShownRecord
from headrace.cli.dump.typed_record import NotReadable, read_typed_record
from headrace.protocol.record_table import METADATA_RECORDS
from headrace.records.reader import Record

_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


def show_metadata_record(record: Record) -> ShownRecord:
    """The value as type, version and data; metadata records have no keys."""
    try:
        message, version = read_typed_record(record.value, METADATA_RECORDS)
    except NotReadable as error:
        return ShownRecord(None, f"Error at {record.offset}, skipping. {error}")
    shown: Fields = {
        "type": _WORD_START.sub("_", type(message).__name__).upper(),
        "version": version,
        "data": message_json(message, version),
    }
    return ShownRecord(None, shown)
