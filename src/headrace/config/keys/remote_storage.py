"""Keys of tiered storage, which Headrace does not have: switching it on is refused, the rest does nothing."""

from headrace.config.keys.notation import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    LONG,
    LONG_MAX,
    LOW,
    MEDIUM,
    STRING,
    key,
)
from headrace.config.rules import NonEmptyText, Range

KEYS = (
    key("remote.log.storage.system.enable", BOOLEAN, False, MEDIUM).means(
        "Switches tiered storage on. Headrace has none and refuses to start with it."
    ),
    key("remote.log.storage.manager.class.name", STRING, None, MEDIUM, NonEmptyText(), inert=True).means(
        "Class that reaches the remote storage. No effect in Headrace: there is no tiered storage."
    ),
    key("remote.log.storage.manager.class.path", STRING, None, MEDIUM, inert=True).means(
        "Where that class is found. No effect in Headrace: there is no tiered storage."
    ),
    key(
        "remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", MEDIUM, NonEmptyText(), inert=True
    ).means("Prefix of the remote storage's own keys. No effect in Headrace: there is no tiered storage."),
    key(
        "remote.log.metadata.manager.class.name",
        STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        MEDIUM,
        NonEmptyText(),
        inert=True,
    ).means(
        "Class that keeps the list of remote segments. No effect in Headrace: there is no tiered storage."
    ),
    key("remote.log.metadata.manager.class.path", STRING, None, MEDIUM, inert=True).means(
        "Where that class is found. No effect in Headrace: there is no tiered storage."
    ),
    key(
        "remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", MEDIUM, NonEmptyText(), inert=True
    ).means("Prefix of that class's own keys. No effect in Headrace: there is no tiered storage."),
    key("remote.log.metadata.manager.listener.name", STRING, None, MEDIUM, NonEmptyText(), inert=True).means(
        "Listener that the list of remote segments is reached through. No effect in Headrace: there is no "
        "tiered storage."
    ),
    key("remote.log.metadata.custom.metadata.max.bytes", INT, 128, LOW, Range(0), inert=True).means(
        "Most bytes of custom data for a remote segment. No effect in Headrace: there is no tiered storage."
    ),
    key(
        "remote.log.index.file.cache.total.size.bytes",
        LONG,
        1_073_741_824,
        LOW,
        Range(1),
        CLUSTER_WIDE,
        inert=True,
    ).means("Disk space for indexes of remote segments. No effect in Headrace: there is no tiered storage."),
    key("remote.log.index.file.cache.ttl.ms", LONG, 900_000, LOW, Range(-1), internal=True, inert=True).means(
        "How long an unused index of a remote segment is kept. No effect in Headrace: there is no tiered "
        "storage."
    ),
    key("remote.log.manager.thread.pool.size", INT, 2, MEDIUM, Range(1), inert=True).means(
        "Number of threads for remote segments. No effect in Headrace: there is no tiered storage."
    ),
    key(
        "remote.log.manager.copier.thread.pool.size", INT, 10, MEDIUM, Range(1), CLUSTER_WIDE, inert=True
    ).means("Number of threads that upload segments. No effect in Headrace: there is no tiered storage."),
    key(
        "remote.log.manager.expiration.thread.pool.size", INT, 10, MEDIUM, Range(1), CLUSTER_WIDE, inert=True
    ).means(
        "Number of threads that delete remote segments. No effect in Headrace: there is no tiered storage."
    ),
    key(
        "remote.log.manager.follower.thread.pool.size", INT, 2, MEDIUM, Range(1), CLUSTER_WIDE, inert=True
    ).means(
        "Number of threads that follow remote segments. No effect in Headrace: there is no tiered storage."
    ),
    key("remote.log.manager.task.interval.ms", LONG, 30000, LOW, Range(1), inert=True).means(
        "Time between two runs of the remote segment tasks. No effect in Headrace: there is no tiered "
        "storage."
    ),
    key(
        "remote.log.manager.task.retry.backoff.ms", LONG, 500, LOW, Range(1), internal=True, inert=True
    ).means("First pause after a failed remote task. No effect in Headrace: there is no tiered storage."),
    key(
        "remote.log.manager.task.retry.backoff.max.ms", LONG, 30000, LOW, Range(1), internal=True, inert=True
    ).means("Longest pause after a failed remote task. No effect in Headrace: there is no tiered storage."),
    key(
        "remote.log.manager.task.retry.jitter", DOUBLE, 0.2, LOW, Range(0, 0.5), internal=True, inert=True
    ).means("Random share of that pause. No effect in Headrace: there is no tiered storage."),
    key(
        "remote.log.manager.copy.max.bytes.per.second",
        LONG,
        LONG_MAX,
        MEDIUM,
        Range(1),
        CLUSTER_WIDE,
        inert=True,
    ).means("Most bytes uploaded in a second. No effect in Headrace: there is no tiered storage."),
    key("remote.log.manager.copy.quota.window.num", INT, 11, MEDIUM, Range(1), inert=True).means(
        "Windows of the upload rate. No effect in Headrace: there is no tiered storage."
    ),
    key("remote.log.manager.copy.quota.window.size.seconds", INT, 1, MEDIUM, Range(1), inert=True).means(
        "Length of each window of the upload rate. No effect in Headrace: there is no tiered storage."
    ),
    key(
        "remote.log.manager.fetch.max.bytes.per.second",
        LONG,
        LONG_MAX,
        MEDIUM,
        Range(1),
        CLUSTER_WIDE,
        inert=True,
    ).means("Most bytes downloaded in a second. No effect in Headrace: there is no tiered storage."),
    key("remote.log.manager.fetch.quota.window.num", INT, 11, MEDIUM, Range(1), inert=True).means(
        "Windows of the download rate. No effect in Headrace: there is no tiered storage."
    ),
    key("remote.log.manager.fetch.quota.window.size.seconds", INT, 1, MEDIUM, Range(1), inert=True).means(
        "Length of each window of the download rate. No effect in Headrace: there is no tiered storage."
    ),
    key("remote.log.reader.threads", INT, 10, MEDIUM, Range(1), CLUSTER_WIDE, inert=True).means(
        "Number of threads that read remote segments. No effect in Headrace: there is no tiered storage."
    ),
    key("remote.log.reader.max.pending.tasks", INT, 100, MEDIUM, Range(1), inert=True).means(
        "How many reads of remote segments may wait. No effect in Headrace: there is no tiered storage."
    ),
    key("remote.fetch.max.wait.ms", INT, 500, MEDIUM, Range(1), CLUSTER_WIDE, inert=True).means(
        "How long a fetch waits for remote data. No effect in Headrace: there is no tiered storage."
    ),
    key(
        "remote.list.offsets.request.timeout.ms", LONG, 30000, MEDIUM, Range(1), CLUSTER_WIDE, inert=True
    ).means(
        "How long a search for an offset in remote data may take. No effect in Headrace: there is no "
        "tiered storage."
    ),
    key("log.local.retention.ms", LONG, -2, MEDIUM, Range(-2), CLUSTER_WIDE, inert=True).means(
        "How long a segment stays on local disk once it is in remote storage. No effect in Headrace: "
        "there is no tiered storage."
    ),
    key("log.local.retention.bytes", LONG, -2, MEDIUM, Range(-2), CLUSTER_WIDE, inert=True).means(
        "How many bytes stay on local disk once they are in remote storage. No effect in Headrace: there "
        "is no tiered storage."
    ),
)
