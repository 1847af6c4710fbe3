"""Committed offsets: kept, fetched, in transactions, deleted, expired."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ErrorCode
from headrace.groups.offset_expiry import DeletedTopic
from headrace.groups.offset_records import offset_write, topic_tag
from headrace.groups.settings import GroupSettings
from headrace.protocol.disk_records.offsets import OffsetCommitKey, OffsetCommitValue
from headrace.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.protocol.prefixed import GROUP_LOG
from headrace.types import ZERO_UUID
from tests.support_groups import GROUP, GroupContext, serving
from tests.support_log import on_loop

DAY_MS = 86_400_000
RETENTION_MS = 7 * DAY_MS
NOTHING = (-1, 0)


def offset_keys(context: GroupContext) -> list[int]:
    return [key.partition for key, _ in context.written() if isinstance(key, OffsetCommitKey)]


@given(
    st.text(max_size=20),
    st.integers(0, 1000),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    st.text(max_size=300),
    st.integers(-1, 2**62),
    st.one_of(st.just(ZERO_UUID), st.uuids()),
)
def test_offsets_are_encoded_as_the_codec_would(
    name: str, partition: int, offset: int, epoch: int, metadata: str, now_ms: int, topic_id: UUID
) -> None:
    record = offset_write(
        name,
        name,
        partition,
        offset,
        epoch,
        metadata,
        now_ms,
        topic_id,
        topic_tag(topic_id),
    )
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=epoch,
        metadata=metadata,
        commit_timestamp=now_ms,
        topic_id=topic_id,
    )
    expected = GROUP_LOG.encode_key(record.key), GROUP_LOG.encode_value(value, record.version)
    assert record.encoded == expected


@on_loop
async def test_what_is_committed_is_found_again_with_its_metadata() -> None:
    """Promise 20."""
    async with serving() as context:
        assert context.commit({0: 10, 3: 7}, metadata="ünïcödé 𝄞") == 0
        assert context.fetch(0, 1, 3) == [(10, 0), NOTHING, (7, 0)]
        found = context.shard.offsets.committed.get(GROUP, "topic", 0)
        assert found is not None
        assert (found.metadata, found.commit_timestamp) == ("ünïcödé 𝄞", context.node.clock.now_ms())


@pytest.mark.parametrize(
    ("metadata", "code"), [("x" * 4096, 0), ("x" * 4097, 12), ("𝄞" * 2048, 0), ("𝄞" * 2049, 12)]
)
@on_loop
async def test_metadata_are_as_long_as_java_counts(metadata: str, code: int) -> None:
    async with serving() as context:
        assert context.commit({0: 1}, metadata=metadata) == code
        assert context.fetch(0) == [NOTHING if code else (1, 0)]


@on_loop
async def test_a_group_without_members_takes_commits_of_anybody_and_one_with_members_does_not() -> None:
    async with serving() as context:
        assert context.commit({0: 1}) == 0
        assert context.group().is_simple
        (member,) = context.stable()
        assert context.commit({0: 2}) == ErrorCode.UNKNOWN_MEMBER_ID
        assert context.commit({0: 2}, member_id=member.member_id, generation=1) == 0
        assert (
            context.commit({0: 3}, member_id=member.member_id, generation=0) == ErrorCode.ILLEGAL_GENERATION
        )
        assert context.fetch(0) == [(2, 0)]


@on_loop
async def test_offsets_of_a_transaction_count_when_it_is_committed() -> None:
    """Promise 18."""
    async with serving() as context:
        context.commit({0: 1})
        context.commit_in_transaction(7, {0: 10, 1: 11})
        assert context.fetch(0, 1) == [(1, 0), NOTHING]
        unstable = (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        assert context.fetch(0, 1, 2, stable=True) == [unstable, unstable, NOTHING]
        assert not await context.differences()
        context.end_transaction(7, True)
        assert context.fetch(0, 1, stable=True) == [(10, 0), (11, 0)]


@on_loop
async def test_offsets_of_an_aborted_transaction_are_forgotten() -> None:
    async with serving() as context:
        context.commit({0: 1})
        context.commit_in_transaction(7, {0: 10, 1: 11})
        context.commit_in_transaction(8, {0: 20})
        context.end_transaction(7, False)
        assert context.fetch(0, 1) == [(1, 0), NOTHING]
        assert context.fetch(0, stable=True)[0][1] == ErrorCode.UNSTABLE_OFFSET_COMMIT
        context.end_transaction(8, True)
        assert context.fetch(0, stable=True) == [(20, 0)]


@on_loop
async def test_a_commit_after_that_of_a_transaction_is_not_replaced_by_it() -> None:
    async with serving() as context:
        context.commit_in_transaction(7, {0: 10})
        context.commit({0: 30})
        context.end_transaction(7, True)
        assert context.fetch(0) == [(30, 0)]


@on_loop
async def test_deleting_an_offset_takes_it_out_of_open_transactions() -> None:
    async with serving() as context:
        context.commit_in_transaction(7, {0: 10, 1: 11})
        request = OffsetDeleteRequest(
            group_id=GROUP,
            topics=[
                OffsetDeleteRequestTopic(
                    name="topic", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
                )
            ],
        )
        context.runtime.write(0, lambda shard, now_ms: shard.commits.delete(request)).result()
        assert context.fetch(0, stable=True) == [NOTHING]
        context.end_transaction(7, True)
        assert context.fetch(0, 1) == [NOTHING, (11, 0)]


@on_loop
async def test_deleting_a_group_takes_all_its_offsets_away_and_pending_ones() -> None:
    async with serving() as context:
        context.commit({0: 1, 1: 2})
        context.commit_in_transaction(7, {1: 5, 2: 6})
        results = await context.coordinator.delete([GROUP, "other"])
        assert [result.error_code for result in results] == [0, ErrorCode.GROUP_ID_NOT_FOUND]
        context.end_transaction(7, True)
        assert context.fetch(0, 1, 2) == [NOTHING] * 3
        assert context.shard.groups.find(GROUP) is None
        assert sorted(offset_keys(context)[4:]) == [0, 1, 2]


@on_loop
async def test_offsets_of_a_group_without_members_expire_and_so_does_the_group() -> None:
    """Promise 20."""
    async with serving() as context:
        (member,) = context.stable()
        context.commit({0: 1}, member_id=member.member_id, generation=1)
        context.leave(member.member_id)
        context.node.clock.advance(RETENTION_MS - 1)
        assert context.shard.expire(context.node.clock.now_ms()).records == []
        context.node.clock.advance(1)
        context.runtime.write(0, lambda shard, now_ms: shard.expire(now_ms)).result()
        assert context.fetch(0) == [NOTHING]
        assert context.shard.groups.find(GROUP) is None
        assert context.counters.offset_expirations == 1


@on_loop
async def test_offsets_of_members_stay_as_long_as_they_are_subscribed() -> None:
    async with serving() as context:
        (member,) = context.stable(session_ms=1_800_000)
        context.commit({0: 1}, topic="topic", member_id=member.member_id, generation=1)
        context.commit({0: 2}, topic="other", member_id=member.member_id, generation=1)
        later = context.node.clock.now_ms() + RETENTION_MS
        gone = [record.key for record in context.shard.expire(later).records]
        assert [key.topic for key in gone if isinstance(key, OffsetCommitKey)] == ["other"]
        assert len(gone) == 1


@on_loop
async def test_offsets_of_simple_consumers_expire_one_by_one() -> None:
    async with serving() as context:
        context.commit({0: 1})
        context.node.clock.advance(DAY_MS)
        context.commit({1: 1})
        context.node.clock.advance(RETENTION_MS - DAY_MS)
        context.runtime.write(0, lambda shard, now_ms: shard.expire(now_ms)).result()
        assert context.fetch(0, 1) == [NOTHING, (1, 0)]
        context.node.clock.advance(DAY_MS)
        context.runtime.write(0, lambda shard, now_ms: shard.expire(now_ms)).result()
        assert len(context.shard.groups) == 0


@on_loop
async def test_offsets_in_open_transactions_do_not_expire() -> None:
    """Promise 18."""
    async with serving() as context:
        context.commit({0: 1})
        context.commit_in_transaction(7, {0: 10})
        later = context.node.clock.now_ms() + RETENTION_MS
        assert context.shard.expire(later).records == []
        context.end_transaction(7, False)
        assert len(context.shard.expire(later).records) == 2


@on_loop
async def test_a_client_may_say_when_its_offset_expires() -> None:
    async with serving() as context:
        context.commit({0: 1}, retention_ms=1_000)
        value = context.written()[0][1]
        assert isinstance(value, OffsetCommitValue)
        assert value.expire_timestamp == context.node.clock.now_ms() + 1_000
        context.node.clock.advance(1_000)
        assert len(context.shard.expire(context.node.clock.now_ms()).records) == 2


@on_loop
async def test_expiry_runs_by_itself_again_and_again() -> None:
    settings = GroupSettings(retention_ms=5_000, retention_check_interval_ms=2_000)
    async with serving(settings=settings) as context:
        for offset in range(2):
            context.commit({0: offset})
            context.pass_time(8_000)
            assert context.fetch(0) == [NOTHING]


@on_loop
async def test_offsets_of_deleted_topics_go_unless_they_are_of_another_topic_of_that_name() -> None:
    async with serving() as context:
        context.commit({0: 1}, topic="gone")
        context.commit({0: 2}, topic="kept")
        context.commit_in_transaction(7, {1: 3}, topic="gone")
        topics = [DeletedTopic(ZERO_UUID, "gone")]
        context.runtime.write(0, lambda shard, now_ms: shard.on_topics_deleted(topics)).result()
        context.end_transaction(7, True)
        assert context.fetch(0, 1, topic="gone") == [NOTHING] * 2
        assert context.fetch(0, topic="kept") == [(2, 0)]
