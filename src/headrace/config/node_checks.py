"""Whether a node's keys fit together. Each check takes the whole configuration and refuses what cannot be."""

from headrace.config.endpoints import WILDCARD_HOST, is_host_text
from headrace.config.group_bounds import check_broker_group_bounds
from headrace.config.listeners import SecurityProtocol, listener_name
from headrace.config.node import NodeConfig
from headrace.config.refusals import InvalidConfig

_MEBIBYTE = 1024 * 1024


class Requirement(InvalidConfig):
    """A rule between keys that does not hold."""


def require(holds: bool, message: str, key: str) -> None:
    """Refuse a configuration for which a rule does not hold."""
    if not holds:
        raise Requirement(message, key=key)


def check_node(config: NodeConfig) -> None:
    """Refuse a configuration whose keys contradict each other."""
    check_broker_group_bounds(config)
    _check_protocols_of_groups(config)
    _check_early_start_listeners(config)
    _check_node_id(config)
    _check_log(config)
    _check_replication(config)
    _check_roles(config)
    if config.is_broker:
        _check_broker_listeners(config)
        _check_cordoned(config)
    _check_advertised_hosts(config)
    _check_inter_broker_sasl(config)
    _check_connections(config)


def _check_node_id(config: NodeConfig) -> None:
    if config["node.id"] != config["broker.id"]:
        raise InvalidConfig("You must set `node.id` to the same value as `broker.id`.", key="node.id")


def _check_protocols_of_groups(config: NodeConfig) -> None:
    key = "group.coordinator.rebalance.protocols"
    if "classic" not in config.items(key):
        raise InvalidConfig("Disabling the 'classic' protocol is not supported.", key=key)


def _check_early_start_listeners(config: NodeConfig) -> None:
    key = "early.start.listeners"
    known = {endpoint.name for endpoint in config.listeners}
    for name in config.items(key):
        if name not in known:
            places = "listeners or controller.listener.names"
            message = f"{key} contains listener {name}, but this is not contained in {places}"
            raise InvalidConfig(message, key=key)


def _check_log(config: NodeConfig) -> None:
    require(config.log_roll_ms >= 1, "log.roll.ms must be greater than or equal to 1", "log.roll.ms")
    require(
        config.log_roll_jitter_ms >= 0,
        "log.roll.jitter.ms must be greater than or equal to 0",
        "log.roll.jitter.ms",
    )
    retention = config.log_retention_ms
    require(
        retention >= 1 or retention == -1,
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        "log.retention.ms",
    )
    # Zero threads pass the key's own rule; Kafka then fails to divide by them.
    threads = max(config.integer("log.cleaner.threads"), 1)
    require(
        config.integer("log.cleaner.dedupe.buffer.size") // threads > _MEBIBYTE,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        "log.cleaner.dedupe.buffer.size",
    )


def _check_replication(config: NodeConfig) -> None:
    wait = config.integer("replica.fetch.wait.max.ms")
    require(
        wait <= config.integer("replica.socket.timeout.ms"),
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms "
        "to prevent unnecessary socket timeouts",
        "replica.socket.timeout.ms",
    )
    require(
        wait <= config.integer("replica.lag.time.max.ms"),
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms "
        "to prevent frequent changes in ISR",
        "replica.fetch.wait.max.ms",
    )


def _check_roles(config: NodeConfig) -> None:
    if not config.voters and not config.bootstrap_servers:
        raise InvalidConfig(
            "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of "
            "bootstrap controllers or controller.quorum.voters must contain a parseable set of controllers.",
            key="controller.quorum.bootstrap.servers",
        )
    if config.is_controller:
        _check_controller(config)
    else:
        _check_broker_only(config)


def _check_broker_only(config: NodeConfig) -> None:
    names = "controller.listener.names"
    require(
        config.node_id not in config.voters,
        f"If process.roles contains just the 'broker' role, the node id {config.node_id} must not be "
        f"included in the set of voters controller.quorum.voters={_shown_ids(config)}",
        "node.id",
    )
    require(
        not config.controller_listeners,
        f"{names} must not contain a value appearing in the 'listeners' configuration "
        "when running KRaft with just the broker role",
        names,
    )
    for name in map(listener_name, config.controller_listener_names):
        if name not in config.protocols:
            raise InvalidConfig(
                f"Controller listener with name {name} defined in {names} not found in "
                "listener.security.protocol.map  (an explicit security mapping for each controller listener "
                "is required if listener.security.protocol.map is non-empty, or if there are security "
                "protocols other than PLAINTEXT in use)",
                key=names,
            )
    require(
        not config.flag("controller.quorum.auto.join.enable"),
        "controller.quorum.auto.join.enable is only supported when process.roles contains "
        "the 'controller' role.",
        "controller.quorum.auto.join.enable",
    )


def _check_controller(config: NodeConfig) -> None:
    names = "controller.listener.names"
    if not config.is_broker:
        require(
            len(config.advertised_controller_listeners) == len(config.listeners),
            f"The listeners config must only contain KRaft controller listeners from {names} "
            "when process.roles=controller",
            "listeners",
        )
        if config["inter.broker.listener.name"] is not None:
            require(
                config.inter_broker_listener[0] not in config.controller_listener_names,
                f"{names} must not contain an explicitly set inter.broker.listener.name configuration value "
                "when process.roles=controller'",
                names,
            )
    require(
        not config.voters or config.node_id in config.voters,
        f"If process.roles contains the 'controller' role, the node id {config.node_id} must be included "
        f"in the set of voters controller.quorum.voters={_shown_ids(config)}",
        "node.id",
    )
    require(
        len(config.advertised_controller_listeners) > 0,
        f"{names} must contain at least one value appearing in the 'listeners' configuration "
        "when running the KRaft controller role",
        names,
    )
    own = {endpoint.name for endpoint in config.listeners}
    require(
        own.issuperset(config.controller_listener_names),
        f"{names} must only contain values appearing in the 'listeners' configuration "
        "when running the KRaft controller role",
        names,
    )


def _shown_ids(config: NodeConfig) -> str:
    return f"Set({', '.join(map(str, config.voters))})"


def _check_broker_listeners(config: NodeConfig) -> None:
    advertised = [endpoint.name for endpoint in config.advertised_broker_listeners]
    own = [endpoint.name for endpoint in config.listeners]
    require(
        len(advertised) > 0,
        "There must be at least one broker advertised listener. "
        "Perhaps all listeners appear in controller.listener.names?",
        "advertised.listeners",
    )
    require(
        config.inter_broker_listener[0] in advertised,
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. "
        f"The valid options based on currently configured listeners are {','.join(advertised)}",
        "inter.broker.listener.name",
    )
    require(
        set(advertised) <= set(own),
        "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. "
        f"Found {','.join(advertised)}. The valid options based on the current configuration "
        f"are {','.join(own)}",
        "advertised.listeners",
    )


def _check_cordoned(config: NodeConfig) -> None:
    key = "cordoned.log.dirs"
    cordoned = config.items(key)
    if "*" in cordoned:
        require(len(cordoned) == 1, f"When {key} is set to *, it must not contain other values", key)
        return
    unknown = [directory for directory in cordoned if directory not in config.log_dirs]
    require(
        not unknown,
        f"All entries in {key} must be present in log.dirs or log.dir. "
        f"Missing entries : {', '.join(unknown)}",
        key,
    )


def _check_advertised_hosts(config: NodeConfig) -> None:
    for endpoint in config.advertised_broker_listeners + config.advertised_controller_listeners:
        require(
            endpoint.host != WILDCARD_HOST,
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. "
            "Use a routable IP address.",
            "advertised.listeners",
        )


def _check_inter_broker_sasl(config: NodeConfig) -> None:
    name, protocol = config.inter_broker_listener
    if protocol in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL):
        mechanisms = config.for_listener(name)["sasl.enabled.mechanisms"]
        require(
            isinstance(mechanisms, tuple) and config["sasl.mechanism.inter.broker.protocol"] in mechanisms,
            "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms "
            "when SASL is used for inter-broker communication",
            "sasl.mechanism.inter.broker.protocol",
        )


def _check_connections(config: NodeConfig) -> None:
    queued = config.integer("queued.max.request.bytes")
    require(
        queued <= 0 or queued >= config.integer("socket.request.max.bytes"),
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
        "queued.max.request.bytes",
    )
    overrides = config.connections_per_ip_overrides
    require(
        config["max.connections.per.ip"] != 0 or bool(overrides),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
        "max.connections.per.ip",
    )
    wrong = [address for address in overrides if not is_host_text(address)]
    if wrong:
        message = f"max.connections.per.ip.overrides contains invalid addresses : {','.join(wrong)}"
        raise InvalidConfig(message, key="max.connections.per.ip.overrides")
    idle = config.integer("connections.max.idle.ms")
    delay = config.integer("connection.failed.authentication.delay.ms")
    require(
        idle < 0 or delay < idle,
        f"connection.failed.authentication.delay.ms={delay} should always be less than "
        f"connections.max.idle.ms={idle} to prevent failed authentication responses from timing out",
        "connection.failed.authentication.delay.ms",
    )
