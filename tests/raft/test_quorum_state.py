"""The quorum-state file, version 0 and 1."""

import json
from uuid import UUID

import pytest

from headrace.log.checkpoints import CorruptCheckpoint
from headrace.raft.quorum_state import (
    ElectionState,
    encode_quorum_state,
    read_quorum_state,
    write_quorum_state,
)
from headrace.testing.memory_disk import MemoryDisk
from headrace.types import ZERO_UUID

DIRECTORY = "/data/__cluster_metadata-0"
VOTED = UUID("d3398b88-b159-4b3c-9963-b24e8ecf3a3c")


def disk() -> MemoryDisk:
    made = MemoryDisk()
    made.make_directory(DIRECTORY)
    return made


def test_the_content_is_byte_for_byte_what_kafka_writes() -> None:
    leader = ElectionState(epoch=1, leader_id=1, voters=(1,))
    assert encode_quorum_state(leader, 0) == (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    assert encode_quorum_state(leader, 1) == (
        b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
        b'"data_version":1}'
    )


@pytest.mark.parametrize("version", [0, 1])
def test_what_is_written_is_read_back(version: int) -> None:
    state = ElectionState(voters=(1, 2) if version == 0 else ()).voted(7, 2, VOTED)
    storage = disk()
    write_quorum_state(storage, DIRECTORY, state, version)
    found = read_quorum_state(storage, DIRECTORY)
    assert found is not None
    assert (found.epoch, found.voted_id, found.leader_id, found.voters) == (7, 2, -1, state.voters)
    assert found.voted_directory_id == (VOTED if version == 1 else ZERO_UUID)


def test_a_won_vote_makes_a_leader_without_vote() -> None:
    leader = ElectionState(voters=(4,)).voted(3, 4, VOTED).elected()
    assert (leader.epoch, leader.leader_id, leader.voted_id) == (3, 4, -1)


def test_there_may_be_no_file_yet() -> None:
    assert read_quorum_state(disk(), DIRECTORY) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        json.dumps({"leaderId": 1}).encode(),
        json.dumps({"leaderId": 1, "leaderEpoch": 1, "votedId": -1, "data_version": 2}).encode(),
        json.dumps({"leaderId": "x", "leaderEpoch": 1, "votedId": -1, "data_version": 0}).encode(),
        json.dumps({"leaderId": 1, "leaderEpoch": 1, "votedId": -1, "data_version": 1}).encode(),
    ],
)
def test_a_damaged_file_is_named(content: bytes) -> None:
    storage = disk()
    storage.replace(f"{DIRECTORY}/quorum-state", content)
    with pytest.raises(CorruptCheckpoint, match="quorum-state"):
        read_quorum_state(storage, DIRECTORY)
