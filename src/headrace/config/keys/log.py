"""Keys of the log: directories, segments, retention, flushing, compaction. Most are defaults for topics."""

from headrace.config.keys.notation import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    DOUBLE_MAX,
    HIGH,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    LOW,
    MEDIUM,
    PER_BROKER,
    STRING,
    key,
)
from headrace.config.rules import ListOf, OneOf, Range, RangeOr

KEYS = (
    key("log.dir", LIST, ("/tmp/kafka-logs",), HIGH, ListOf(empty=False)).means(
        "The directory for data, if `log.dirs` is not set."
    ),
    key("log.dirs", LIST, None, HIGH, ListOf(empty=False, none=True)).means(
        "The directories for data, separated by commas. Partitions are spread over them."
    ),
    key("cordoned.log.dirs", LIST, (), MEDIUM, ListOf(none=True), PER_BROKER).means(
        "Data directories that get no new partitions, or `*` for all of them. What is in them is served "
        "as before."
    ),
    key("log.dir.failure.timeout.ms", LONG, 30000, LOW, Range(1)).means(
        "A broker that could not tell the controller of a failed data directory for this many "
        "milliseconds stops. No effect while a node is alone."
    ),
    key("log.segment.bytes", INT, 1_073_741_824, HIGH, Range(1_048_576), CLUSTER_WIDE).means(
        "Size at which a segment file is closed and the next begins, in bytes. Topics override it with "
        "`segment.bytes`."
    ),
    key("log.roll.ms", LONG, None, HIGH, update=CLUSTER_WIDE).means(
        "Age at which a segment is closed even if it is not full, in milliseconds. Goes before "
        "`log.roll.hours`."
    ),
    key("log.roll.hours", INT, 168, HIGH, Range(1)).means(
        "Age at which a segment is closed even if it is not full, in hours, if `log.roll.ms` is not set."
    ),
    key("log.roll.jitter.ms", LONG, None, HIGH, update=CLUSTER_WIDE).means(
        "The most milliseconds taken off a segment's age limit at random, so that not all logs roll at "
        "once. Goes before `log.roll.jitter.hours`."
    ),
    key("log.roll.jitter.hours", INT, 0, HIGH, Range(0)).means(
        "The most hours taken off a segment's age limit at random, if `log.roll.jitter.ms` is not set."
    ),
    key("log.retention.ms", LONG, None, HIGH, update=CLUSTER_WIDE).means(
        "How long records are kept, in milliseconds; -1 keeps them for ever. Goes before "
        "`log.retention.minutes` and `log.retention.hours`."
    ),
    key("log.retention.minutes", INT, None, HIGH).means(
        "How long records are kept, in minutes, if `log.retention.ms` is not set."
    ),
    key("log.retention.hours", INT, 168, HIGH).means(
        "How long records are kept, in hours, if neither `log.retention.ms` nor `log.retention.minutes` "
        "is set."
    ),
    key("log.retention.bytes", LONG, -1, HIGH, update=CLUSTER_WIDE).means(
        "Size above which the oldest segments of a partition are deleted, in bytes; -1 sets no limit."
    ),
    key("log.retention.check.interval.ms", LONG, 300_000, MEDIUM, Range(1)).means(
        "Time between two looks for segments that can be deleted, in milliseconds."
    ),
    key("log.cleanup.policy", LIST, ("delete",), MEDIUM, ListOf("compact", "delete"), CLUSTER_WIDE).means(
        "What happens to old records: `delete` removes old segments, `compact` keeps the last value of "
        "each key. Both, or neither, are possible."
    ),
    key("log.index.size.max.bytes", INT, 10_485_760, MEDIUM, Range(4), CLUSTER_WIDE).means(
        "The largest size of a segment's offset and time index, in bytes. A full index closes the segment."
    ),
    key("log.index.interval.bytes", INT, 4096, MEDIUM, Range(0), CLUSTER_WIDE).means(
        "How many bytes of records there are between two entries of the offset index."
    ),
    key("log.flush.interval.messages", LONG, LONG_MAX, HIGH, Range(1), CLUSTER_WIDE).means(
        "After how many records a partition is forced to disk."
    ),
    key("log.flush.interval.ms", LONG, None, HIGH, update=CLUSTER_WIDE).means(
        "After how many milliseconds a partition with unflushed records is forced to disk; "
        "`log.flush.scheduler.interval.ms` counts if this is not set."
    ),
    key("log.flush.scheduler.interval.ms", LONG, LONG_MAX, HIGH).means(
        "Time between two looks for partitions that are due to be forced to disk, in milliseconds."
    ),
    key("log.flush.offset.checkpoint.interval.ms", INT, 60000, HIGH, Range(0)).means(
        "Time between two writes of the recovery point checkpoint, in milliseconds. Recovery after a "
        "crash starts there."
    ),
    key("log.flush.start.offset.checkpoint.interval.ms", INT, 60000, HIGH, Range(0)).means(
        "Time between two writes of the log start offset checkpoint, in milliseconds."
    ),
    key("log.segment.delete.delay.ms", LONG, 60000, HIGH, Range(0), CLUSTER_WIDE).means(
        "How long the files of a deleted segment stay on disk, renamed, in milliseconds."
    ),
    key("log.preallocate", BOOLEAN, False, MEDIUM, update=CLUSTER_WIDE).means(
        "Whether a new segment file is given its full size at once."
    ),
    key(
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        MEDIUM,
        OneOf("CreateTime", "LogAppendTime"),
        CLUSTER_WIDE,
    ).means(
        "Whether a record carries the time its producer gave it (`CreateTime`) or the time it was "
        "appended (`LogAppendTime`)."
    ),
    key("log.message.timestamp.before.max.ms", LONG, LONG_MAX, MEDIUM, Range(0), CLUSTER_WIDE).means(
        "How far a record's time may lie before the broker's clock, in milliseconds; older ones are "
        "refused. Only for `CreateTime`."
    ),
    key("log.message.timestamp.after.max.ms", LONG, 3_600_000, MEDIUM, Range(0), CLUSTER_WIDE).means(
        "How far a record's time may lie ahead of the broker's clock, in milliseconds; later ones are "
        "refused. Only for `CreateTime`."
    ),
    key("log.initial.task.delay.ms", LONG, 30000, LOW, Range(0), internal=True).means(
        "How long after the start retention, flushing and checkpoints begin, in milliseconds."
    ),
    key("num.recovery.threads.per.data.dir", INT, 2, HIGH, Range(1), CLUSTER_WIDE, inert=True).means(
        "Number of threads that load and recover each data directory. No effect in Headrace: recovery "
        "runs in worker processes sized by the machine."
    ),
    key(
        "compression.type",
        STRING,
        "producer",
        HIGH,
        OneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        CLUSTER_WIDE,
    ).means(
        "The compression of stored batches: `producer` keeps what was sent, `uncompressed` stores them "
        "plain, the others recompress what differs."
    ),
    key("compression.gzip.level", INT, -1, MEDIUM, RangeOr(1, 9, -1), CLUSTER_WIDE).means(
        "Level for recompression with gzip, 1 to 9, or -1 for the library's default."
    ),
    key("compression.lz4.level", INT, 9, MEDIUM, Range(1, 17), CLUSTER_WIDE).means(
        "Level for recompression with lz4, 1 to 17."
    ),
    key("compression.zstd.level", INT, 3, MEDIUM, Range(-131_072, 22), CLUSTER_WIDE).means(
        "Level for recompression with zstd, -131072 to 22."
    ),
    key("min.insync.replicas", INT, 1, HIGH, Range(1), CLUSTER_WIDE).means(
        "How many in-sync replicas, the leader included, a partition needs to take writes with `acks=all`."
    ),
    key("log.cleaner.enable", BOOLEAN, True, MEDIUM).means(
        "Older switch for compaction. Compacted topics are compacted whatever it says."
    ),
    key("log.cleaner.threads", INT, 1, MEDIUM, Range(0), CLUSTER_WIDE, inert=True).means(
        "Number of cleaner threads. No effect in Headrace: compaction runs in worker processes sized by "
        "the machine."
    ),
    key("log.cleaner.io.max.bytes.per.second", DOUBLE, DOUBLE_MAX, MEDIUM, update=CLUSTER_WIDE).means(
        "The most bytes that compaction reads and writes in a second."
    ),
    key("log.cleaner.dedupe.buffer.size", LONG, 134_217_728, MEDIUM, update=CLUSTER_WIDE).means(
        "Memory for the table of keys while a log is compacted, in bytes, shared by all cleaners."
    ),
    key("log.cleaner.io.buffer.size", INT, 524_288, MEDIUM, Range(0), CLUSTER_WIDE, inert=True).means(
        "Size of the cleaner's read and write buffers. No effect in Headrace: segments are read in chunks "
        "of a size of its own."
    ),
    key("log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, MEDIUM, update=CLUSTER_WIDE, inert=True).means(
        "How full the table of keys may get. No effect in Headrace: the table holds as many keys as its "
        "memory allows."
    ),
    key("log.cleaner.backoff.ms", LONG, 15000, MEDIUM, Range(0), CLUSTER_WIDE).means(
        "How long the cleaner rests when no log needs compaction, in milliseconds."
    ),
    key("log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, MEDIUM, Range(0, 1), CLUSTER_WIDE).means(
        "Share of a log that must be uncompacted before it is compacted, from 0 to 1."
    ),
    key("log.cleaner.delete.retention.ms", LONG, 86_400_000, MEDIUM, Range(0), CLUSTER_WIDE).means(
        "How long tombstones and transaction markers stay in a compacted log, in milliseconds, so that a "
        "reader can see them."
    ),
    key("log.cleaner.min.compaction.lag.ms", LONG, 0, MEDIUM, Range(0), CLUSTER_WIDE).means(
        "How long a record stays uncompacted at least, in milliseconds."
    ),
    key("log.cleaner.max.compaction.lag.ms", LONG, LONG_MAX, MEDIUM, Range(1), CLUSTER_WIDE).means(
        "How long a record may stay uncompacted at most, in milliseconds."
    ),
)
