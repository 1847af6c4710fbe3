"""Keys of a broker that concern rates: the windows they are measured over, and, at run time, throttles."""

from headrace.config.keys.notation import CLASS, CLUSTER_WIDE, INT, LONG, LONG_MAX, LOW, MEDIUM, key
from headrace.config.rules import Range

KEYS = (
    key("quota.window.num", INT, 11, LOW, Range(1)).means(
        "How many windows of a client's rate are remembered."
    ),
    key("quota.window.size.seconds", INT, 1, LOW, Range(1)).means(
        "Length of each window of a client's rate, in seconds."
    ),
    key("replication.quota.window.num", INT, 11, LOW, Range(1)).means(
        "How many windows of the replication rate are remembered. No effect while a node is alone."
    ),
    key("replication.quota.window.size.seconds", INT, 1, LOW, Range(1)).means(
        "Length of each window of the replication rate, in seconds. No effect while a node is alone."
    ),
    key("alter.log.dirs.replication.quota.window.num", INT, 11, LOW, Range(1), inert=True).means(
        "How many windows of the rate of moves between data directories are remembered. "
        "No effect in Headrace."
    ),
    key("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, LOW, Range(1), inert=True).means(
        "Length of each window of the rate of moves between data directories, in seconds. "
        "No effect in Headrace."
    ),
    key("controller.quota.window.num", INT, 11, LOW, Range(1)).means(
        "How many windows of the rate of topic changes are remembered."
    ),
    key("controller.quota.window.size.seconds", INT, 1, LOW, Range(1)).means(
        "Length of each window of the rate of topic changes, in seconds."
    ),
    key("client.quota.callback.class", CLASS, None, LOW).means(
        "A Java class that decides on quotas. Headrace loads no Java classes, so this cannot be set."
    ),
)

RUN_TIME_KEYS = (
    key("leader.replication.throttled.rate", LONG, LONG_MAX, MEDIUM, Range(0), CLUSTER_WIDE).means(
        "The most bytes in a second that this broker, as leader, sends to throttled replicas. Only set at "
        "run time. No effect while a node is alone."
    ),
    key("follower.replication.throttled.rate", LONG, LONG_MAX, MEDIUM, Range(0), CLUSTER_WIDE).means(
        "The most bytes in a second that this broker, as follower, reads into throttled replicas. Only "
        "set at run time. No effect while a node is alone."
    ),
    key(
        "replica.alter.log.dirs.io.max.bytes.per.second", LONG, LONG_MAX, MEDIUM, Range(0), CLUSTER_WIDE
    ).means("The most bytes in a second that moves between data directories copy. Only set at run time."),
)
