"""Groups and their committed offsets by the client's administrative calls."""

import asyncio

import pytest

from headrace.client.admin.committed_offsets import (
    CommittedOffset,
    commit_offsets,
    committed_offsets,
    delete_offsets,
)
from headrace.client.admin.groups import delete_groups, describe_groups, list_groups
from headrace.client.errors import BrokerRefused, UnsupportedByBroker
from headrace.errors import ErrorCode
from headrace.protocol.codec import encode
from headrace.protocol.disk_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
)
from headrace.protocol.message import Message
from headrace.protocol.messages import consumer_group_describe as new
from headrace.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from headrace.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from headrace.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from headrace.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from headrace.protocol.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from headrace.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from headrace.types import TopicPartition
from tests.support_client_admin import ScriptedCluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def listed(*groups: str, code: int = 0) -> Message:
    found = [
        ListedGroup(group_id=name, protocol_type="consumer", group_state="Empty", group_type="Classic")
        for name in groups
    ]
    return ListGroupsResponse(error_code=code, groups=found)


def test_groups_of_all_brokers_are_listed_once_and_loading_brokers_asked_again() -> None:
    scripted = ScriptedCluster(
        listed("b", "a"),
        listed(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        listed("c", "a"),
        brokers=(1, 2),
    )
    found = asyncio.run(list_groups(scripted.cluster, states=["Empty"], kinds=["classic"]))
    assert [each.group for each in found] == ["a", "b", "c"]
    assert (found[0].kind, found[0].state) == ("classic", "Empty")
    assert [whom for whom, _ in scripted.sent] == [1, 2, 2]
    assert scripted.requests[0].states_filter == ["Empty"]


def test_a_broker_that_refuses_to_list_is_named() -> None:
    scripted = ScriptedCluster(listed(code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    with pytest.raises(BrokerRefused, match="groups of broker 1: CLUSTER_AUTHORIZATION_FAILED"):
        asyncio.run(list_groups(scripted.cluster))


def new_group(code: int = 0, message: str | None = None) -> Message:
    assigned = new.Assignment(topic_partitions=[new.TopicPartitions(topic_name="t", partitions=[1, 0])])
    member = new.Member(member_id="m", member_epoch=3, client_id="c", client_host="/h", assignment=assigned)
    group = new.DescribedGroup(
        group_id="g",
        error_code=code,
        error_message=message,
        group_state="Stable",
        group_epoch=4,
        assignor_name="uniform",
        members=[member],
    )
    return new.ConsumerGroupDescribeResponse(groups=[group])


def test_groups_of_the_new_protocol_are_described() -> None:
    outcomes = asyncio.run(describe_groups(ScriptedCluster(new_group()).cluster, ["g"]))
    found = outcomes.all()["g"]
    assert (found.kind, found.state, found.assignor, found.epoch) == ("consumer", "Stable", "uniform", 4)
    assert found.members[0].assignment == (T0, T1)
    assert found.members[0].epoch == 3
    assert not found.is_simple


def classic_group(
    state: str = "Stable", code: int = 0, *, assignment: bytes = b"", kind: str = "consumer"
) -> Message:
    member = DescribedGroupMember(
        member_id="m", client_id="c", client_host="/h", member_assignment=assignment
    )
    group = DescribedGroup(
        group_id="g",
        error_code=code,
        group_state=state,
        protocol_type=kind,
        protocol_data="range",
        members=[member] if assignment else [],
    )
    return DescribeGroupsResponse(groups=[group])


@pytest.mark.parametrize(
    "first",
    [new_group(ErrorCode.GROUP_ID_NOT_FOUND), UnsupportedByBroker("broker 1", "ConsumerGroupDescribe", "no")],
    ids=["other kind", "old broker"],
)
def test_classic_groups_are_described_with_what_members_told_each_other(first: Message | Exception) -> None:
    topics = [ConsumerProtocolAssignmentTopicPartition(topic="t", partitions=[1, 0])]
    # A version that this client does not know yet has the fields of those that it does.
    data = (
        (9).to_bytes(2, "big") + encode(ConsumerProtocolAssignment(assigned_partitions=topics), 3) + b"more"
    )
    scripted = ScriptedCluster(first, classic_group(assignment=data))
    found = asyncio.run(describe_groups(scripted.cluster, ["g"])).all()["g"]
    assert (found.kind, found.assignor) == ("classic", "range")
    assert found.members[0].assignment == (T0, T1)


def test_a_group_that_nobody_is_a_member_of_may_be_simple() -> None:
    scripted = ScriptedCluster(new_group(ErrorCode.GROUP_ID_NOT_FOUND), classic_group("Empty", kind=""))
    assert asyncio.run(describe_groups(scripted.cluster, ["g"])).all()["g"].is_simple


@pytest.mark.parametrize(
    "second", [classic_group("Dead"), classic_group("Dead", ErrorCode.GROUP_ID_NOT_FOUND)], ids=["old", "new"]
)
def test_a_group_that_is_not_there_is_refused_in_the_brokers_words(second: Message) -> None:
    scripted = ScriptedCluster(new_group(ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found."), second)
    refusal = asyncio.run(describe_groups(scripted.cluster, ["g"])).refused["g"]
    assert str(refusal) == "group 'g': GROUP_ID_NOT_FOUND: Group g not found."


def test_an_assignment_that_can_not_be_read_is_told() -> None:
    scripted = ScriptedCluster(new_group(ErrorCode.GROUP_ID_NOT_FOUND), classic_group(assignment=b"\0\0\xff"))
    with pytest.raises(BrokerRefused, match="assignment"):
        asyncio.run(describe_groups(scripted.cluster, ["g"]))


def test_groups_are_deleted_by_their_coordinators() -> None:
    scripted = ScriptedCluster(
        DeleteGroupsResponse(results=[DeletableGroupResult(group_id="a")]),
        DeleteGroupsResponse(
            results=[DeletableGroupResult(group_id="b", error_code=ErrorCode.NON_EMPTY_GROUP)]
        ),
    )
    outcomes = asyncio.run(delete_groups(scripted.cluster, ["a", "b"]))
    assert set(outcomes.done) == {"a"}
    assert outcomes.refused["b"].code == ErrorCode.NON_EMPTY_GROUP
    assert [whom for whom, _ in scripted.sent] == ["coordinator of a", "coordinator of b"]


def fetched(*partitions: tuple[int, int, int], code: int = 0) -> Message:
    found = [
        OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=5,
            metadata="m",
            error_code=error,
        )
        for index, offset, error in partitions
    ]
    topics = [OffsetFetchResponseTopics(name="t", partitions=found)]
    group = OffsetFetchResponseGroup(group_id="g", error_code=code, topics=topics)
    return OffsetFetchResponse(groups=[group])


def test_committed_offsets_are_fetched_by_topics_names() -> None:
    scripted = ScriptedCluster(fetched((0, 7, 0), (1, -1, 0)))
    found = asyncio.run(committed_offsets(scripted.cluster, "g", [T0, T1]))
    assert found == {T0: CommittedOffset(7, 5, "m"), T1: None}
    (request,) = scripted.requests
    assert [(each.name, each.partition_indexes) for each in request.groups[0].topics] == [("t", [0, 1])]
    assert scripted.options == [{"min_version": 8, "max_version": 9}]


def test_all_that_a_group_has_committed_is_fetched_if_no_partitions_are_named() -> None:
    scripted = ScriptedCluster(fetched((0, 7, 0)))
    assert set(asyncio.run(committed_offsets(scripted.cluster, "g"))) == {T0}
    assert scripted.requests[0].groups[0].topics is None


def test_offsets_of_open_transactions_are_waited_for() -> None:
    unstable = fetched((0, -1, ErrorCode.UNSTABLE_OFFSET_COMMIT))
    scripted = ScriptedCluster(unstable, unstable, fetched((0, 7, 0)))
    found = asyncio.run(committed_offsets(scripted.cluster, "g", [T0], require_stable=True))
    assert found[T0] == CommittedOffset(7, 5, "m")
    assert scripted.requests[0].require_stable


def test_offsets_that_never_become_stable_are_an_error_in_the_end() -> None:
    scripted = ScriptedCluster(fetched((0, -1, ErrorCode.UNSTABLE_OFFSET_COMMIT)))
    with pytest.raises(BrokerRefused, match="UNSTABLE_OFFSET_COMMIT"):
        asyncio.run(committed_offsets(scripted.cluster, "g", [T0], timeout_ms=0))


def test_errors_of_a_group_are_raised() -> None:
    scripted = ScriptedCluster(fetched(code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(BrokerRefused, match="group 'g': GROUP_AUTHORIZATION_FAILED"):
        asyncio.run(committed_offsets(scripted.cluster, "g"))


def committed(*codes: int) -> Message:
    found = [
        OffsetCommitResponsePartition(partition_index=index, error_code=code)
        for index, code in enumerate(codes)
    ]
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=found)])


def test_offsets_are_committed_and_those_of_a_rebalance_again() -> None:
    scripted = ScriptedCluster(committed(0, ErrorCode.REBALANCE_IN_PROGRESS), committed(0, 0))
    outcomes = asyncio.run(commit_offsets(scripted.cluster, "g", {T0: 5, T1: CommittedOffset(6, 2, "note")}))
    assert set(outcomes.all()) == {T0, T1}
    (topic,) = scripted.requests[0].topics
    sent = [
        (each.partition_index, each.committed_offset, each.committed_leader_epoch, each.committed_metadata)
        for each in topic.partitions
    ]
    assert sent == [(0, 5, -1, ""), (1, 6, 2, "note")]
    assert scripted.requests[0].generation_id_or_member_epoch == -1
    assert [each.partition_index for each in scripted.requests[1].topics[0].partitions] == [1]
    assert scripted.options[0] == {"max_version": 9}


def test_a_refused_commit_names_group_and_partition() -> None:
    scripted = ScriptedCluster(committed(ErrorCode.UNKNOWN_MEMBER_ID))
    outcomes = asyncio.run(commit_offsets(scripted.cluster, "g", {T0: 5}))
    assert str(outcomes.refused[T0]) == "offset of group 'g' for t-0: UNKNOWN_MEMBER_ID"


def test_committed_offsets_are_deleted() -> None:
    found = [
        OffsetDeleteResponsePartition(partition_index=0),
        OffsetDeleteResponsePartition(partition_index=1, error_code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),
    ]
    reply = OffsetDeleteResponse(topics=[OffsetDeleteResponseTopic(name="t", partitions=found)])
    outcomes = asyncio.run(delete_offsets(ScriptedCluster(reply).cluster, "g", [T0, T1]))
    assert set(outcomes.done) == {T0}
    assert outcomes.refused[T1].code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_deleting_offsets_of_a_group_that_is_not_there_is_an_error() -> None:
    reply = OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    with pytest.raises(BrokerRefused, match="GROUP_ID_NOT_FOUND"):
        asyncio.run(delete_offsets(ScriptedCluster(reply).cluster, "g", [T0]))
