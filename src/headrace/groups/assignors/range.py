"""Contiguous ranges of each topic, so that topics of the same size are split at the same places."""

from typing import Final
from uuid import UUID

from headrace.groups.assignors.spec import GroupSpec, MemberSpec, Partitions


class RangeAssignor:
    """Members in the order of their instance ids, then of their ids, get a range of every topic each."""

    name: Final = "range"

    def assign(self, spec: GroupSpec) -> dict[str, Partitions]:
        """The partitions of each member."""
        members = sorted(spec.members.items(), key=_place)
        subscribers: dict[UUID, list[str]] = {}
        for member_id, member in members:
            for topic_id in member.topics:
                subscribers.setdefault(topic_id, []).append(member_id)
        assignment: dict[str, dict[UUID, frozenset[int]]] = {member_id: {} for member_id, _ in members}
        for topic_id, member_ids in subscribers.items():
            quota, extra = divmod(spec.partition_count(topic_id), len(member_ids))
            start = 0
            for index, member_id in enumerate(member_ids):
                end = start + quota + (index < extra)
                if start < end:
                    assignment[member_id][topic_id] = frozenset(range(start, end))
                start = end
        return dict(assignment)


def _place(entry: tuple[str, MemberSpec]) -> tuple[bool, bytes]:
    """Static members come first: their names outlive restarts. Texts are ordered as Java does."""
    member_id, member = entry
    name = member_id if member.instance_id is None else member.instance_id
    return member.instance_id is None, name.encode("utf-16-be")
