"""Keys of the listeners and of the connections that come in through them."""

from headrace.config.keys.notation import (
    CLUSTER_WIDE,
    HIGH,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PER_BROKER,
    STRING,
    key,
)
from headrace.config.rules import ListOf, OneOf, Range

KEYS = (
    key("listeners", LIST, ("PLAINTEXT://:9092",), HIGH, ListOf(empty=False), PER_BROKER).means(
        "The addresses this node listens on, as `NAME://host:port` separated by commas. An empty host "
        "means every interface; port 0 lets the system choose."
    ),
    key("advertised.listeners", LIST, None, HIGH, ListOf(empty=False, none=True)).means(
        "The addresses that clients and other nodes are told to use, if they differ from `listeners`."
    ),
    key(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        LOW,
        update=PER_BROKER,
    ).means("Which security protocol each listener name speaks, as `NAME:PROTOCOL` separated by commas."),
    key("inter.broker.listener.name", STRING, None, MEDIUM).means(
        "The name of the listener that brokers use among each other. Set this or "
        "`security.inter.broker.protocol`, not both."
    ),
    key(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        MEDIUM,
        OneOf("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ).means(
        "The security protocol that brokers use among each other; it is also the name of the listener, "
        "unless `inter.broker.listener.name` is set."
    ),
    key("controller.listener.names", LIST, None, HIGH, ListOf(empty=False), required=True).means(
        "The names of the listeners that controllers answer on. The first is the one that brokers and "
        "other controllers connect to."
    ),
    key("socket.send.buffer.bytes", INT, 102_400, HIGH).means(
        "Size of the system's send buffer of each connection, in bytes; -1 leaves it to the system."
    ),
    key("socket.receive.buffer.bytes", INT, 102_400, HIGH).means(
        "Size of the system's receive buffer of each connection, in bytes; -1 leaves it to the system."
    ),
    key("socket.request.max.bytes", INT, 104_857_600, HIGH, Range(1)).means(
        "The largest request that is read. A connection that announces more is closed before it is read."
    ),
    key("socket.listen.backlog.size", INT, 50, MEDIUM, Range(1)).means(
        "How many connections the system queues for a listener before they are accepted."
    ),
    key("max.connections", INT, INT_MAX, MEDIUM, Range(0), CLUSTER_WIDE).means(
        "How many connections the node has open at once. May be set for a single listener with the prefix "
        "`listener.name.<name>.`."
    ),
    key("max.connections.per.ip", INT, INT_MAX, MEDIUM, Range(0), CLUSTER_WIDE).means(
        "How many connections may be open from one IP address."
    ),
    key("max.connections.per.ip.overrides", STRING, "", MEDIUM, update=CLUSTER_WIDE).means(
        "Exceptions to `max.connections.per.ip`, as `address:number` separated by commas."
    ),
    key("max.connection.creation.rate", INT, INT_MAX, MEDIUM, Range(0), CLUSTER_WIDE).means(
        "How many new connections are accepted in a second. May be set for a single listener with the "
        "prefix `listener.name.<name>.`."
    ),
    key("connections.max.idle.ms", LONG, 600_000, MEDIUM).means(
        "A connection without traffic for this many milliseconds is closed; a negative number keeps it open."
    ),
    key("connection.failed.authentication.delay.ms", INT, 100, LOW, Range(0)).means(
        "How long the answer to a failed authentication is held back, in milliseconds. Must be less than "
        "`connections.max.idle.ms`."
    ),
    key("queued.max.requests", INT, 500, HIGH, Range(1)).means(
        "How many requests may wait to be handled before the node stops reading from connections."
    ),
    key("queued.max.request.bytes", LONG, -1, MEDIUM).means(
        "How many bytes of requests may wait to be handled before the node stops reading from "
        "connections; a number below 1 sets no limit."
    ),
    key("socket.connection.setup.timeout.ms", LONG, 10000, MEDIUM).means(
        "How long a connection to another node may take to come about at the first attempt, in milliseconds."
    ),
    key("socket.connection.setup.timeout.max.ms", LONG, 30000, MEDIUM).means(
        "The limit to which the time for setting up a connection grows after failed attempts, in "
        "milliseconds."
    ),
)
