"""What the quorum's own records say: the version of its protocol and who votes, at every offset."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from headrace.protocol.disk_records.control_records import KRaftVersionRecord, VotersRecord
from headrace.raft.voters import Voter, voters_of_record
from headrace.records.quorum_control import QuorumRecord

#: The offset under which the records of a bootstrap snapshot are filed: before everything.
BEFORE_LOG: Final = -1


class ControlState:
    """The history of kraft.version and of the voters' sets."""

    __slots__ = ("_versions", "_voters")

    def __init__(self) -> None:
        self._versions: list[tuple[int, int]] = []
        self._voters: list[tuple[int, tuple[Voter, ...]]] = []

    @property
    def kraft_version(self) -> int:
        """The latest version."""
        return self._versions[-1][1] if self._versions else 0

    @property
    def voters(self) -> tuple[Voter, ...] | None:
        """The latest voters; None if no record has named them."""
        return self._voters[-1][1] if self._voters else None

    @property
    def voters_offset(self) -> int | None:
        """Where the latest voters were named."""
        return self._voters[-1][0] if self._voters else None

    def at(self, offset: int) -> tuple[int, tuple[Voter, ...] | None]:
        """Version and voters as they were with everything up to `offset` in force."""
        versions = bisect_right(self._versions, offset, key=lambda entry: entry[0])
        voters = bisect_right(self._voters, offset, key=lambda entry: entry[0])
        return (
            self._versions[versions - 1][1] if versions else 0,
            self._voters[voters - 1][1] if voters else None,
        )

    def apply(self, records: Sequence[QuorumRecord], offset: int | None = None) -> None:
        """Take over records of the log, or of a snapshot whose last offset is given."""
        for record in records:
            place = record.offset if offset is None else offset
            match record.message:
                case KRaftVersionRecord() as message:
                    self._versions.append((place, message.k_raft_version))
                case VotersRecord() as message:
                    self._voters.append((place, voters_of_record(message)))
                case _:
                    continue
