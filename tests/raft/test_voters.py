"""Voters: of the configuration, of the command line, of the log."""

from uuid import UUID

import pytest

from headrace.config.endpoints import Address
from headrace.log.partition_metadata import decode_id
from headrace.protocol.codec import decode, encode
from headrace.protocol.disk_records.control_records import VotersRecord
from headrace.raft.voters import (
    InvalidVoters,
    Voter,
    parse_initial_controllers,
    record_of_voters,
    static_voters,
    voters_of_record,
)

FIRST = "JEXY6aqzQY-32P5TStzaFg"
SECOND = "MvDxzVmcRsaTz33bUuRU6A"


def test_voters_survive_the_way_through_a_record() -> None:
    voters = (
        Voter(1, UUID(int=77), (("CONTROLLER", Address("host", 9093)), ("OTHER", Address("::1", 9094)))),
        Voter(2, UUID(int=78)),
    )
    record = decode(VotersRecord, 0, encode(record_of_voters(voters), 0))
    assert voters_of_record(record) == voters


def test_initial_controllers_are_parsed_by_id() -> None:
    text = f"1@[2001:db8::1]:8083:{SECOND}, 0@example.com:8082:{FIRST}"
    first, second = parse_initial_controllers(text, "CONTROLLER")
    assert first == Voter(0, decode_id(FIRST), (("CONTROLLER", Address("example.com", 8082)),))
    assert second == Voter(1, decode_id(SECOND), (("CONTROLLER", Address("2001:db8::1", 8083)),))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        f"@host:1:{FIRST}",
        f"1@:1:{FIRST}",
        f"x@host:1:{FIRST}",
        f"-1@host:1:{FIRST}",
        f"1@host:70000:{FIRST}",
        "1@host:1:short",
        "1@host:1",
        f"1@host:1:{FIRST},1@other:1:{SECOND}",
    ],
)
def test_what_is_no_voter_is_refused(text: str) -> None:
    with pytest.raises(InvalidVoters):
        parse_initial_controllers(text, "CONTROLLER")


def test_static_voters_have_no_directory() -> None:
    voters = static_voters({2: Address("b", 2), 1: Address("a", 1)}, "CONTROLLER")
    assert [voter.id for voter in voters] == [1, 2]
    assert voters[0] == Voter(1, endpoints=(("CONTROLLER", Address("a", 1)),))
