"""Keys that mean the same: a topic's or group's key and the broker's, and a broker's key in other units."""

from typing import Final, NamedTuple


class Synonym(NamedTuple):
    """A broker's key that stands for a topic's, and how many of the topic's units one of its units is."""

    name: str
    factor: int = 1


_MINUTE_MS = 60_000
_HOUR_MS = 3_600_000


def _one(name: str) -> tuple[Synonym, ...]:
    return (Synonym(name),)


TOPIC_SYNONYMS: Final[dict[str, tuple[Synonym, ...]]] = {
    "segment.bytes": _one("log.segment.bytes"),
    "segment.ms": (Synonym("log.roll.ms"), Synonym("log.roll.hours", _HOUR_MS)),
    "segment.jitter.ms": (Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", _HOUR_MS)),
    "segment.index.bytes": _one("log.index.size.max.bytes"),
    "flush.messages": _one("log.flush.interval.messages"),
    "flush.ms": (Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")),
    "retention.bytes": _one("log.retention.bytes"),
    "retention.ms": (
        Synonym("log.retention.ms"),
        Synonym("log.retention.minutes", _MINUTE_MS),
        Synonym("log.retention.hours", _HOUR_MS),
    ),
    "max.message.bytes": _one("message.max.bytes"),
    "index.interval.bytes": _one("log.index.interval.bytes"),
    "delete.retention.ms": _one("log.cleaner.delete.retention.ms"),
    "min.compaction.lag.ms": _one("log.cleaner.min.compaction.lag.ms"),
    "max.compaction.lag.ms": _one("log.cleaner.max.compaction.lag.ms"),
    "file.delete.delay.ms": _one("log.segment.delete.delay.ms"),
    "min.cleanable.dirty.ratio": _one("log.cleaner.min.cleanable.ratio"),
    "cleanup.policy": _one("log.cleanup.policy"),
    "unclean.leader.election.enable": _one("unclean.leader.election.enable"),
    "min.insync.replicas": _one("min.insync.replicas"),
    "compression.type": _one("compression.type"),
    "compression.gzip.level": _one("compression.gzip.level"),
    "compression.lz4.level": _one("compression.lz4.level"),
    "compression.zstd.level": _one("compression.zstd.level"),
    "preallocate": _one("log.preallocate"),
    "message.timestamp.type": _one("log.message.timestamp.type"),
    "message.timestamp.before.max.ms": _one("log.message.timestamp.before.max.ms"),
    "message.timestamp.after.max.ms": _one("log.message.timestamp.after.max.ms"),
    "local.retention.ms": _one("log.local.retention.ms"),
    "local.retention.bytes": _one("log.local.retention.bytes"),
}
"""For each topic key, the broker's keys that give its default, the first that is set before the others."""

GROUP_SYNONYMS: Final[dict[str, str]] = {
    "consumer.session.timeout.ms": "group.consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms": "group.consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms": "group.consumer.assignment.interval.ms",
    "share.session.timeout.ms": "group.share.session.timeout.ms",
    "share.heartbeat.interval.ms": "group.share.heartbeat.interval.ms",
    "share.record.lock.duration.ms": "group.share.record.lock.duration.ms",
    "share.delivery.count.limit": "group.share.delivery.count.limit",
    "share.partition.max.record.locks": "group.share.partition.max.record.locks",
    "share.assignment.interval.ms": "group.share.assignment.interval.ms",
    "streams.session.timeout.ms": "group.streams.session.timeout.ms",
    "streams.heartbeat.interval.ms": "group.streams.heartbeat.interval.ms",
    "streams.num.standby.replicas": "group.streams.num.standby.replicas",
    "streams.initial.rebalance.delay.ms": "group.streams.initial.rebalance.delay.ms",
    "streams.assignment.interval.ms": "group.streams.assignment.interval.ms",
}
"""For each group key that has one, the broker's key that gives its default."""

_SAME_IN_OTHER_UNITS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_SAME = {name: group for group in _SAME_IN_OTHER_UNITS for name in group}
# The other way round it does not hold: the scheduler's interval is a setting of its own.
_SAME["log.flush.interval.ms"] = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
_PER_MECHANISM = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)


def listener_base_name(name: str) -> str | None:
    """What follows `listener.name.<listener>.` in a key, or None if it has no such prefix."""
    if not name.startswith("listener.name."):
        return None
    _, separator, base = name.removeprefix("listener.name.").partition(".")
    return base if separator else None


def broker_synonyms(name: str, *, listener_overrides: bool = True) -> tuple[str, ...]:
    """The broker's keys that set the same thing, the one that counts first before the others."""
    if name in _SAME:
        return _SAME[name]
    base = listener_base_name(name) if listener_overrides else None
    if base is None:
        return (name,)
    return (name, next((key for key in _PER_MECHANISM if base.endswith(key)), base))
