"""Members of classic groups that do as they should, and many that do not."""

from typing import Any

from headrace.protocol.messages.delete_groups import DeleteGroupsRequest
from headrace.protocol.messages.describe_groups import DescribeGroupsRequest
from headrace.protocol.messages.find_coordinator import FindCoordinatorRequest
from headrace.protocol.messages.heartbeat import HeartbeatRequest
from headrace.protocol.messages.join_group import JoinGroupRequest
from headrace.protocol.messages.leave_group import LeaveGroupRequest
from headrace.protocol.messages.list_groups import ListGroupsRequest
from headrace.protocol.messages.sync_group import SyncGroupRequest
from tests.answers.group_requests import (
    LATEST_HEARTBEAT,
    LATEST_JOIN,
    LATEST_LEAVE,
    LATEST_SYNC,
    await_groups,
    commit,
    find,
    heartbeat,
    join,
    joined,
    leave,
    member_id,
    stable,
    subscription,
    sync,
)
from tests.answers.requests import create_topic, versions
from tests.answers.session import Session

KEYS = (8, 9, 10, 11, 12, 13, 14, 15, 16, 42, 47)
_SHARE = 2


def find_coordinator(session: Session) -> None:
    await_groups(session)
    for version in versions(FindCoordinatorRequest):
        session.ask("one group", find("one", version=version), version)
    session.ask("several", find("one", "", "one", "ünïcode", version=4), 4)
    session.ask("none", find(version=4), 4)
    for version in (1, 3, 4, 6):
        session.ask("an unknown type", find("x", "y", version=version, kind=7), version)
    for version in (1, 5):
        session.ask("a share partition too early", find("x", version=version, kind=_SHARE), version)
    wrong = ("", "group", "group:topic:0", ":AAAAAAAAAAAAAAAAAAAAAA:0", "g:AAAAAAAAAAAAAAAAAAAAAA:zero")
    session.ask("wrong share keys", find(*wrong, version=6, kind=_SHARE), 6)


def join_refusals(session: Session) -> None:
    await_groups(session)
    for version in versions(JoinGroupRequest):
        session.ask("no group", join(""), version)
        session.ask("too short a session", join("refused", session_ms=5_999), version)
        session.ask("too long a session", join("refused", session_ms=1_800_001), version)
        session.ask("a member of nothing", join("refused", "somebody"), version)
    for version in (0, 4, 6, 7, 9):
        session.ask("no protocols", join(f"no-protocols-{version}", protocols={}), version)
        session.ask("no type", join(f"no-type-{version}", protocol_type=""), version)
    session.ask("a static member of nothing", join("refused", "somebody", instance="one"), LATEST_JOIN)


def without_a_group(session: Session) -> None:
    await_groups(session)
    for version in versions(SyncGroupRequest):
        session.ask("no group", sync("", "somebody", 1), version)
        session.ask("an unknown group", sync("unknown", "somebody", 1), version)
    session.ask("no protocol", sync("unknown", "somebody", 1, protocol=None), LATEST_SYNC)
    session.ask("no protocol type", sync("unknown", "somebody", 1, protocol_type=None), LATEST_SYNC)
    for version in versions(HeartbeatRequest):
        session.ask("no group", heartbeat("", "somebody", 1), version)
        session.ask("an unknown group", heartbeat("unknown", "somebody", 1), version)
    for version in versions(LeaveGroupRequest):
        session.ask("no group", leave("", "somebody", version=version), version)
        session.ask("an unknown group", leave("unknown", "somebody", version=version), version)
    session.ask("two of an unknown group", leave("unknown", "one", ("", "two")), LATEST_LEAVE)
    for version in versions(DescribeGroupsRequest):
        session.ask("unknown groups", DescribeGroupsRequest(groups=["unknown", ""]), version)
    request = DescribeGroupsRequest(groups=["unknown"], include_authorized_operations=True)
    session.ask("what may be done with it", request, 4)
    for version in versions(DeleteGroupsRequest):
        session.ask("unknown groups", DeleteGroupsRequest(groups_names=["unknown", "", "unknown"]), version)


def about_to_join(session: Session) -> None:
    """Somebody who was told its id, and does something else than joining with it."""
    await_groups(session)
    group = "pending"
    for version in (4, 5, 9):
        session.ask("an id is due", join(f"{group}-{version}"), version)
    member = member_id(session, group)
    session.ask("a heartbeat", heartbeat(group, member, 0), LATEST_HEARTBEAT)
    session.ask("a sync", sync(group, member, 0), LATEST_SYNC)
    session.ask("a commit", commit(group, {"x": {0: 1}}, member=member, generation=0), 8)
    session.ask("the group", DescribeGroupsRequest(groups=[group]), 6)
    session.ask("another one", join(group, "somebody"), LATEST_JOIN)
    session.ask("leaving", leave(group, member), LATEST_LEAVE)
    session.ask("leaving again", leave(group, member), LATEST_LEAVE)
    session.ask("deleting", DeleteGroupsRequest(groups_names=[group]), 2)
    session.ask("the group is gone", DescribeGroupsRequest(groups=[group]), 6)


def before_the_assignment(session: Session) -> None:
    """Everybody has joined, and the leader has not decided."""
    await_groups(session)
    create_topic(session, "before-assignment")
    group = "before-assignment"
    leader, follower = joined(session, group, "one", "two")
    generation = leader.generation_id
    for version in versions(HeartbeatRequest):
        session.ask("a heartbeat", heartbeat(group, follower.member_id, generation), version)
    session.ask("a stale one", heartbeat(group, follower.member_id, 0), LATEST_HEARTBEAT)
    session.ask("a future one", heartbeat(group, follower.member_id, 9), LATEST_HEARTBEAT)
    session.ask("a stranger's", heartbeat(group, "stranger", generation), LATEST_HEARTBEAT)
    session.ask(
        "an unknown instance", heartbeat(group, follower.member_id, generation, "what"), LATEST_HEARTBEAT
    )
    offsets = {group: {0: 1}}
    for version in (2, 8, 9):
        early = commit(group, offsets, member=follower.member_id, generation=generation)
        session.ask("a commit", early, version)
    session.ask("nobody's commit", commit(group, offsets), 8)
    session.ask("a stale commit", commit(group, offsets, member=follower.member_id, generation=0), 8)
    session.ask("a stale sync", sync(group, follower.member_id, 0), LATEST_SYNC)
    session.ask("a stranger's sync", sync(group, "stranger", generation), LATEST_SYNC)
    request = sync(group, follower.member_id, generation, protocol="sticky")
    session.ask("another protocol", request, LATEST_SYNC)
    request = sync(group, follower.member_id, generation, protocol_type="connect")
    session.ask("another type", request, LATEST_SYNC)
    session.ask("the same again", join(group, follower.member_id), LATEST_JOIN)
    leading = session.ask("the leader again", join(group, leader.member_id), LATEST_JOIN)
    assert len(leading.members) == 2
    session.ask("another type joins", join(group, protocol_type="connect"), LATEST_JOIN)
    session.ask("no common protocol", join(group, protocols={"sticky": b""}), LATEST_JOIN)
    session.ask("the group", DescribeGroupsRequest(groups=[group]), 6)
    session.ask("deleting", DeleteGroupsRequest(groups_names=[group]), 2)
    waiting = session.begin("its part", sync(group, follower.member_id, generation), LATEST_SYNC, "two")
    part = {follower.member_id: b"a part"}
    session.ask("assigning", sync(group, leader.member_id, generation, assignments=part), LATEST_SYNC)
    session.finish(waiting)
    session.ask("the group is stable", DescribeGroupsRequest(groups=[group]), 6)
    session.ask("leaving together", leave(group, leader.member_id, follower.member_id), LATEST_LEAVE)
    session.ask("the group is empty", DescribeGroupsRequest(groups=[group]), 6)


def while_stable(session: Session) -> None:
    await_groups(session)
    create_topic(session, "while-stable")
    group = "while-stable"
    leader, follower = stable(session, group, "one", "two")
    generation, offsets = leader.generation_id, {group: {0: 7}}
    for version in versions(HeartbeatRequest):
        session.ask("a heartbeat", heartbeat(group, follower.member_id, generation), version)
    session.ask("a stale one", heartbeat(group, follower.member_id, 0), LATEST_HEARTBEAT)
    session.ask("a stranger's", heartbeat(group, "", generation), LATEST_HEARTBEAT)
    for version in versions(SyncGroupRequest):
        session.ask("its part once more", sync(group, follower.member_id, generation), version)
    session.ask("the same again", join(group, follower.member_id), LATEST_JOIN)
    for version in (0, 4, 6, 8):
        session.ask("the same, earlier", join(group, follower.member_id), version)
    session.ask("a commit", commit(group, offsets, member=follower.member_id, generation=generation), 9)
    session.ask("nobody's commit", commit(group, offsets), 9)
    session.ask("a commit without id", commit(group, offsets, generation=generation), 9)
    session.ask("a stale commit", commit(group, offsets, member=follower.member_id, generation=0), 9)
    session.ask("a stranger's commit", commit(group, offsets, member="stranger", generation=generation), 9)
    for version in versions(DescribeGroupsRequest):
        session.ask("the group", DescribeGroupsRequest(groups=[group]), version)
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=True)
    session.ask("what may be done with it", request, 6)
    session.ask("deleting", DeleteGroupsRequest(groups_names=[group]), 2)
    session.ask("a stranger leaves", leave(group, "stranger"), LATEST_LEAVE)
    session.ask("an unknown instance leaves", leave(group, ("", "what")), LATEST_LEAVE)
    session.ask("with an instance", leave(group, (follower.member_id, "what")), LATEST_LEAVE)
    session.ask("nobody leaves", leave(group), LATEST_LEAVE)
    session.ask("one leaves of two", leave(group, "stranger", leader.member_id), LATEST_LEAVE)
    session.ask("rebalancing", heartbeat(group, follower.member_id, generation), LATEST_HEARTBEAT)
    session.ask("a sync meanwhile", sync(group, follower.member_id, generation), LATEST_SYNC)
    session.ask(
        "a commit meanwhile", commit(group, offsets, member=follower.member_id, generation=generation), 9
    )
    session.ask("the group", DescribeGroupsRequest(groups=[group]), 6)
    again = session.ask("joining again", join(group, follower.member_id), LATEST_JOIN)
    session.ask("its part", sync(group, follower.member_id, again.generation_id), LATEST_SYNC)
    session.ask("leaving at last", leave(group, follower.member_id, version=2), 2)
    session.ask("a heartbeat too late", heartbeat(group, follower.member_id, 3), LATEST_HEARTBEAT)
    session.ask("a join too late", join(group, follower.member_id), LATEST_JOIN)
    session.ask("a sync too late", sync(group, follower.member_id, 3), LATEST_SYNC)
    session.ask("a commit too late", commit(group, offsets, member=follower.member_id, generation=3), 9)
    session.ask("nobody's commit", commit(group, offsets), 9)
    session.ask("deleting", DeleteGroupsRequest(groups_names=[group]), 2)


def protocols(session: Session) -> None:
    """Members vote for a protocol that all have."""
    await_groups(session)
    group = "voting"
    ids = [member_id(session, group) for _ in range(3)]
    ballots = (
        {"roundrobin": b"a1", "range": b"a2", "sticky": b"a3"},
        {"range": b"b1", "roundrobin": b"b2"},
        {"range": b"c1", "roundrobin": b"c2", "other": b""},
    )
    sent = [
        session.begin(f"voter {at}", join(group, member, protocols=ballot), LATEST_JOIN, str(at))
        for at, (member, ballot) in enumerate(zip(ids, ballots, strict=True))
    ]
    chosen = {session.finish(each).protocol_name for each in sent}
    assert chosen == {"range"}


def static_members(session: Session) -> None:
    await_groups(session)
    group = "static"
    first = session.ask("joining", join(group, instance="one"), LATEST_JOIN)
    generation = first.generation_id
    request = sync(group, first.member_id, generation, instance="one", assignments={first.member_id: b"all"})
    session.ask("assigning", request, LATEST_SYNC)
    for version in (5, 8, 9):
        second = session.ask("another with its name", join(group, instance="one"), version)
        session.ask("its part", sync(group, second.member_id, generation, instance="one"), LATEST_SYNC)
    old, new = first.member_id, second.member_id
    session.ask("the old one", heartbeat(group, old, generation, "one"), LATEST_HEARTBEAT)
    session.ask("the old one unnamed", heartbeat(group, old, generation), LATEST_HEARTBEAT)
    session.ask("the new one", heartbeat(group, new, generation, "one"), LATEST_HEARTBEAT)
    session.ask("under another name", heartbeat(group, new, generation, "two"), LATEST_HEARTBEAT)
    session.ask("the old one syncs", sync(group, old, generation, instance="one"), LATEST_SYNC)
    session.ask("the old one joins", join(group, old, instance="one"), LATEST_JOIN)
    session.ask("a stranger joins as it", join(group, "stranger", instance="one"), LATEST_JOIN)
    create_topic(session, group)
    offsets = {group: {0: 1}}
    stale = commit(group, offsets, member=old, generation=generation, instance="one")
    session.ask("the old one commits", stale, 9)
    right = commit(group, offsets, member=new, generation=generation, instance="one")
    session.ask("the new one commits", right, 9)
    session.ask("the group", DescribeGroupsRequest(groups=[group]), 6)
    session.ask("the old one leaves", leave(group, (old, "one")), LATEST_LEAVE)
    session.ask("by its name", leave(group, ("", "one")), LATEST_LEAVE)
    session.ask("once more", leave(group, ("", "one")), LATEST_LEAVE)
    session.ask("the group is empty", DescribeGroupsRequest(groups=[group]), 6)


def earlier_versions(session: Session) -> None:
    """Members that are taken in without being told their id first."""
    await_groups(session)
    group = "earlier"
    sent = [
        session.begin(f"version {version}", join(group), version, str(version)) for version in (0, 1, 2, 3)
    ]
    replies = [session.finish(each) for each in sent]
    leader = next(reply for reply in replies if reply.members)
    generation = leader.generation_id
    sent = [
        session.begin(f"sync {at}", sync(group, reply.member_id, generation), at, str(at))
        for at, reply in enumerate(replies)
        if reply is not leader
    ]
    parts = {reply.member_id: b"part" for reply in replies}
    session.ask("assigning", sync(group, leader.member_id, generation, assignments=parts), 0)
    for each in sent:
        session.finish(each)
    for at, reply in enumerate(replies[:3]):
        session.ask("leaving", leave(group, reply.member_id, version=at), at)


def malformed_subscriptions(session: Session) -> None:
    """What members say about themselves is theirs: nobody minds if it makes no sense."""
    await_groups(session)
    create_topic(session, "malformed")
    group = "malformed"
    (member,) = stable(session, group, "one", protocols={"range": b"\x00"})
    session.ask("the group", DescribeGroupsRequest(groups=[group]), 6)
    offsets = {group: {0: 1}}
    request = commit(group, offsets, member=member.member_id, generation=member.generation_id)
    session.ask("a commit", request, 9)
    sensible = join(group, member.member_id, protocols={"range": subscription("malformed")})
    again = session.ask("it makes sense now", sensible, LATEST_JOIN)
    session.ask("a stale heartbeat", heartbeat(group, member.member_id, 1), LATEST_HEARTBEAT)
    session.ask("the group rebalances", DescribeGroupsRequest(groups=[group]), 6)
    assert again.generation_id == 2


def listing(session: Session) -> None:
    await_groups(session)
    create_topic(session, "listing")
    session.ask("no groups", ListGroupsRequest(), 5)
    session.ask("a simple one", commit("simple", {"listing": {0: 1}}), 8)
    stable(session, "consumers", "one")
    stable(session, "workers", "two", protocol_type="connect", protocols={"v1": b""})
    for version in versions(ListGroupsRequest):
        session.ask("all", ListGroupsRequest(), version)
    filters: tuple[dict[str, Any], ...] = (
        {"states_filter": ["Stable"]},
        {"states_filter": ["empty", " STABLE "]},
        {"states_filter": ["Dead"]},
        {"states_filter": ["nonsense"]},
        {"types_filter": ["Classic"]},
        {"types_filter": ["consumer"]},
        {"types_filter": ["nonsense"]},
        {"states_filter": ["Empty"], "types_filter": ["classic", "share"]},
    )
    for each in filters:
        session.ask("some", ListGroupsRequest(**each), 5)
    session.ask("by state", ListGroupsRequest(states_filter=["Empty"]), 4)


SCENARIOS = (
    find_coordinator,
    join_refusals,
    without_a_group,
    about_to_join,
    before_the_assignment,
    while_stable,
    protocols,
    static_members,
    earlier_versions,
    malformed_subscriptions,
)
ALONE = (listing,)
