"""What may differ between two answers: ids, times and addresses, each by a named rule. All else is compared.

The rules do not drop a value, they replace it: an id by a name that says which of the scenario's ids it is, a
time of the run by the word for it, an address by its role. A value that a rule does not expect in its place
stays and is compared.
"""

import base64
import re
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from headrace.types import ZERO_UUID

ID_FIELDS = {
    "producer_id": "producer",
    "ongoing_txn_producer_id": "producer",
    "session_id": "session",
}
#: Below these lie the values that say there is none.
_ID_MIN = {"producer": 0, "session": 1}
#: A time is masked when it lies in the run; a time that a request chose is compared.
TIME_FIELDS = frozenset(
    {
        "base_timestamp",
        "last_caught_up_timestamp",
        "last_fetch_timestamp",
        "last_timestamp",
        "log_append_time_ms",
        "max_timestamp",
        "timestamp",
        "transaction_start_time_ms",
    }
)
#: Counters of the metadata log: how far it has come is a kind of time.
EPOCH_FIELDS = frozenset(
    {
        ("ApiVersionsResponse", "finalized_features_epoch"),
        ("DescribeQuorumResponsePartitionData", "high_watermark"),
        ("DescribeQuorumResponsePartitionData", "leader_epoch"),
        ("ReplicaState", "log_end_offset"),
    }
)
#: The machine's disk is an address of sorts; texts on keys are each product's own.
SIZE_FIELDS = frozenset({"total_bytes", "usable_bytes"})
TEXT_FIELDS = frozenset({"documentation"})
_CLOCK_SLACK_MS = 60_000
_DAY_MS = 86_400_000
_TIME_IN_TEXT = re.compile(r"\b\d{13}\b")
#: What the ids that coordinators give to members end in.
_MEMBER_IN_TEXT = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


@dataclass(slots=True)
class Masks:
    """The rules for one scenario on one peer, with the names given to its ids so far."""

    host: str
    ports: dict[int, str]
    data_dir: str
    cluster_id: str
    started_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000 - _CLOCK_SLACK_MS)
    names: dict[tuple[str, object], str] = field(default_factory=dict)

    def value(self, structure: str, name: str, value: Any) -> Any:
        """A field's value as it is compared."""
        if isinstance(value, UUID):
            return self.identity("uuid", value) if value != ZERO_UUID else "zero"
        if isinstance(value, str):
            return self.text(name, value)
        if isinstance(value, int) and not isinstance(value, bool):
            return self._number(structure, name, value)
        return value

    def identity(self, kind: str, value: object) -> str:
        """The name of an id, by order of appearance in the scenario."""
        known = self.names.get((kind, value))
        if known is None:
            count = sum(name.startswith(f"<{kind} ") for name in self.names.values())
            known = self.names[kind, value] = f"<{kind} {count + 1}>"
        return known

    def known(self, name: str, value: object) -> Any:
        """A value to sort by: of an id only the name it has by now."""
        if isinstance(value, UUID):
            return self.names.get(("uuid", value), "")
        if name in ID_FIELDS:
            return self.names.get((ID_FIELDS[name], value), "")
        if isinstance(value, str):
            return _MEMBER_IN_TEXT.sub(lambda found: self.names.get(("member", found[0]), ""), value)
        return value

    def text(self, name: str, text: str) -> str:
        """A string without addresses, paths and ids."""
        if name in TEXT_FIELDS and text:
            return "<text>"
        if name == "host" and text == self.host:
            return "<host>"
        text = text.replace(self.data_dir, "<data>").replace(self.cluster_id, "<cluster>")
        for port, role in self.ports.items():
            text = re.sub(rf"\b{re.escape(self.host)}:{port}\b", role, text)
        text = _MEMBER_IN_TEXT.sub(lambda found: self.identity("member", found[0]), text)
        text = _TIME_IN_TEXT.sub(lambda found: str(self._time(int(found[0]))), text)
        for (_, value), known in self.names.items():
            if isinstance(value, UUID):
                text = text.replace(uuid_text(value), known)
        return text

    def _number(self, structure: str, name: str, value: int) -> Any:
        if name in ID_FIELDS and value >= _ID_MIN[ID_FIELDS[name]]:
            return self.identity(ID_FIELDS[name], value)
        if name == "port" and value in self.ports:
            return self.ports[value]
        if name in TIME_FIELDS:
            return self._time(value)
        if (structure, name) in EPOCH_FIELDS and value > 0:
            return "<epoch>"
        if name in SIZE_FIELDS and value > 0:
            return "<bytes>"
        return value

    def _time(self, timestamp_ms: int) -> Any:
        now_ms = time.time_ns() // 1_000_000
        if self.started_ms <= timestamp_ms <= now_ms + _CLOCK_SLACK_MS:
            return "<now>"
        if abs(timestamp_ms - now_ms) < _DAY_MS:
            return "<earlier today>" if timestamp_ms < now_ms else "<later today>"
        return timestamp_ms


def uuid_text(value: UUID) -> str:
    """An id as Kafka writes it in messages and files."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()
