"""The voters of the metadata quorum: from the configuration, or from the log's own records."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from headrace.config.endpoints import Address
from headrace.errors import HeadraceError
from headrace.log.partition_metadata import decode_id
from headrace.protocol.disk_records.control_records import (
    Endpoint,
    KRaftVersionFeature,
    VotersRecord,
    VotersRecordVoter,
)
from headrace.types import ZERO_UUID

KRAFT_VERSION_MIN: Final = 0
KRAFT_VERSION_MAX: Final = 1
_INITIAL_CONTROLLER: Final = re.compile(r"(-?\d+)@(?:\[([^\]]+)\]|([^:\[\]]+)):(\d+):(.+)")


class InvalidVoters(HeadraceError):
    """A description of voters that cannot be used."""


@dataclass(slots=True, frozen=True)
class Voter:
    """One voter. Its directory is not known where the configuration lists the voters."""

    id: int
    directory_id: UUID = ZERO_UUID
    endpoints: tuple[tuple[str, Address], ...] = ()
    kraft_version_min: int = KRAFT_VERSION_MIN
    kraft_version_max: int = KRAFT_VERSION_MAX


def voters_of_record(record: VotersRecord) -> tuple[Voter, ...]:
    """The voters that a record in the log names."""
    return tuple(
        Voter(
            voter.voter_id,
            voter.voter_directory_id,
            tuple((each.name, Address(each.host, each.port)) for each in voter.endpoints),
            voter.k_raft_version_feature.min_supported_version,
            voter.k_raft_version_feature.max_supported_version,
        )
        for voter in record.voters
    )


def record_of_voters(voters: Iterable[Voter]) -> VotersRecord:
    """The record that names these voters."""
    return VotersRecord(
        voters=[
            VotersRecordVoter(
                voter_id=voter.id,
                voter_directory_id=voter.directory_id,
                endpoints=[
                    Endpoint(name=name, host=address.host, port=address.port)
                    for name, address in voter.endpoints
                ],
                k_raft_version_feature=KRaftVersionFeature(
                    min_supported_version=voter.kraft_version_min,
                    max_supported_version=voter.kraft_version_max,
                ),
            )
            for voter in voters
        ]
    )


def static_voters(addresses: dict[int, Address], listener: str) -> tuple[Voter, ...]:
    """The voters of `controller.quorum.voters`."""
    return tuple(
        Voter(node_id, endpoints=((listener, address),)) for node_id, address in sorted(addresses.items())
    )


def parse_initial_controllers(text: str, listener: str) -> tuple[Voter, ...]:
    """Voters spelt `id@host:port:directory`, separated by commas."""
    voters: dict[int, Voter] = {}
    for entry in text.split(","):
        voter = _parse_voter(entry.strip(), listener)
        if voter.id in voters:
            raise InvalidVoters(f"Duplicate voter id {voter.id} in {text}")
        voters[voter.id] = voter
    return tuple(voters[node_id] for node_id in sorted(voters))


def _parse_voter(entry: str, listener: str) -> Voter:
    match = _INITIAL_CONTROLLER.fullmatch(entry)
    if match is None:
        raise InvalidVoters(f"{entry!r} is not a voter: id@host:port:directory is expected")
    node_id, port = int(match[1]), int(match[4])
    if node_id < 0:
        raise InvalidVoters(f"Invalid negative node id {node_id} in dynamic voter string")
    if not 0 <= port <= 65535:
        raise InvalidVoters(f"Invalid port number {port} in dynamic voter string")
    try:
        directory_id = decode_id(match[5])
    except ValueError:
        raise InvalidVoters(f"Failed to parse directory ID {match[5]!r} in dynamic voter string") from None
    return Voter(node_id, directory_id, ((listener, Address(match[2] or match[3], port)),))
