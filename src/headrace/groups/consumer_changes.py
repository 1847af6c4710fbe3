"""What a consumer group comes to when a member changes: worked out before any record says so."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.coordinator.placement import java_hash
from headrace.coordinator.shard import CoordinatorRecord
from headrace.groups.consumer_group import ConsumerGroup
from headrace.groups.consumer_member import ConsumerMember

_BUCKETS = 16


@dataclass(slots=True)
class MemberChange:
    """A member before and after a request, and the records that the request has come to so far.

    Of a member that is new, and of a static one that comes under another id, `before` is what it begins
    with, although the group does not have it yet."""

    group: ConsumerGroup
    before: ConsumerMember
    after: ConsumerMember
    now_ms: int
    records: list[CoordinatorRecord] = field(default_factory=list)
    is_refreshed: bool = False
    """Whether the group's topics were looked at for it."""


def topics_after(
    group: ConsumerGroup, leaving: Iterable[ConsumerMember], coming: Iterable[ConsumerMember] = ()
) -> set[str]:
    """The topics that members are subscribed to when some have gone or come. Expressions that nobody uses
    any more do not count, nor do those that are not resolved yet."""
    counts = Counter(group.topic_counts)
    regexes = Counter(group.regex_counts)
    for member in leaving:
        counts.subtract(member.topics)
        regexes[member.regex or ""] -= 1
    for member in coming:
        counts.update(member.topics)
        regexes[member.regex or ""] += 1
    topics = {name for name, count in counts.items() if count > 0}
    for regex, resolved in group.regexes.items():
        if regexes[regex] > 0:
            topics |= resolved.topics
    return topics


def regexes_after(change: MemberChange) -> set[str]:
    """The expressions that members are subscribed to after a change."""
    counts = Counter(change.group.regex_counts)
    counts[change.before.regex or ""] -= 1
    counts[change.after.regex or ""] += 1
    return {regex for regex, count in counts.items() if regex and count > 0}


def preferred_assignor(
    group: ConsumerGroup, leaving: ConsumerMember | None = None, coming: ConsumerMember | None = None
) -> str | None:
    """The assignor that most members name, if any does."""
    counts = Counter(member.assignor for member in group.members.values())
    if leaving is not None:
        counts[leaving.assignor] -= 1
    if coming is not None:
        counts[coming.assignor] += 1
    votes = {name: count for name, count in counts.items() if name is not None and count > 0}
    # Where votes are even, the first one in the order of Java's hash maps wins.
    return max(sorted(votes, key=_bucket), key=votes.__getitem__, default=None)


def _bucket(name: str) -> int:
    code = java_hash(name) & 0xFFFFFFFF
    return (code ^ code >> 16) & (_BUCKETS - 1)
