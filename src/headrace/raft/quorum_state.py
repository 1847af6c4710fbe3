"""The `quorum-state` file: who was voted for and who leads, so that no epoch is used twice.

Version 0 belongs to kraft.version 0 and names the voters; version 1 leaves them to the log and knows the
directory of the one voted for."""

import json
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from headrace.log.checkpoints import CorruptCheckpoint
from headrace.log.partition_metadata import decode_id, encode_id
from headrace.ports import Disk
from headrace.types import ZERO_UUID

FILE_NAME: Final = "quorum-state"
NOBODY: Final = -1
VERSION_MAX: Final = 1


@dataclass(slots=True, frozen=True)
class ElectionState:
    """What a voter has to remember of an election."""

    epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: UUID = ZERO_UUID
    voters: tuple[int, ...] = ()

    def voted(self, epoch: int, voter_id: int, directory_id: UUID) -> "ElectionState":
        """The state of a candidate that has voted for itself."""
        return replace(
            self, epoch=epoch, leader_id=NOBODY, voted_id=voter_id, voted_directory_id=directory_id
        )

    def elected(self) -> "ElectionState":
        """The state of a leader, once the vote is won."""
        return replace(self, leader_id=self.voted_id, voted_id=NOBODY, voted_directory_id=ZERO_UUID)


def read_quorum_state(disk: Disk, directory: str) -> ElectionState | None:
    """What the file says; None if there has never been an election."""
    path = f"{directory}/{FILE_NAME}"
    try:
        content = disk.read(path)
    except FileNotFoundError:
        return None
    try:
        return _parse(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptCheckpoint(path, f"{type(error).__name__}: {error}") from error


def write_quorum_state(disk: Disk, directory: str, state: ElectionState, version: int) -> None:
    """Put the state down; durable on return, as a vote must be."""
    disk.replace(f"{directory}/{FILE_NAME}", encode_quorum_state(state, version))


def encode_quorum_state(state: ElectionState, version: int) -> bytes:
    """The file's content."""
    if version == 0:
        fields: dict[str, object] = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in state.voters],
            "data_version": 0,
        }
    else:
        fields = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_id,
            "votedDirectoryId": encode_id(state.voted_directory_id),
            "data_version": 1,
        }
    return json.dumps(fields, separators=(",", ":")).encode()


def _parse(fields: dict[str, object]) -> ElectionState:
    version = _integer(fields, "data_version")
    if not 0 <= version <= VERSION_MAX:
        raise ValueError(f"data_version {version} is not between 0 and {VERSION_MAX}")
    state = ElectionState(
        epoch=_integer(fields, "leaderEpoch"),
        leader_id=_integer(fields, "leaderId"),
        voted_id=_integer(fields, "votedId"),
    )
    if version == 0:
        voters = fields.get("currentVoters") or []
        if not isinstance(voters, list):
            raise ValueError("currentVoters is not a list")
        return replace(state, voters=tuple(_integer(voter, "voterId") for voter in voters))
    return replace(state, voted_directory_id=decode_id(str(fields["votedDirectoryId"])))


def _integer(fields: dict[str, object], name: str) -> int:
    value = fields[name]
    if not isinstance(value, int):
        raise ValueError(f"{name} is {value!r}, not a number")
    return value
