"""The bounds that a node's keys set for groups: that they are in order, and that a group keeps to them."""

from typing import Final, NamedTuple

from headrace.config.node import NodeConfig
from headrace.config.refusals import InvalidConfig


class Bounded(NamedTuple):
    """A key of a group and the broker's keys for its default and its bounds."""

    group_key: str
    broker_key: str
    least_key: str | None
    most_key: str


def _bounded(kind: str, what: str) -> Bounded:
    return Bounded(
        f"{kind}.{what}",
        f"group.{kind}.{what}",
        f"group.{kind}.min.{what}",
        f"group.{kind}.max.{what}",
    )


def _timings(kind: str) -> tuple[Bounded, Bounded]:
    return _bounded(kind, "heartbeat.interval.ms"), _bounded(kind, "session.timeout.ms")


def _assignment(kind: str) -> Bounded:
    return _bounded(kind, "assignment.interval.ms")


_ASSIGNOR_PACKAGE: Final = "org.apache.kafka.coordinator.group.assignor."
ASSIGNORS: Final = {
    "group.consumer.assignors": frozenset({"uniform", "range", "UniformAssignor", "RangeAssignor"}),
    "group.share.assignors": frozenset({"simple", "SimpleAssignor"}),
}
"""The assignors that there are, by their short names and by their classes' names."""

KINDS: Final = ("consumer", "share", "streams")
BOUNDED: Final[tuple[Bounded, ...]] = (
    *_timings("consumer"),
    _assignment("consumer"),
    *_timings("share"),
    _bounded("share", "record.lock.duration.ms"),
    _bounded("share", "delivery.count.limit"),
    _bounded("share", "partition.max.record.locks"),
    _assignment("share"),
    *_timings("streams"),
    Bounded(
        "streams.num.standby.replicas",
        "group.streams.num.standby.replicas",
        None,
        "group.streams.max.standby.replicas",
    ),
    _assignment("streams"),
)
"""In the order in which they are checked."""


def check_broker_group_bounds(config: NodeConfig) -> None:
    """Refuse a node whose defaults for groups lie outside its own bounds."""
    for bounded in BOUNDED:
        _check_bounds(config, bounded)
    for kind in KINDS:
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if config.integer(heartbeat) >= config.integer(session):
            raise InvalidConfig(f"{heartbeat} must be less than {session}", key=heartbeat)
    _check_assignors(config)
    _check_at_least(config, "group.share.max.share.sessions", "group.share.max.size")


def _check_assignors(config: NodeConfig) -> None:
    for key, known in ASSIGNORS.items():
        for name in config.items(key):
            if name.removeprefix(_ASSIGNOR_PACKAGE) not in known:
                raise InvalidConfig(f"Class {name} cannot be found", key=key, value=name)
    assignors = config.items("group.share.assignors")
    if len(assignors) != 1:
        message = f"group.share.assignors must contain exactly one assignor, but found {len(assignors)}"
        raise InvalidConfig(message, key="group.share.assignors")


def _check_bounds(config: NodeConfig, bounded: Bounded) -> None:
    if bounded.least_key is not None:
        if bounded.group_key.endswith(("interval.ms", "timeout.ms")):
            _check_at_least(config, bounded.most_key, bounded.least_key)
        _check_at_least(config, bounded.broker_key, bounded.least_key)
    if config.integer(bounded.broker_key) > config.integer(bounded.most_key):
        if bounded.group_key.endswith(("interval.ms", "timeout.ms", "replicas")):
            message = f"{bounded.broker_key} must be less than or equal to {bounded.most_key}"
        else:
            message = f"{bounded.most_key} must be greater than or equal to {bounded.broker_key}"
        raise InvalidConfig(message, key=bounded.broker_key)


def _check_at_least(config: NodeConfig, key: str, least_key: str) -> None:
    if config.integer(key) < config.integer(least_key):
        raise InvalidConfig(f"{key} must be greater than or equal to {least_key}", key=key)
