"""Where the replicas of new partitions go: striped over racks and brokers, fenced brokers last.

Each partition starts at the next broker of the next rack; after a round over all brokers the order is
shuffled, so that the same groups of brokers do not meet again and again."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.registrations import BrokerState
from headrace.ports import Entropy


@dataclass(slots=True)
class _Ring:
    """Brokers that take turns; within one round each is given out once."""

    brokers: list[int] = field(default_factory=list)
    start: int = 0
    given: int = 0
    round: int = 0

    def next(self, round_number: int) -> int | None:
        if not self.brokers:
            return None
        if self.round != round_number:
            self.round, self.given = round_number, 0
            self.start = (self.start + 1) % len(self.brokers)
        if self.given >= len(self.brokers):
            return None
        broker = self.brokers[(self.start + self.given) % len(self.brokers)]
        self.given += 1
        return broker


@dataclass(slots=True)
class _Rack:
    unfenced: _Ring = field(default_factory=_Ring)
    fenced: _Ring = field(default_factory=_Ring)

    def next(self, round_number: int) -> int | None:
        found = self.unfenced.next(round_number)
        return self.fenced.next(round_number) if found is None else found


class PlacementRefused(KafkaError):
    """There are not enough brokers for what was asked."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_REPLICATION_FACTOR, message)


class Placer:
    """Places partitions one after the other. Make one for each request."""

    def __init__(self, brokers: Iterable[BrokerState], entropy: Entropy) -> None:
        self._entropy = entropy
        racks: dict[str | None, _Rack] = {}
        self._total = self._unfenced = 0
        for broker in sorted(brokers, key=lambda each: each.id):
            rack = racks.setdefault(broker.rack, _Rack())
            (rack.fenced if broker.fenced else rack.unfenced).brokers.append(broker.id)
            self._total += 1
            self._unfenced += not broker.fenced
        self._racks = [racks[name] for name in sorted(racks, key=lambda name: (name is not None, name or ""))]
        for ring in self._rings():
            ring.start = self._below(len(ring.brokers))
        self._offset = self._below(len(self._racks))
        self._round = 0

    def check(self, replication_factor: int) -> None:
        """Refuse what cannot be placed."""
        if replication_factor <= 0:
            raise PlacementRefused(
                f"Invalid replication factor {replication_factor}: the replication factor must be positive."
            )
        if self._unfenced == 0:
            raise PlacementRefused(
                "All brokers are currently fenced, or have all their log directories cordoned."
            )
        if replication_factor > self._total:
            raise PlacementRefused(
                f"The target replication factor of {replication_factor} cannot be reached because only "
                f"{self._total} broker(s) are registered or some brokers have all their log directories "
                "cordoned."
            )

    def place(self, replication_factor: int) -> tuple[int, ...]:
        """The replicas of the next partition, its first leader first."""
        self.check(replication_factor)
        if self._round == self._unfenced and self._unfenced > 1:
            self._shuffle(self._racks)
            for ring in self._rings():
                self._shuffle(ring.brokers)
            self._round = 0
        self._offset %= len(self._racks)
        first_rack, leader = self._leader()
        replicas = [leader]
        rack = self._offset
        while len(replicas) < replication_factor:
            # The leader's rack has its turn behind it; every other comes before it is asked again.
            found = None if rack == first_rack else self._racks[rack].next(self._round)
            if rack == first_rack:
                first_rack = -1
            if found is not None:
                replicas.append(found)
            rack = (rack + 1) % len(self._racks)
        self._round += 1
        self._offset += 1
        return tuple(replicas)

    def _leader(self) -> tuple[int, int]:
        rack = self._offset
        while True:
            found = self._racks[rack].unfenced.next(self._round)
            if found is not None:
                return rack, found
            rack = (rack + 1) % len(self._racks)

    def _rings(self) -> Iterable[_Ring]:
        return (ring for rack in self._racks for ring in (rack.fenced, rack.unfenced))

    def _below(self, bound: int) -> int:
        return int(self._entropy.random() * bound) if bound else 0

    def _shuffle(self, items: list[_Rack] | list[int]) -> None:
        for last in range(len(items) - 1, 0, -1):
            other = self._below(last + 1)
            items[last], items[other] = items[other], items[last]  # type: ignore[assignment]
