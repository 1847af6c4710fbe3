"""When progress is committed to a group, and what is made of a coordinator that does not take it."""

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from headrace.client.admin.outcomes import Outcomes
from headrace.client.errors import BrokerRefused, Unreachable
from headrace.errors import ErrorCode
from headrace.spark import group_progress
from headrace.spark.group_progress import GroupProgress
from headrace.spark.offsets import Offsets
from headrace.types import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
OLD, NEW = UUID(int=1), UUID(int=2)


class Coordinator:
    """Takes commits, or does not."""

    def __init__(self) -> None:
        self.commits: list[dict[TopicPartition, int]] = []
        self.failure: Exception | None = None
        self.refused: dict[TopicPartition, BrokerRefused] = {}

    async def commit(
        self, _: object, group: str, offsets: Mapping[TopicPartition, int], **__: object
    ) -> Outcomes[TopicPartition, None]:
        assert group == "g"
        if self.failure is not None:
            raise self.failure
        self.commits.append(dict(offsets))
        return Outcomes({}, self.refused)


@pytest.fixture
def coordinator(monkeypatch: pytest.MonkeyPatch) -> Coordinator:
    found = Coordinator()
    monkeypatch.setattr(group_progress, "commit_offsets", found.commit)
    return found


def commit(progress: GroupProgress, *offsets: Offsets) -> None:
    cluster: Any = None
    for each in offsets:
        asyncio.run(progress.commit(cluster, each))


def test_progress_is_committed_once(coordinator: Coordinator) -> None:
    commit(GroupProgress("g"), Offsets({A: 1}), Offsets({A: 1}), Offsets({A: 2, B: 0}))
    assert coordinator.commits == [{A: 1}, {A: 2, B: 0}]


def test_progress_does_not_go_back(coordinator: Coordinator) -> None:
    commit(GroupProgress("g"), Offsets({A: 5}), Offsets({A: 3}))
    assert coordinator.commits == [{A: 5}]


def test_a_recreated_topic_begins_again(coordinator: Coordinator) -> None:
    commit(GroupProgress("g"), Offsets({A: 5}, {"a": OLD}), Offsets({A: 3}, {"a": NEW}))
    assert coordinator.commits == [{A: 5}, {A: 3}]


def test_nothing_is_not_committed(coordinator: Coordinator) -> None:
    commit(GroupProgress("g"), Offsets({}))
    assert coordinator.commits == []


def test_a_coordinator_that_is_away_is_a_warning_and_tried_again(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    progress = GroupProgress("g")
    retriable = BrokerRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE, None, "group 'g'")
    for failure in (Unreachable("no broker"), retriable):
        coordinator.failure = failure
        commit(progress, Offsets({A: 5}))
        assert "not committed to group 'g'" in caplog.text
    coordinator.failure, coordinator.refused = None, {A: retriable}
    commit(progress, Offsets({A: 5}))
    coordinator.refused = {}
    commit(progress, Offsets({A: 5}))
    assert coordinator.commits == [{A: 5}, {A: 5}]


def test_a_refusal_for_good_fails_the_query(coordinator: Coordinator) -> None:
    refusal = BrokerRefused(ErrorCode.GROUP_AUTHORIZATION_FAILED, None, "group 'g'")
    coordinator.failure = refusal
    with pytest.raises(BrokerRefused, match="GROUP_AUTHORIZATION_FAILED"):
        commit(GroupProgress("g"), Offsets({A: 5}))
    coordinator.failure, coordinator.refused = None, {A: refusal}
    with pytest.raises(BrokerRefused, match="GROUP_AUTHORIZATION_FAILED"):
        commit(GroupProgress("g"), Offsets({A: 5}))
