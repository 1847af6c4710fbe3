"""Fetch sessions (KIP-227): epochs, errors, what a reply leaves out, who is pushed out of a full cache."""

from typing import Any

import pytest

from headrace.api.fetch_sessions import EPOCH_MAX, EVICTION_MS, FetchSessions, FetchTarget, next_epoch
from headrace.errors import ErrorCode
from headrace.protocol.messages.fetch import FetchPartition
from headrace.testing.entropy import SeededEntropy
from headrace.types import ZERO_UUID
from tests.support_data import TOPIC, DataNode, start_node, topic_id_of
from tests.support_fetch import fetch, parts, records_of, wanted
from tests.support_log import on_loop


async def with_partitions(count: int = 3, **fields: Any) -> DataNode:
    node = await start_node(**fields)
    for index in range(count):
        node.assign(partition=index)
    return node


async def begin(node: DataNode, count: int = 3, **fields: Any) -> int:
    """Begin a session over some partitions; returns its id."""
    response = await fetch(node, *(wanted(0, index) for index in range(count)), session=(0, 0), **fields)
    assert response.error_code == ErrorCode.NONE
    return int(response.session_id)


def indexes(response: Any) -> list[int]:
    return [part.partition_index for part in parts(response)]


@on_loop
async def test_a_full_fetch_begins_a_session_and_tells_everything() -> None:
    node = await with_partitions()
    response = await fetch(node, wanted(0, 0), wanted(0, 1), session=(0, 0))
    assert response.session_id > 0
    assert indexes(response) == [0, 1]


@on_loop
async def test_without_an_epoch_there_is_no_session() -> None:
    node = await with_partitions()
    response = await fetch(node, wanted(0, 0), session=(0, -1))
    assert (response.session_id, len(node.services.fetch_sessions)) == (0, 0)


@on_loop
async def test_an_incremental_reply_leaves_out_what_has_not_changed() -> None:
    """Promise 10."""
    node = await with_partitions()
    session = await begin(node)
    assert indexes(await fetch(node, session=(session, 1))) == []
    node.append(1, index=1)
    changed = await fetch(node, session=(session, 2))
    assert (changed.session_id, indexes(changed)) == (session, [1])
    moved = await fetch(node, wanted(1, 1), session=(session, 3))
    assert indexes(moved) == [], "the high watermark was told with the records"


@on_loop
async def test_a_moved_log_start_and_an_error_are_told() -> None:
    node = await with_partitions()
    node.append(4, index=2)
    session = await begin(node)
    await fetch(node, wanted(4, 2), session=(session, 1))
    node.partition(TOPIC, 2).delete_records(2)
    started = await fetch(node, session=(session, 2))
    assert [(part.partition_index, part.log_start_offset) for part in parts(started)] == [(2, 2)]
    bad = await fetch(node, wanted(99, 2), session=(session, 3))
    assert [part.error_code for part in parts(bad)] == [ErrorCode.OFFSET_OUT_OF_RANGE]
    again = await fetch(node, session=(session, 4))
    assert indexes(again) == [2], "an error is told every time"
    healed = await fetch(node, wanted(4, 2), session=(session, 5))
    assert [(part.partition_index, part.error_code) for part in parts(healed)] == [(2, ErrorCode.NONE)]


@on_loop
async def test_partitions_are_added_changed_and_forgotten() -> None:
    node = await with_partitions()
    session = await begin(node, 2)
    for index in range(3):
        node.append(1, index=index)
    assert indexes(await fetch(node, wanted(0, 2), session=(session, 1), forgotten=(0,))) == [1, 2]
    known = node.services.fetch_sessions.get(session)
    assert known is not None
    assert [target.index for target in known.targets.values()] == [1, 2]


@on_loop
async def test_a_session_without_partitions_ends() -> None:
    node = await with_partitions()
    session = await begin(node, 1)
    response = await fetch(node, session=(session, 1), forgotten=(0,))
    assert (response.session_id, len(node.services.fetch_sessions)) == (0, 0)
    gone = await fetch(node, session=(session, 2))
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [2, 7])
@on_loop
async def test_a_wrong_epoch_is_refused_and_the_session_stays(epoch: int) -> None:
    node = await with_partitions()
    session = await begin(node)
    wrong = await fetch(node, session=(session, epoch))
    assert (wrong.error_code, wrong.session_id, indexes(wrong)) == (
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        0,
        [],
    )
    assert (await fetch(node, session=(session, 1))).error_code == ErrorCode.NONE


@on_loop
async def test_an_unknown_session_is_refused() -> None:
    node = await with_partitions()
    response = await fetch(node, wanted(0), session=(77, 1))
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@on_loop
async def test_a_session_keeps_to_ids_or_to_names() -> None:
    node = await with_partitions()
    by_id = await begin(node, version=13)
    by_name = await begin(node, version=12)
    assert (await fetch(node, session=(by_id, 1), version=12)).error_code == 106
    assert (await fetch(node, session=(by_name, 1), version=13)).error_code == 106


@on_loop
async def test_a_full_fetch_ends_the_session_it_names() -> None:
    node = await with_partitions()
    session = await begin(node)
    other = await fetch(node, wanted(0), session=(session, 0))
    assert other.session_id not in (0, session)
    last = await fetch(node, wanted(0), session=(other.session_id, -1))
    assert (last.session_id, len(node.services.fetch_sessions)) == (0, 0)


@on_loop
async def test_a_repeated_request_does_not_answer_the_first_one_twice() -> None:
    node = await with_partitions()
    session = await begin(node)
    first = await fetch(node, session=(session, 1))
    assert first.error_code == ErrorCode.NONE
    assert (await fetch(node, session=(session, 1))).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


@on_loop
async def test_partitions_with_data_go_to_the_end_so_that_all_get_their_turn() -> None:
    node = await with_partitions()
    session = await begin(node)
    for index in range(3):
        for _ in range(3):
            node.append(1, index=index)
    order = []
    for epoch in range(1, 4):
        response = await fetch(node, session=(session, epoch), max_bytes=1)
        order += [part.partition_index for part in parts(response) if records_of(part)]
    assert order == [0, 1, 2]


@on_loop
async def test_a_recreated_topic_in_a_session_is_told_apart() -> None:
    """Promise 10."""
    node = await with_partitions(1)
    session = await begin(node, 1)
    node.delete_topic()
    deleted = await fetch(node, session=(session, 1))
    assert [part.error_code for part in parts(deleted)] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    node.assign(topic_id=topic_id_of(TOPIC, 1))
    anew = await fetch(node, session=(session, 2))
    assert [part.error_code for part in parts(anew)] == [ErrorCode.INCONSISTENT_TOPIC_ID]


@on_loop
async def test_a_topic_that_comes_later_is_resolved_in_its_session() -> None:
    node = await start_node()
    response = await fetch(node, wanted(0), session=(0, 0))
    assert [part.error_code for part in parts(response)] == [ErrorCode.UNKNOWN_TOPIC_ID]
    node.assign()
    found = await fetch(node, session=(response.session_id, 1))
    assert [part.error_code for part in parts(found)] == [ErrorCode.NONE]


def test_epochs_count_up_and_pass_by_zero() -> None:
    assert [next_epoch(each) for each in (-1, 0, 1, EPOCH_MAX)] == [-1, 1, 2, 1]


# The cache


def cache(slots: int = 2) -> FetchSessions:
    return FetchSessions(SeededEntropy(), slots)


def create(sessions: FetchSessions, size: int, now_ms: int, *, privileged: bool = False) -> int | None:
    targets = [FetchTarget("topic", ZERO_UUID, FetchPartition(partition=index)) for index in range(size)]
    made = sessions.create(
        {target.key: target for target in targets}, by_topic_id=False, is_privileged=privileged, now_ms=now_ms
    )
    return None if made is None else made.id


def test_a_full_cache_takes_no_session_from_those_in_use() -> None:
    sessions = cache()
    create(sessions, 1, 0)
    create(sessions, 1, 0)
    assert create(sessions, 100, EVICTION_MS) is None
    assert (len(sessions), sessions.evictions, sessions.partition_count) == (2, 0, 2)


def test_a_stale_session_is_pushed_out_the_longest_unused_first() -> None:
    sessions = cache()
    first, second = create(sessions, 5, 0), create(sessions, 5, 0)
    assert first is not None
    assert second is not None
    used = sessions.get(first)
    assert used is not None
    sessions.touch(used, 1)
    assert create(sessions, 1, EVICTION_MS + 1) is not None
    assert sessions.get(second) is None
    assert sessions.get(first) is not None
    assert sessions.evictions == 1


@pytest.mark.parametrize(("size", "taken"), [(5, True), (2, False)])
def test_an_old_session_gives_way_to_a_larger_one(size: int, taken: bool) -> None:
    sessions = cache(1)
    old = create(sessions, 3, 0)
    assert old is not None
    used = sessions.get(old)
    assert used is not None
    sessions.touch(used, EVICTION_MS + 1)
    assert (create(sessions, size, EVICTION_MS + 2) is not None) == taken


def test_followers_push_out_consumers_at_once_and_not_the_other_way_round() -> None:
    sessions = cache(1)
    create(sessions, 100, 0)
    follower = create(sessions, 1, 1, privileged=True)
    assert follower is not None
    assert create(sessions, 100, 2) is None
    assert create(sessions, 100, 2, privileged=True) is None
    assert sessions.get(follower) is not None


def test_no_slots_mean_no_sessions() -> None:
    assert create(cache(0), 1, 0) is None
