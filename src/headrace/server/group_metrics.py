"""What is counted of groups, under the names that Kafka's metrics have. Nothing is counted here."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from headrace.api.services import Services
from headrace.coordinator.hosted_shard import ShardState
from headrace.groups.classic_group import ClassicState
from headrace.groups.coordinator import GroupCoordinator
from headrace.groups.group import Group, GroupKind
from headrace.metrics.names import mbean_name
from headrace.metrics.registry import Labels, Number, Registry

_MANAGER: Final = ("kafka.coordinator.group", "GroupMetadataManager")
_METRICS: Final = ("kafka.server", "group-coordinator-metrics")


def bind_groups(registry: Registry, services: Services) -> None:
    """Let a registry read what groups come to on this node."""
    if services.groups is not None:
        _bind_numbers(registry, services.groups)
        _bind_counts(registry, services.groups)
        _bind_partitions(registry, services.groups)


def _groups(coordinator: GroupCoordinator) -> Iterator[Group]:
    for shard in coordinator.runtime.active_shards():
        yield from shard.groups


def _bind_numbers(registry: Registry, coordinator: GroupCoordinator) -> None:
    def of_kind(kind: GroupKind) -> Iterator[Group]:
        return (group for group in _groups(coordinator) if group.kind is kind)

    def in_state(state: ClassicState) -> int:
        return sum(group.state_name == state.value for group in of_kind(GroupKind.CLASSIC))

    registry.gauge(
        mbean_name(*_MANAGER, "NumGroups"),
        "Classic groups.",
        lambda: sum(1 for _ in of_kind(GroupKind.CLASSIC)),
    )
    registry.gauge(
        mbean_name(*_MANAGER, "NumOffsets"),
        "Committed offsets.",
        lambda: sum(shard.offsets.committed.count for shard in coordinator.runtime.active_shards()),
    )
    for state in ClassicState:
        registry.gauge(
            mbean_name(*_MANAGER, f"NumGroups{state.value}"),
            f"Classic groups in the state {state.value}.",
            lambda state=state: in_state(state),  # type: ignore[misc]
        )

    def by_protocol() -> Iterator[tuple[Labels, Number]]:
        found = Counter(group.kind for group in _groups(coordinator))
        for kind in GroupKind:
            yield (kind.value,), found[kind]

    def consumers_by_state() -> Iterator[tuple[Labels, Number]]:
        found = Counter(group.state_name.lower() for group in of_kind(GroupKind.CONSUMER))
        for state in ("empty", "assigning", "reconciling", "stable", "dead"):
            yield (state,), found[state]

    registry.gauges(mbean_name(*_METRICS, "group-count"), "Groups by protocol.", ("protocol",), by_protocol)
    registry.gauges(
        mbean_name(*_METRICS, "consumer-group-count"),
        "Groups of the consumer protocol by state.",
        ("state",),
        consumers_by_state,
    )


def _bind_counts(registry: Registry, coordinator: GroupCoordinator) -> None:
    counters = coordinator.counters
    for name, text, read in (
        ("offset-commit-count", "Offsets committed.", lambda: counters.offset_commits),
        ("offset-expiration-count", "Offsets that expired.", lambda: counters.offset_expirations),
        ("offset-deletion-count", "Offsets deleted on request.", lambda: counters.offset_deletions),
        (
            "group-completed-rebalance-count",
            "Rebalances of classic groups that came to an assignment.",
            lambda: counters.completed_rebalances,
        ),
        (
            "consumer-group-rebalance-count",
            "New epochs of consumer groups, each of which leads to an assignment.",
            lambda: counters.consumer_rebalances,
        ),
    ):
        registry.count(mbean_name(*_METRICS, name) + "_total", text, read)


def _bind_partitions(registry: Registry, coordinator: GroupCoordinator) -> None:
    runtime = coordinator.runtime

    def by_state() -> Iterator[tuple[Labels, Number]]:
        for state in (ShardState.LOADING, ShardState.ACTIVE, ShardState.FAILED):
            yield (state.value,), runtime.count(state)

    registry.gauges(
        mbean_name(*_METRICS, "num-partitions"),
        "Partitions of the groups' topic that this node coordinates, by state.",
        ("state",),
        by_state,
    )
    registry.gauge(
        mbean_name(*_METRICS, "partition-load-time-max"),
        "The longest time that loading a partition of groups took, in ms.",
        lambda: runtime.loads.worst_ms,
    )
    registry.gauge(
        mbean_name(*_METRICS, "partition-load-time-avg"),
        "The time that loading a partition of groups took on average, in ms.",
        lambda: runtime.loads.total_ms / runtime.loads.count if runtime.loads.count else 0,
    )
