"""Keys of a single group. What a group does not set comes from the broker."""

from typing import Final

from headrace.config.definition import ConfigKey
from headrace.config.keys.notation import BOOLEAN, INT, MEDIUM, STRING, key
from headrace.config.rules import OffsetReset, OneOf, Range

_KEYS = (
    key("consumer.session.timeout.ms", INT, 45000, MEDIUM, Range(1)).means(
        "A member of the consumer group that sent no heartbeat for this many milliseconds is removed."
    ),
    key("consumer.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1)).means(
        "Time between two heartbeats of a member of the consumer group, in milliseconds."
    ),
    key("consumer.assignment.interval.ms", INT, 1000, MEDIUM, Range(0)).means(
        "Least time between two new assignments of the consumer group, in milliseconds; 0 for none."
    ),
    key("share.session.timeout.ms", INT, 45000, MEDIUM, Range(1)).means(
        "A member of the share group that sent no heartbeat for this many milliseconds is removed."
    ),
    key("share.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1)).means(
        "Time between two heartbeats of a member of the share group, in milliseconds."
    ),
    key("share.assignment.interval.ms", INT, 1000, MEDIUM, Range(0)).means(
        "Least time between two new assignments of the share group, in milliseconds; 0 for none."
    ),
    key("share.record.lock.duration.ms", INT, 30000, MEDIUM, Range(1000)).means(
        "How long a record handed out to one consumer of the share group is withheld from the others, in "
        "milliseconds."
    ),
    key("share.delivery.count.limit", INT, 5, MEDIUM, Range(2)).means(
        "How often a record is handed out to the share group before it is given up."
    ),
    key("share.partition.max.record.locks", INT, 2000, MEDIUM, Range(100)).means(
        "How many records of one partition the share group may have handed out at once."
    ),
    key("share.auto.offset.reset", STRING, "latest", MEDIUM, OffsetReset()).means(
        "Where a new share group begins: `latest`, `earliest`, or `by_duration:` and an ISO 8601 time "
        "span to go back."
    ),
    key(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        MEDIUM,
        OneOf("read_committed", "read_uncommitted"),
    ).means(
        "Whether the share group sees records of transactions that are open or aborted "
        "(`read_uncommitted`) or not (`read_committed`)."
    ),
    key("share.renew.acknowledge.enable", BOOLEAN, True, MEDIUM).means(
        "Whether a consumer of the share group may prolong the lock of a record it still works on."
    ),
    key("streams.session.timeout.ms", INT, 45000, MEDIUM, Range(1)).means(
        "A member of the streams group that sent no heartbeat for this many milliseconds is removed."
    ),
    key("streams.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1)).means(
        "Time between two heartbeats of a member of the streams group, in milliseconds."
    ),
    key("streams.assignment.interval.ms", INT, 1000, MEDIUM, Range(0)).means(
        "Least time between two new assignments of the streams group, in milliseconds; 0 for none."
    ),
    key("streams.num.standby.replicas", INT, 0, MEDIUM, Range(0)).means(
        "How many standby copies of each stateful task the streams group keeps."
    ),
    key("streams.initial.rebalance.delay.ms", INT, 3000, MEDIUM, Range(0)).means(
        "How long the first assignment of the empty streams group waits for more members, in milliseconds."
    ),
)

GROUP_KEYS: Final[dict[str, ConfigKey]] = {key.name: key for key in _KEYS}
