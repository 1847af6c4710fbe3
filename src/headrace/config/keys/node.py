"""Keys of the node itself: its roles and identity, and the limits that hold for every request."""

from headrace.config.keys.notation import (
    BOOLEAN,
    CLASS,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    LOW,
    MEDIUM,
    STRING,
    key,
)
from headrace.config.rules import ListOf, Range

KEYS = (
    key("process.roles", LIST, None, HIGH, ListOf("broker", "controller", empty=False), required=True).means(
        "What this node does: `broker`, `controller`, or both, separated by a comma."
    ),
    key("node.id", INT, None, HIGH, Range(0), required=True).means(
        "The number that names this node in the cluster. No other broker or controller may have the same one."
    ),
    key("broker.id", INT, -1, HIGH).means(
        "Older name of `node.id`. If both are set they must be equal; if one is missing it follows the other."
    ),
    key("broker.rack", STRING, None, MEDIUM).means(
        "The rack or zone this node stands in. Replicas of a partition are spread over racks, and a "
        "consumer that names its rack can be served from the same one."
    ),
    key("initial.broker.registration.timeout.ms", INT, 60000, MEDIUM).means(
        "How long a starting broker tries to register with the controller before it gives up and stops, "
        "in milliseconds. No effect while a node is alone."
    ),
    key("broker.heartbeat.interval.ms", INT, 2000, MEDIUM).means(
        "Time between two heartbeats that a broker sends to the controller, in milliseconds. "
        "No effect while a node is alone."
    ),
    key("broker.session.timeout.ms", INT, 9000, MEDIUM).means(
        "A broker from which the controller heard no heartbeat for this many milliseconds is fenced and "
        "loses its leaderships."
    ),
    key("server.max.startup.time.ms", LONG, LONG_MAX, MEDIUM, Range(0), internal=True, inert=True).means(
        "The longest time, in milliseconds, that a start may take before the process stops with an error. "
        "No effect in Headrace."
    ),
    key("controlled.shutdown.enable", BOOLEAN, True, MEDIUM).means(
        "Whether a stopping broker first hands its leaderships to other replicas. "
        "No effect while a node is alone."
    ),
    key("request.timeout.ms", INT, 30000, HIGH).means(
        "How long the node waits for the answer to a request it sent to another node, in milliseconds. "
        "No effect while a node is alone."
    ),
    key("message.max.bytes", INT, 1_048_588, HIGH, Range(0), CLUSTER_WIDE).means(
        "The largest record batch that a topic takes, in bytes as sent, unless the topic sets "
        "`max.message.bytes`."
    ),
    key("fetch.max.bytes", INT, 57_671_680, MEDIUM, Range(1024)).means(
        "The most bytes that one fetch answer carries, whatever the client asks for. A first batch larger "
        "than this is still returned."
    ),
    key("max.incremental.fetch.session.cache.slots", INT, 1000, MEDIUM, Range(0)).means(
        "How many incremental fetch sessions the node remembers. Clients beyond that number send full "
        "fetch requests."
    ),
    key("max.request.partition.size.limit", INT, 2000, MEDIUM, Range(1)).means(
        "The most partitions that one answer of the topic description API lists; the client asks again "
        "for the rest."
    ),
    key("delete.topic.enable", BOOLEAN, True, HIGH).means("Whether topics can be deleted."),
    key("auto.create.topics.enable", BOOLEAN, True, HIGH).means(
        "Whether a metadata request for an unknown topic creates it, if the client allows that as well."
    ),
    key("num.partitions", INT, 1, MEDIUM, Range(1)).means(
        "How many partitions a topic gets that is created without a number of its own."
    ),
    key("default.replication.factor", INT, 1, MEDIUM).means(
        "How many replicas a topic's partitions get when it is created without a number of its own."
    ),
    key("create.topic.policy.class.name", CLASS, None, LOW).means(
        "A Java class that may refuse the creation of topics. Headrace loads no Java classes, so this "
        "cannot be set."
    ),
    key("alter.config.policy.class.name", CLASS, None, LOW).means(
        "A Java class that may refuse changes of configuration. Headrace loads no Java classes, so this "
        "cannot be set."
    ),
    key("early.start.listeners", LIST, None, HIGH, ListOf(none=True)).means(
        "Listeners that open before the node can authorise requests. If absent, the controller listeners do."
    ),
    key("background.threads", INT, 10, HIGH, Range(1), CLUSTER_WIDE, inert=True).means(
        "Size of a thread pool. No effect in Headrace: a node runs on one event loop."
    ),
    key("num.io.threads", INT, 8, HIGH, Range(1), CLUSTER_WIDE, inert=True).means(
        "Number of request handler threads. No effect in Headrace: a node runs on one event loop."
    ),
    key("num.network.threads", INT, 3, HIGH, Range(1), CLUSTER_WIDE, inert=True).means(
        "Number of network threads of each listener. No effect in Headrace: a node runs on one event loop."
    ),
    key("config.providers", LIST, (), LOW, ListOf(), CLUSTER_WIDE).means(
        "Names of the sources that `${name:path:key}` in other values is looked up in. Each has a "
        "`config.providers.<name>.class`; the providers for environment variables, files and directories "
        "are known."
    ),
    key("unstable.api.versions.enable", BOOLEAN, False, HIGH, internal=True, inert=True).means(
        "Offers API versions that are still in development. No effect in Headrace: only released versions "
        "are offered."
    ),
    key("unstable.feature.versions.enable", BOOLEAN, False, HIGH, internal=True, inert=True).means(
        "Allows feature levels that are still in development. No effect in Headrace: only released levels "
        "are known."
    ),
    key("delete.records.purgatory.purge.interval.requests", INT, 1, MEDIUM, inert=True).means(
        "How often finished delayed requests are swept. No effect in Headrace: a parked request leaves as "
        "soon as it is answered."
    ),
    key("fetch.purgatory.purge.interval.requests", INT, 1000, MEDIUM, inert=True).means(
        "How often finished delayed fetches are swept. No effect in Headrace: a parked fetch leaves as "
        "soon as it is answered."
    ),
    key("producer.purgatory.purge.interval.requests", INT, 1000, MEDIUM, inert=True).means(
        "How often finished delayed produce requests are swept. No effect in Headrace: a parked request "
        "leaves as soon as it is answered."
    ),
    key("share.fetch.purgatory.purge.interval.requests", INT, 1000, MEDIUM, inert=True).means(
        "How often finished delayed share fetches are swept. No effect in Headrace: a parked fetch leaves "
        "as soon as it is answered."
    ),
)
