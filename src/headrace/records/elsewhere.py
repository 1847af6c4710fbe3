"""Validation in a worker process, for batches that would hold up the event loop."""

from dataclasses import replace
from typing import NamedTuple

from headrace.records.batch import Batch
from headrace.records.rules import Validated, ValidationRules
from headrace.records.shapes import ShapeMemory
from headrace.records.validator import validate


class Answer(NamedTuple):
    """A validated batch as it travels between processes."""

    data: bytes
    max_timestamp: int
    append_time: int
    rebuilt: bool

    def validated(self) -> Validated:
        """The batch, ready to be stamped and written."""
        batch = Batch(memoryview(bytearray(self.data)))
        return Validated(batch, self.max_timestamp, self.append_time, self.rebuilt)


def patient(rules: ValidationRules, decompressed_max: int) -> ValidationRules:
    """The same rules for somebody who has time; they travel without what was learned about shapes."""
    return replace(rules, at_once=False, decompressed_max=decompressed_max, shapes=ShapeMemory())


def validate_elsewhere(data: bytes, rules: ValidationRules, now_ms: int) -> Answer:
    """What a worker runs; RecordsRefused as ever."""
    found = validate(bytearray(data), rules, now_ms)
    return Answer(bytes(found.batch.data), found.max_timestamp, found.append_time, found.rebuilt)
