"""Offsets that groups commit, ask for and delete, in every version, right and wrong."""

from headrace.protocol.messages.delete_groups import DeleteGroupsRequest
from headrace.protocol.messages.describe_groups import DescribeGroupsRequest
from headrace.protocol.messages.offset_commit import OffsetCommitRequest
from headrace.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.answers.group_requests import (
    await_groups,
    commit,
    delete_offsets,
    fetch_offsets,
    group_offsets,
    stable,
    subscription,
)
from tests.answers.requests import UNKNOWN_ID, create_topic, delete_topic, versions
from tests.answers.session import Session


def simple_consumers(session: Session) -> None:
    """Offsets without members: what is committed is found again."""
    await_groups(session)
    topic = "simple-commits"
    ids = {topic: create_topic(session, topic, partitions=2)}
    for version in versions(OffsetCommitRequest):
        request = commit(f"simple-{version}", {topic: {0: 10 + version, 1: 2}}, metadata="m", ids=ids)
        session.ask("two partitions", request, version)
    for version in versions(OffsetFetchRequest):
        session.ask("found", fetch_offsets("simple-8", {topic: [0, 1, 2]}, version, ids=ids), version)
        session.ask("of no group", fetch_offsets("no-such", {topic: [0]}, version, ids=ids), version)
        session.ask("no topics", fetch_offsets("simple-8", {}, version), version)
    for version in versions(OffsetFetchRequest, since=2):
        session.ask("all", fetch_offsets("simple-8", None, version), version)
        session.ask("all of no group", fetch_offsets("no-such", None, version), version)
    for version in versions(OffsetFetchRequest, since=7):
        wanted = fetch_offsets("simple-8", {topic: [0]}, version, ids=ids, stable=True)
        session.ask("stable ones", wanted, version)
    session.ask("the group", DescribeGroupsRequest(groups=["simple-8"]), 6)


def wrong_commits(session: Session) -> None:
    await_groups(session)
    topic = "wrong-commits"
    ids = {topic: create_topic(session, topic)}
    group = "wrong-commits"
    for version in versions(OffsetCommitRequest):
        known = ids if version < 10 else ids | {"no-such": UNKNOWN_ID}
        offsets = {topic: {0: 1, 7: 1}, "no-such": {0: 1}}
        session.ask("missing topics and partitions", commit(group, offsets, ids=known), version)
        session.ask("only missing ones", commit(group, {"no-such": {0: 1, 1: 1}}, ids=known), version)
        session.ask("a member of nothing", commit("no-such", {topic: {0: 1}}, generation=1, ids=ids), version)
        request = commit("no-such", {topic: {0: 1}}, member="somebody", generation=0, ids=ids)
        session.ask("somebody of nothing", request, version)
        session.ask("nothing to say", commit(group, {topic: {0: 3}}, metadata=None, ids=ids), version)
        session.ask("a negative offset", commit(group, {topic: {0: -5}}, ids=ids), version)
        session.ask("no topics", commit(group, {}), version)
        session.ask("no partitions", commit(group, {topic: {}}, ids=ids), version)
    for version in (2, 10):
        long = commit(group, {topic: {0: 1}}, metadata="x" * 4097, ids=ids)
        session.ask("too much to say", long, version)
        just = commit(group, {topic: {0: 1}}, metadata="x" * 4096, ids=ids)
        session.ask("as much as may be", just, version)
    session.ask("no group", commit("", {topic: {0: 5}}), 8)
    session.ask("of no group", fetch_offsets("", {topic: [0]}, 7), 7)
    session.ask("wide characters", commit(group, {topic: {0: 5}}, metadata="𝄞" * 2048), 8)
    session.ask("too wide", commit(group, {topic: {0: 5}}, metadata="𝄞" * 2049), 8)
    session.ask("a member in an empty group", commit(group, {topic: {0: 5}}, member="somebody"), 8)
    request = commit(group, {topic: {0: 5}}, member="somebody", generation=0)
    session.ask("a generation in an empty group", request, 8)
    session.ask("an instance in an empty group", commit(group, {topic: {0: 5}}, instance="one"), 8)
    session.ask("what is there now", fetch_offsets(group, {topic: [0]}, 8), 8)


def several_groups(session: Session) -> None:
    await_groups(session)
    topic = "several-commits"
    ids = {topic: create_topic(session, topic, partitions=2)}
    for at in range(2):
        session.ask("one", commit(f"several-{at}", {topic: {at: at}}, ids=ids), 8)
    for version in versions(OffsetFetchRequest, since=8):
        groups = [
            group_offsets("several-0", {topic: [0, 1]}, ids=ids),
            group_offsets("no-such", {topic: [0]}, ids=ids),
            group_offsets("several-1", None),
            group_offsets("several-1", {"no-such": [3]}, ids={"no-such": UNKNOWN_ID}),
        ]
        session.ask("several", OffsetFetchRequest(groups=groups), version)
        session.ask("no groups", OffsetFetchRequest(), version)
    session.ask("without an id", fetch_offsets("several-0", {topic: [0]}, 10), 10)


def deletions(session: Session) -> None:
    await_groups(session)
    topic = "deleted-commits"
    create_topic(session, topic, partitions=3)
    group = "deleting"
    session.ask("committing", commit(group, {topic: {0: 1, 1: 2}}), 8)
    session.ask("no group", delete_offsets("", {topic: [0]}), 0)
    session.ask("an unknown group", delete_offsets("no-such", {topic: [0]}), 0)
    session.ask("some", delete_offsets(group, {topic: [0, 2, 9], "no-such": [0]}), 0)
    session.ask("nothing", delete_offsets(group, {}), 0)
    session.ask("no partitions", delete_offsets(group, {topic: [], "no-such": []}), 0)
    session.ask("what is left", fetch_offsets(group, None, 8), 8)
    session.ask("the group", DeleteGroupsRequest(groups_names=[group, "no-such", group]), 2)
    session.ask("nothing is left", fetch_offsets(group, None, 8), 8)
    session.ask("again", DeleteGroupsRequest(groups_names=[group]), 1)


def deletions_with_members(session: Session) -> None:
    await_groups(session)
    for topic in ("wanted-commits", "unwanted-commits"):
        create_topic(session, topic)
    topics = {"wanted-commits": [0], "unwanted-commits": [0]}
    (member,) = stable(session, "wanting", "one", protocols={"range": subscription("wanted-commits")})
    offsets = {topic: {0: 4} for topic in topics}
    request = commit("wanting", offsets, member=member.member_id, generation=member.generation_id)
    session.ask("committing", request, 8)
    session.ask("some are wanted", delete_offsets("wanting", topics), 0)
    (worker,) = stable(session, "working", "two", protocol_type="connect", protocols={"v1": b""})
    request = commit("working", offsets, member=worker.member_id, generation=worker.generation_id)
    session.ask("committing", request, 8)
    session.ask("nobody knows", delete_offsets("working", topics), 0)


def recreated_topics(session: Session) -> None:
    """Offsets of a topic go with it, and are not those of the next one with its name."""
    await_groups(session)
    topic, group = "recreated-commits", "recreated"
    create_topic(session, topic)
    session.ask("committing", commit(group, {topic: {0: 4}}), 8)
    delete_topic(session, topic)
    session.settle(fetch_offsets(group, None, 8), 8, lambda reply: not reply.groups[0].topics)
    new = create_topic(session, topic)
    session.ask("by name", fetch_offsets(group, {topic: [0]}, 9), 9)
    session.ask("by id", fetch_offsets(group, {topic: [0]}, 10, ids={topic: new}), 10)
    session.ask("all", fetch_offsets(group, None, 10), 10)


SCENARIOS = (
    simple_consumers,
    wrong_commits,
    several_groups,
    deletions,
    deletions_with_members,
    recreated_topics,
)
