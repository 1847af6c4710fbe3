"""Equal shares where members are subscribed to different topics.

Every partition is given to the subscriber that has least, topics with the most partitions per subscriber
first; then partitions move, topic by topic, from whoever has most to whoever has least while it helps."""

from heapq import heapify, heappop, heappush, heapreplace
from typing import Final
from uuid import UUID

from headrace.groups.assignors.spec import GroupSpec, Partitions

#: Overlapping subscriptions may take many rounds for the last bit of balance; each about halves what is left.
_ROUNDS_MAX: Final = 16


def assign_mixed(spec: GroupSpec) -> dict[str, Partitions]:
    """The partitions of each member of a group with at least one member."""
    shares = _Shares(spec)
    for topic_id in shares.topics:
        shares.hand_out(topic_id)
    quiet = 0
    for _ in range(_ROUNDS_MAX):
        for topic_id in shares.topics:
            quiet = 0 if shares.level(topic_id) else quiet + 1
            if quiet >= len(shares.topics):
                return shares.result()
    return shares.result()


class _Shares:
    """Who has what while it is worked out. Members are numbered in the group's order."""

    __slots__ = ("_counts", "_held", "_member_ids", "_owned", "_sizes", "_subscribers", "topics")

    def __init__(self, spec: GroupSpec) -> None:
        self._member_ids = list(spec.members)
        self._sizes = [0] * len(self._member_ids)
        self._subscribers: dict[UUID, list[int]] = {}
        for number, member in enumerate(spec.members.values()):
            for topic_id in member.topics:
                self._subscribers.setdefault(topic_id, []).append(number)
        self._counts = {topic_id: spec.partition_count(topic_id) for topic_id in self._subscribers}
        self.topics = sorted(self._subscribers, key=self._urgency)
        self._owned: dict[UUID, dict[int, list[int]]] = {topic_id: {} for topic_id in self.topics}
        self._held: dict[UUID, set[int]] = {topic_id: set() for topic_id in self.topics}
        for number, member in enumerate(spec.members.values()):
            for topic_id, partitions in member.assigned.items():
                if topic_id in member.topics:
                    self._keep(topic_id, number, partitions)

    def hand_out(self, topic_id: UUID) -> None:
        """Give the partitions that nobody has to those who have least."""
        held = self._held[topic_id]
        poorest = [(self._sizes[number], number) for number in self._subscribers[topic_id]]
        heapify(poorest)
        for partition in range(self._counts[topic_id]):
            if partition not in held:
                size, number = poorest[0]
                self._owned[topic_id].setdefault(number, []).append(partition)
                self._sizes[number] = size + 1
                heapreplace(poorest, (size + 1, number))

    def level(self, topic_id: UUID) -> int:
        """Move partitions of a topic to where there are fewer, as long as that helps; how many were moved."""
        owned = self._owned[topic_id]
        poorest = [(self._sizes[number], number) for number in self._subscribers[topic_id]]
        richest = [(-self._sizes[number], number) for number, partitions in owned.items() if partitions]
        heapify(poorest)
        heapify(richest)
        moved = 0
        while richest and -richest[0][0] - poorest[0][0] > 1:
            giver = heappop(richest)[1]
            taker = heappop(poorest)[1]
            owned.setdefault(taker, []).append(owned[giver].pop())
            self._sizes[giver] -= 1
            self._sizes[taker] += 1
            moved += 1
            if owned[giver]:
                heappush(richest, (-self._sizes[giver], giver))
            heappush(poorest, (self._sizes[taker], taker))
        return moved

    def result(self) -> dict[str, Partitions]:
        """The partitions of each member."""
        found: list[dict[UUID, frozenset[int]]] = [{} for _ in self._member_ids]
        for topic_id, owned in self._owned.items():
            for number, partitions in owned.items():
                if partitions:
                    found[number][topic_id] = frozenset(partitions)
        return dict(zip(self._member_ids, found, strict=True))

    def _keep(self, topic_id: UUID, number: int, partitions: frozenset[int]) -> None:
        held = self._held[topic_id]
        kept = [partition for partition in sorted(partitions - held) if partition < self._counts[topic_id]]
        if kept:
            held.update(kept)
            self._owned[topic_id][number] = kept
            self._sizes[number] += len(kept)

    def _urgency(self, topic_id: UUID) -> tuple[float, int, UUID]:
        subscribers = len(self._subscribers[topic_id])
        return -self._counts[topic_id] / subscribers, subscribers, topic_id
