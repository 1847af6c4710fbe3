"""Keys of replication and of the choice of leaders."""

from headrace.config.keys.notation import BOOLEAN, CLUSTER_WIDE, HIGH, INT, LONG, MEDIUM, STRING, key
from headrace.config.rules import Range

KEYS = (
    key("replica.lag.time.max.ms", LONG, 30000, HIGH).means(
        "A follower that has not caught up with its leader for this many milliseconds leaves the in-sync "
        "replicas."
    ),
    key("replica.socket.timeout.ms", INT, 30000, HIGH).means(
        "How long a follower waits for an answer from the leader, in milliseconds. At least "
        "`replica.fetch.wait.max.ms`."
    ),
    key("replica.socket.receive.buffer.bytes", INT, 65536, HIGH).means(
        "Size of the system's receive buffer of a follower's connection, in bytes; -1 leaves it to the "
        "system."
    ),
    key("replica.fetch.max.bytes", INT, 1_048_576, MEDIUM, Range(0)).means(
        "How many bytes of one partition a follower asks for at a time. A first batch larger than this is "
        "still returned."
    ),
    key("replica.fetch.wait.max.ms", INT, 500, HIGH).means(
        "How long the leader may hold a follower's fetch while nothing new has come, in milliseconds. At "
        "most `replica.lag.time.max.ms`."
    ),
    key("replica.fetch.min.bytes", INT, 1, HIGH).means(
        "How many bytes must be there before the leader answers a follower's fetch early."
    ),
    key("replica.fetch.response.max.bytes", INT, 10_485_760, MEDIUM, Range(0)).means(
        "How many bytes the answer to a follower's fetch carries over all partitions. A first batch "
        "larger than this is still returned."
    ),
    key("replica.fetch.backoff.ms", INT, 1000, MEDIUM, Range(0)).means(
        "How long a follower waits after a fetch of a partition failed, in milliseconds."
    ),
    key("replica.high.watermark.checkpoint.interval.ms", LONG, 5000, HIGH).means(
        "Time between two writes of the high watermark checkpoint, in milliseconds."
    ),
    key("replica.selector.class", STRING, None, MEDIUM).means(
        "How the replica that serves a consumer is chosen. Absent means the leader; the rack-aware choice "
        "is `org.apache.kafka.common.replica.RackAwareReplicaSelector`."
    ),
    key("num.replica.fetchers", INT, 1, HIGH, Range(1), CLUSTER_WIDE, inert=True).means(
        "Number of fetcher threads for each leader. No effect in Headrace: one connection for each "
        "leader, on the event loop."
    ),
    key("num.replica.alter.log.dirs.threads", INT, None, HIGH, inert=True).means(
        "Number of threads that move replicas between data directories. No effect in Headrace: moves run "
        "on the event loop."
    ),
    key("controller.socket.timeout.ms", INT, 30000, MEDIUM).means(
        "How long a broker waits for an answer from the controller, in milliseconds."
    ),
    key("auto.leader.rebalance.enable", BOOLEAN, True, HIGH).means(
        "Whether leaderships return to the preferred replicas by themselves. No effect while a node is alone."
    ),
    key("leader.imbalance.check.interval.seconds", LONG, 300, HIGH, Range(1)).means(
        "Time between two looks for partitions whose leader is not the preferred replica, in seconds. "
        "No effect while a node is alone."
    ),
    key("unclean.leader.election.enable", BOOLEAN, False, HIGH, update=CLUSTER_WIDE).means(
        "Whether a replica that is not in sync may become leader when no other is left. Records can be "
        "lost by it."
    ),
    key("unclean.leader.election.interval.ms", LONG, 300_000, MEDIUM, Range(1), internal=True).means(
        "Time between two looks for partitions without leader that an unclean election would help, in "
        "milliseconds. No effect while a node is alone."
    ),
    key(
        "follower.fetch.last.tiered.offset.enable", BOOLEAN, False, MEDIUM, update=CLUSTER_WIDE, inert=True
    ).means(
        "Lets an empty follower begin at the last offset in remote storage. No effect in Headrace: there "
        "is no tiered storage."
    ),
)
