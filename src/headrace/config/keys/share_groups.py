"""Keys of share groups and their coordinator."""

from headrace.config.keys.notation import CLUSTER_WIDE, HIGH, INT, LIST, LOW, MEDIUM, SHORT, STRING, key
from headrace.config.rules import ListOf, Range

KEYS = (
    key("group.share.session.timeout.ms", INT, 45000, MEDIUM, Range(1)).means(
        "A share group's member that sent no heartbeat for this many milliseconds is removed."
    ),
    key("group.share.min.session.timeout.ms", INT, 45000, MEDIUM, Range(1)).means(
        "The least that `share.session.timeout.ms` of a group may be."
    ),
    key("group.share.max.session.timeout.ms", INT, 60000, MEDIUM, Range(1)).means(
        "The most that `share.session.timeout.ms` of a group may be."
    ),
    key("group.share.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1)).means(
        "Time between two heartbeats of a share group's member, in milliseconds."
    ),
    key("group.share.min.heartbeat.interval.ms", INT, 5000, MEDIUM, Range(1)).means(
        "The least that `share.heartbeat.interval.ms` of a group may be."
    ),
    key("group.share.max.heartbeat.interval.ms", INT, 15000, MEDIUM, Range(1)).means(
        "The most that `share.heartbeat.interval.ms` of a group may be."
    ),
    key("group.share.assignment.interval.ms", INT, 1000, MEDIUM, Range(0), CLUSTER_WIDE).means(
        "Least time between two new assignments of a share group, in milliseconds; 0 for none."
    ),
    key("group.share.min.assignment.interval.ms", INT, 0, MEDIUM, Range(0)).means(
        "The least that `share.assignment.interval.ms` of a group may be."
    ),
    key("group.share.max.assignment.interval.ms", INT, 15000, MEDIUM, Range(0)).means(
        "The most that `share.assignment.interval.ms` of a group may be."
    ),
    key("group.share.max.size", INT, 200, MEDIUM, Range(1, 1000)).means(
        "How many members a share group may have."
    ),
    key("group.share.assignors", LIST, ("simple",), MEDIUM, ListOf(empty=False)).means(
        "The assignor of share groups; exactly one."
    ),
    key("group.share.delivery.count.limit", INT, 5, MEDIUM, Range(2, 10)).means(
        "How often a record is handed out to a share group before it is given up."
    ),
    key("group.share.min.delivery.count.limit", INT, 2, MEDIUM, Range(2, 5)).means(
        "The least that `share.delivery.count.limit` of a group may be."
    ),
    key("group.share.max.delivery.count.limit", INT, 10, MEDIUM, Range(5, 25)).means(
        "The most that `share.delivery.count.limit` of a group may be."
    ),
    key("group.share.record.lock.duration.ms", INT, 30000, MEDIUM, Range(1000, 3_600_000)).means(
        "How long a record handed out to one consumer of a share group is withheld from the others, in "
        "milliseconds."
    ),
    key("group.share.min.record.lock.duration.ms", INT, 15000, MEDIUM, Range(1000, 30000)).means(
        "The least that `share.record.lock.duration.ms` of a group may be."
    ),
    key("group.share.max.record.lock.duration.ms", INT, 60000, MEDIUM, Range(30000, 3_600_000)).means(
        "The most that `share.record.lock.duration.ms` of a group may be."
    ),
    key("group.share.partition.max.record.locks", INT, 2000, MEDIUM, Range(100, 10000)).means(
        "How many records of one partition a share group may have handed out at once."
    ),
    key("group.share.min.partition.max.record.locks", INT, 100, MEDIUM, Range(100, 2000)).means(
        "The least that `share.partition.max.record.locks` of a group may be."
    ),
    key("group.share.max.partition.max.record.locks", INT, 4000, MEDIUM, Range(2000, 10000)).means(
        "The most that `share.partition.max.record.locks` of a group may be."
    ),
    key("group.share.max.share.sessions", INT, 2000, MEDIUM, Range(1)).means(
        "How many share sessions the node remembers. At least `group.share.max.size`."
    ),
    key("group.share.initialize.retry.interval.ms", INT, 30000, LOW, Range(1), internal=True).means(
        "Pause before a share partition's state is initialised again, in milliseconds."
    ),
    key(
        "group.share.persister.class.name",
        STRING,
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        MEDIUM,
        internal=True,
        inert=True,
    ).means(
        "The class that stores share group states. No effect in Headrace: they are kept in the share "
        "group state topic."
    ),
    key("share.coordinator.append.linger.ms", INT, -1, MEDIUM, Range(-1)).means(
        "How long the share coordinator collects records before it writes them, in milliseconds; -1 "
        "adapts to the load."
    ),
    key(
        "share.coordinator.cached.buffer.max.bytes",
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
        "share.coordinator.cold.partition.snapshot.interval.ms", INT, 300_000, LOW, Range(1), internal=True
    ).means(
        "Time after which a share partition without changes gets a snapshot of its own, in milliseconds."
    ),
    key("share.coordinator.load.buffer.size", INT, 5_242_880, HIGH, Range(1), inert=True).means(
        "Read size while share group states are loaded. No effect in Headrace: partitions are loaded in "
        "chunks of a size of its own."
    ),
    key("share.coordinator.snapshot.update.records.per.snapshot", INT, 500, MEDIUM, Range(0, 500)).means(
        "How many updates of a share partition are written between two snapshots of it."
    ),
    key("share.coordinator.state.topic.compression.codec", INT, 0, HIGH).means(
        "Compression of the share group state topic, by its number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    ),
    key("share.coordinator.state.topic.min.isr", SHORT, 2, HIGH, Range(1)).means(
        "`min.insync.replicas` of the share group state topic."
    ),
    key("share.coordinator.state.topic.num.partitions", INT, 50, HIGH, Range(1)).means(
        "How many partitions the share group state topic gets. Must not change once it exists."
    ),
    key("share.coordinator.state.topic.prune.interval.ms", INT, 300_000, LOW, Range(1), internal=True).means(
        "Time between two deletions of what is no longer needed of the share group state topic, in "
        "milliseconds."
    ),
    key("share.coordinator.state.topic.replication.factor", SHORT, 3, HIGH, Range(1)).means(
        "How many replicas the share group state topic gets when it is created."
    ),
    key("share.coordinator.state.topic.segment.bytes", INT, 104_857_600, HIGH, Range(1)).means(
        "Segment size of the share group state topic, in bytes."
    ),
    key("share.coordinator.threads", INT, 1, MEDIUM, Range(1), inert=True).means(
        "Number of share coordinator threads. No effect in Headrace: a node runs on one event loop."
    ),
    key("share.coordinator.write.timeout.ms", INT, 5000, HIGH, Range(1)).means(
        "How long a write to the share group state topic may take, in milliseconds."
    ),
)
