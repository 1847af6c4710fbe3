"""Keys of a topic. What a topic does not set comes from the broker's key of the same meaning."""

from typing import Final

from headrace.config.definition import ConfigKey
from headrace.config.keys.notation import BOOLEAN, DOUBLE, INT, LIST, LONG, LONG_MAX, MEDIUM, STRING, key
from headrace.config.rules import ListOf, OneOf, Range, RangeOr, ThrottledReplicas

_KEYS = (
    key("cleanup.policy", LIST, ("delete",), MEDIUM, ListOf("compact", "delete")).means(
        "What happens to old records: `delete` removes old segments, `compact` keeps the last value of "
        "each key. Both are possible, and an empty list keeps everything."
    ),
    key(
        "compression.type",
        STRING,
        "producer",
        MEDIUM,
        OneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    ).means(
        "The compression of stored batches: `producer` keeps what was sent, `uncompressed` stores them "
        "plain, the others recompress what differs."
    ),
    key("compression.gzip.level", INT, -1, MEDIUM, RangeOr(1, 9, -1)).means(
        "Level for recompression with gzip, 1 to 9, or -1 for the library's default."
    ),
    key("compression.lz4.level", INT, 9, MEDIUM, Range(1, 17)).means(
        "Level for recompression with lz4, 1 to 17."
    ),
    key("compression.zstd.level", INT, 3, MEDIUM, Range(-131_072, 22)).means(
        "Level for recompression with zstd, -131072 to 22."
    ),
    key("delete.retention.ms", LONG, 86_400_000, MEDIUM, Range(0)).means(
        "How long tombstones and transaction markers stay in a compacted topic, in milliseconds, so that "
        "a reader can see them."
    ),
    key("file.delete.delay.ms", LONG, 60000, MEDIUM, Range(0)).means(
        "How long the files of a deleted segment stay on disk, renamed, in milliseconds."
    ),
    key("flush.messages", LONG, LONG_MAX, MEDIUM, Range(1)).means(
        "After how many records a partition is forced to disk."
    ),
    key("flush.ms", LONG, LONG_MAX, MEDIUM, Range(0)).means(
        "After how many milliseconds a partition with unflushed records is forced to disk."
    ),
    key("follower.replication.throttled.replicas", LIST, (), MEDIUM, ThrottledReplicas()).means(
        "Replicas that are throttled where they are written, as `partition:broker` separated by commas, "
        "or `*` for all."
    ),
    key("leader.replication.throttled.replicas", LIST, (), MEDIUM, ThrottledReplicas()).means(
        "Replicas that are throttled where they are read, as `partition:broker` separated by commas, or "
        "`*` for all."
    ),
    key("index.interval.bytes", INT, 4096, MEDIUM, Range(0)).means(
        "How many bytes of records there are between two entries of the offset index."
    ),
    key("internal.segment.bytes", INT, None, MEDIUM, internal=True).means(
        "Size of a segment for tests, in bytes; goes before `segment.bytes`."
    ),
    key("local.retention.bytes", LONG, -2, MEDIUM, Range(-2), inert=True).means(
        "How many bytes stay on local disk once they are in remote storage. No effect in Headrace: there "
        "is no tiered storage."
    ),
    key("local.retention.ms", LONG, -2, MEDIUM, Range(-2), inert=True).means(
        "How long a segment stays on local disk once it is in remote storage. No effect in Headrace: "
        "there is no tiered storage."
    ),
    key("max.compaction.lag.ms", LONG, LONG_MAX, MEDIUM, Range(1)).means(
        "How long a record may stay uncompacted at most, in milliseconds."
    ),
    key("max.message.bytes", INT, 1_048_588, MEDIUM, Range(0)).means(
        "The largest record batch that the topic takes, in bytes as sent."
    ),
    key("message.timestamp.after.max.ms", LONG, 3_600_000, MEDIUM, Range(0)).means(
        "How far a record's time may lie ahead of the broker's clock, in milliseconds; later ones are "
        "refused. Only for `CreateTime`."
    ),
    key("message.timestamp.before.max.ms", LONG, LONG_MAX, MEDIUM, Range(0)).means(
        "How far a record's time may lie before the broker's clock, in milliseconds; older ones are "
        "refused. Only for `CreateTime`."
    ),
    key("message.timestamp.type", STRING, "CreateTime", MEDIUM, OneOf("CreateTime", "LogAppendTime")).means(
        "Whether a record carries the time its producer gave it (`CreateTime`) or the time it was "
        "appended (`LogAppendTime`)."
    ),
    key("min.cleanable.dirty.ratio", DOUBLE, 0.5, MEDIUM, Range(0, 1)).means(
        "Share of a log that must be uncompacted before it is compacted, from 0 to 1."
    ),
    key("min.compaction.lag.ms", LONG, 0, MEDIUM, Range(0)).means(
        "How long a record stays uncompacted at least, in milliseconds."
    ),
    key("min.insync.replicas", INT, 1, MEDIUM, Range(1)).means(
        "How many in-sync replicas, the leader included, a partition needs to take writes with `acks=all`."
    ),
    key("preallocate", BOOLEAN, False, MEDIUM).means(
        "Whether a new segment file is given its full size at once."
    ),
    key("remote.log.copy.disable", BOOLEAN, False, MEDIUM, inert=True).means(
        "Stops uploads to remote storage. No effect in Headrace: there is no tiered storage."
    ),
    key("remote.log.delete.on.disable", BOOLEAN, False, MEDIUM, inert=True).means(
        "Whether remote data is deleted when remote storage is switched off. No effect in Headrace: there "
        "is no tiered storage."
    ),
    key("remote.storage.enable", BOOLEAN, False, MEDIUM).means(
        "Keeps the topic's old segments in remote storage. Headrace has no tiered storage and refuses `true`."
    ),
    key("retention.bytes", LONG, -1, MEDIUM).means(
        "Size above which the oldest segments of a partition are deleted, in bytes; -1 sets no limit."
    ),
    key("retention.ms", LONG, 604_800_000, MEDIUM, Range(-1)).means(
        "How long records are kept, in milliseconds; -1 keeps them for ever."
    ),
    key("segment.bytes", INT, 1_073_741_824, MEDIUM, Range(1_048_576)).means(
        "Size at which a segment file is closed and the next begins, in bytes."
    ),
    key("segment.index.bytes", INT, 10_485_760, MEDIUM, Range(4)).means(
        "The largest size of a segment's offset and time index, in bytes. A full index closes the segment."
    ),
    key("segment.jitter.ms", LONG, 0, MEDIUM, Range(0)).means(
        "The most milliseconds taken off a segment's age limit at random, so that not all logs roll at once."
    ),
    key("segment.ms", LONG, 604_800_000, MEDIUM, Range(1)).means(
        "Age at which a segment is closed even if it is not full, in milliseconds."
    ),
    key("unclean.leader.election.enable", BOOLEAN, False, MEDIUM).means(
        "Whether a replica that is not in sync may become leader when no other is left. Records can be "
        "lost by it."
    ),
)

TOPIC_KEYS: Final[dict[str, ConfigKey]] = {key.name: key for key in _KEYS}
