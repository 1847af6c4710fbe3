"""Keys of the group coordinator: offsets, classic groups, consumer groups and streams groups."""

from headrace.config.keys.notation import (
    CLUSTER_WIDE,
    HIGH,
    INT,
    INT_MAX,
    LIST,
    LONG,
    MEDIUM,
    SHORT,
    STRING,
    key,
)
from headrace.config.rules import ListOf, OneOfAnyCase, Range

KEYS = (
    key("offsets.topic.num.partitions", INT, 50, HIGH, Range(1)).means(
        "How many partitions the topic of committed offsets gets. Must not change once it exists."
    ),
    key("offsets.topic.replication.factor", SHORT, 3, HIGH, Range(1)).means(
        "How many replicas the topic of committed offsets gets when it is created."
    ),
    key("offsets.topic.segment.bytes", INT, 104_857_600, HIGH, Range(1)).means(
        "Segment size of the topic of committed offsets, in bytes. Small segments load faster."
    ),
    key("offsets.topic.compression.codec", INT, 0, HIGH).means(
        "Compression of the topic of committed offsets, by its number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 "
        "zstd."
    ),
    key("offsets.retention.minutes", INT, 10080, HIGH, Range(1)).means(
        "How long the offsets of a group without members are kept, in minutes."
    ),
    key("offsets.retention.check.interval.ms", LONG, 600_000, HIGH, Range(1)).means(
        "Time between two looks for expired offsets, in milliseconds."
    ),
    key("offsets.commit.timeout.ms", INT, 5000, HIGH, Range(1)).means(
        "How long a commit may wait for the replicas of the offsets topic, in milliseconds."
    ),
    key("offsets.load.buffer.size", INT, 5_242_880, HIGH, Range(1), inert=True).means(
        "Read size while groups are loaded. No effect in Headrace: partitions are loaded in chunks of a "
        "size of its own."
    ),
    key("offset.metadata.max.bytes", INT, 4096, HIGH).means(
        "The longest text that a client may store with a committed offset, in bytes."
    ),
    key("group.min.session.timeout.ms", INT, 6000, MEDIUM).means(
        "The shortest session time-out a member of a classic group may ask for, in milliseconds."
    ),
    key("group.max.session.timeout.ms", INT, 1_800_000, MEDIUM).means(
        "The longest session time-out a member of a classic group may ask for, in milliseconds."
    ),
    key("group.initial.rebalance.delay.ms", INT, 3000, MEDIUM).means(
        "How long the first rebalance of an empty classic group waits for more members, in milliseconds."
    ),
    key("group.max.size", INT, INT_MAX, MEDIUM, Range(1)).means("How many members a classic group may have."),
    key("group.coordinator.append.linger.ms", INT, -1, MEDIUM, Range(-1)).means(
        "How long the coordinator collects records before it writes them, in milliseconds; -1 adapts to "
        "the load."
    ),
    key("group.coordinator.threads", INT, 4, HIGH, Range(1), inert=True).means(
        "Number of coordinator threads. No effect in Headrace: a node runs on one event loop."
    ),
    key("group.coordinator.background.threads", INT, 2, HIGH, Range(1), inert=True).means(
        "Number of threads for assignments and regular expressions. No effect in Headrace: a node runs on "
        "one event loop."
    ),
    key(
        "group.coordinator.cached.buffer.max.bytes",
        INT,
        1_048_588,
        MEDIUM,
        Range(524_288),
        CLUSTER_WIDE,
        inert=True,
    ).means(
        "Largest write buffer that is kept for reuse. No effect in Headrace: write buffers are not cached."
    ),
    key(
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic", "consumer", "streams"),
        MEDIUM,
        ListOf("consumer", "classic", "share", "streams", empty=False),
    ).means(
        "The kinds of groups that are served: `classic` (always needed), `consumer`, `streams`, `share`."
    ),
    key("group.consumer.session.timeout.ms", INT, 45000, MEDIUM, Range(1)).means(
        "A consumer group's member that sent no heartbeat for this many milliseconds is removed."
    ),
    key("group.consumer.min.session.timeout.ms", INT, 45000, MEDIUM, Range(1)).means(
        "The least that `consumer.session.timeout.ms` of a group may be."
    ),
    key("group.consumer.max.session.timeout.ms", INT, 60000, MEDIUM, Range(1)).means(
        "The most that `consumer.session.timeout.ms` of a group may be."
    ),
    key("group.consumer.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1)).means(
        "Time between two heartbeats of a consumer group's member, in milliseconds."
    ),
    key("group.consumer.min.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1)).means(
        "The least that `consumer.heartbeat.interval.ms` of a group may be."
    ),
    key("group.consumer.max.heartbeat.interval.ms", INT, 15000, MEDIUM, Range(1)).means(
        "The most that `consumer.heartbeat.interval.ms` of a group may be."
    ),
    key("group.consumer.assignment.interval.ms", INT, 1000, MEDIUM, Range(0), CLUSTER_WIDE).means(
        "Least time between two new assignments of a consumer group, in milliseconds; 0 for none."
    ),
    key("group.consumer.min.assignment.interval.ms", INT, 0, MEDIUM, Range(0)).means(
        "The least that `consumer.assignment.interval.ms` of a group may be."
    ),
    key("group.consumer.max.assignment.interval.ms", INT, 15000, MEDIUM, Range(0)).means(
        "The most that `consumer.assignment.interval.ms` of a group may be."
    ),
    key("group.consumer.max.size", INT, INT_MAX, MEDIUM, Range(1)).means(
        "How many members a consumer group may have."
    ),
    key("group.consumer.assignors", LIST, ("uniform", "range"), MEDIUM, ListOf(empty=False)).means(
        "The server-side assignors, `uniform` and `range`; the first is used where a group names none."
    ),
    key(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        MEDIUM,
        OneOfAnyCase("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
    ).means(
        "Which ways a group may change between the classic and the consumer protocol: `upgrade`, "
        "`downgrade`, `bidirectional` or `disabled`."
    ),
    key("group.consumer.regex.refresh.interval.ms", INT, 600_000, MEDIUM, Range(10000), internal=True).means(
        "Time between two evaluations of a group's subscribed regular expressions, in milliseconds."
    ),
    key("group.streams.session.timeout.ms", INT, 45000, MEDIUM, Range(1)).means(
        "A streams group's member that sent no heartbeat for this many milliseconds is removed."
    ),
    key("group.streams.min.session.timeout.ms", INT, 45000, MEDIUM, Range(1)).means(
        "The least that `streams.session.timeout.ms` of a group may be."
    ),
    key("group.streams.max.session.timeout.ms", INT, 60000, MEDIUM, Range(1)).means(
        "The most that `streams.session.timeout.ms` of a group may be."
    ),
    key("group.streams.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1)).means(
        "Time between two heartbeats of a streams group's member, in milliseconds."
    ),
    key("group.streams.min.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1)).means(
        "The least that `streams.heartbeat.interval.ms` of a group may be."
    ),
    key("group.streams.max.heartbeat.interval.ms", INT, 15000, MEDIUM, Range(1)).means(
        "The most that `streams.heartbeat.interval.ms` of a group may be."
    ),
    key("group.streams.assignment.interval.ms", INT, 1000, MEDIUM, Range(0), CLUSTER_WIDE).means(
        "Least time between two new assignments of a streams group, in milliseconds; 0 for none."
    ),
    key("group.streams.min.assignment.interval.ms", INT, 0, MEDIUM, Range(0)).means(
        "The least that `streams.assignment.interval.ms` of a group may be."
    ),
    key("group.streams.max.assignment.interval.ms", INT, 15000, MEDIUM, Range(0)).means(
        "The most that `streams.assignment.interval.ms` of a group may be."
    ),
    key("group.streams.max.size", INT, INT_MAX, MEDIUM, Range(1)).means(
        "How many members a streams group may have."
    ),
    key("group.streams.num.standby.replicas", INT, 0, MEDIUM, Range(0)).means(
        "How many standby copies of each stateful task a streams group keeps."
    ),
    key("group.streams.max.standby.replicas", INT, 2, MEDIUM, Range(0)).means(
        "The most that `streams.num.standby.replicas` of a group may be."
    ),
    key("group.streams.initial.rebalance.delay.ms", INT, 3000, MEDIUM, Range(0)).means(
        "How long the first assignment of an empty streams group waits for more members, in milliseconds."
    ),
)
