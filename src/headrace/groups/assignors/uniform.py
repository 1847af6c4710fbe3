"""Equal shares, and as few moves as possible."""

from typing import Final
from uuid import UUID

from headrace.groups.assignors.spec import GroupSpec, Partitions
from headrace.groups.assignors.uniform_mixed import assign_mixed


class UniformAssignor:
    """Balance before stickiness: no two members that could share differ by more than one partition."""

    name: Final = "uniform"

    def assign(self, spec: GroupSpec) -> dict[str, Partitions]:
        """The partitions of each member."""
        if not spec.members:
            return {}
        if spec.is_homogeneous:
            return _assign_equal_subscriptions(spec)
        return assign_mixed(spec)


def _assign_equal_subscriptions(spec: GroupSpec) -> dict[str, Partitions]:
    """Everybody keeps what fits into an equal share; the rest goes to those who have less."""
    topics = next(iter(spec.members.values())).topics
    counts = {topic_id: spec.partition_count(topic_id) for topic_id in topics}
    share, shares_with_one_more = divmod(sum(counts.values()), len(spec.members))
    kept: dict[str, list[tuple[UUID, int]]] = {}
    taken: set[tuple[UUID, int]] = set()
    extras_left = shares_with_one_more
    for member_id, member in spec.members.items():
        owned = [
            (topic_id, partition)
            for topic_id, partitions in member.assigned.items()
            if topic_id in topics
            for partition in sorted(partitions)
            if partition < counts[topic_id] and (topic_id, partition) not in taken
        ]
        room = share
        if len(owned) > share and extras_left:
            room += 1
            extras_left -= 1
        kept[member_id] = owned[:room]
        taken.update(kept[member_id])
    free = (
        (topic_id, partition)
        for topic_id in sorted(topics)
        for partition in range(counts[topic_id])
        if (topic_id, partition) not in taken
    )
    for owned in kept.values():
        missing = share - len(owned)
        if missing >= 0 and extras_left:
            missing += 1
            extras_left -= 1
        for _ in range(missing):
            owned.append(next(free))
    return {member_id: _by_topic(owned) for member_id, owned in kept.items()}


def _by_topic(owned: list[tuple[UUID, int]]) -> Partitions:
    found: dict[UUID, set[int]] = {}
    for topic_id, partition in owned:
        found.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(partitions) for topic_id, partitions in found.items()}
