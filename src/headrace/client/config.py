"""What a client is told to do, in Kafka's own terms: typed fields, with Kafka's names and defaults.

`ClientConfig(...)` takes the fields; `ClientConfig.from_properties` takes Kafka's dotted names with values of
any spelling. Either way what cannot be honoured is refused with the reason; nothing is ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from headrace.client.config_keys import is_public_key, nearest_key, read_value, unsupported_reason
from headrace.client.errors import ConfigRefused
from headrace.net.addresses import Address, parse_address

READ_UNCOMMITTED: Final = "read_uncommitted"
READ_COMMITTED: Final = "read_committed"
PARTITION_FETCH_BYTES: Final = 1_048_576
_IN_FLIGHT_MAX_IDEMPOTENT: Final = 5
_INT_MAX: Final = 2**31 - 1


@dataclass(slots=True, frozen=True, kw_only=True)
class ClientConfig:
    """Everything that can be set. A field's Kafka name has dots for underscores: `fetch.max.bytes`.

    Two keys are ours: `topic.wait.ms` is how long a topic that nobody knows of is waited for, and
    `in.flight.max` how many requests of all kinds may be under way on a connection. Two defaults are not
    Kafka's: `allow.auto.create.topics` is false, so that a misspelt topic is an error, and
    `receive.buffer.bytes` is left to the system, which adapts it.
    """

    bootstrap_servers: tuple[str, ...] = ("localhost:9092",)
    client_id: str = "headrace"
    client_dns_lookup: str = "use_all_dns_ips"
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    metadata_max_age_ms: int = 300_000
    metadata_max_idle_ms: int = 300_000
    metadata_recovery_strategy: str = "rebootstrap"
    metadata_recovery_rebootstrap_trigger_ms: int = 300_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    connections_max_idle_ms: int = 540_000
    socket_connection_setup_timeout_ms: int = 10_000
    socket_connection_setup_timeout_max_ms: int = 30_000
    send_buffer_bytes: int = 131_072
    receive_buffer_bytes: int = -1
    allow_auto_create_topics: bool = False
    topic_wait_ms: int = 5_000
    in_flight_max: int = 100

    isolation_level: str = READ_UNCOMMITTED
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 52_428_800
    max_partition_fetch_bytes: int = PARTITION_FETCH_BYTES
    check_crcs: bool = True
    client_rack: str = ""

    acks: int = -1
    enable_idempotence: bool = True
    batch_size: int = 16_384
    linger_ms: int = 5
    compression_type: str = "none"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delivery_timeout_ms: int = 120_000
    buffer_memory: int = 33_554_432
    max_block_ms: int = 60_000
    max_request_size: int = 1_048_576
    max_in_flight_requests_per_connection: int = 5
    retries: int = 2**31 - 1
    partitioner_ignore_keys: bool = False
    partitioner_adaptive_partitioning_enable: bool = True
    partitioner_availability_timeout_ms: int = 0

    def __post_init__(self) -> None:
        for each in fields(self):
            # A frozen dataclass is written to in this one place: values become what their key says they are.
            checked = read_value(property_name(each.name), getattr(self, each.name))
            object.__setattr__(self, each.name, checked)
        for server in self.bootstrap_servers:
            parse_bootstrap(server)
        _check_producer(self)

    @classmethod
    def from_properties(cls, properties: Mapping[str, object]) -> "ClientConfig":
        """From Kafka's names: `{"bootstrap.servers": "a:9092,b:9092", "isolation.level": "read_committed"}`.

        ConfigRefused for a name that is unknown (it tells the nearest known one), a value that is none, and
        for what Kafka's clients can do and this one cannot.
        """
        given: dict[str, object] = {}
        for name, value in properties.items():
            if is_public_key(name):
                given[field_name(name)] = value
            elif (reason := unsupported_reason(name, value)) is None:
                continue
            elif reason:
                raise ConfigRefused(name, reason)
            else:
                raise ConfigRefused(name, _unknown(name))
        return cls(**_with_implied(given))  # type: ignore[arg-type]  # `__post_init__` reads every value

    @property
    def bootstrap_addresses(self) -> tuple[Address, ...]:
        """Where to look for the cluster first."""
        return tuple(parse_bootstrap(server) for server in self.bootstrap_servers)

    @property
    def is_read_committed(self) -> bool:
        return self.isolation_level == READ_COMMITTED


def property_name(field: str) -> str:
    """Kafka's name of a field."""
    return field.replace("_", ".")


def field_name(name: str) -> str:
    """The field of Kafka's name."""
    return name.replace(".", "_")


def parse_bootstrap(text: str) -> Address:
    """The address of one bootstrap server; ConfigRefused if it is none."""
    try:
        return parse_address(text)
    except ValueError as error:
        raise ConfigRefused("bootstrap.servers", f"{text!r} is not host:port: {error}") from None


def _unknown(name: str) -> str:
    nearest = nearest_key(name)
    return "no such configuration key" + (f"; did you mean {nearest}?" if nearest else "")


def _with_implied(given: dict[str, object]) -> dict[str, object]:
    """As in Kafka, whoever asks for fewer acknowledgements and not for idempotence does without it."""
    given = _with_implied_delivery(given)
    if "enable_idempotence" in given:
        return given
    acks = read_value("acks", given.get("acks", -1))
    retries = read_value("retries", given.get("retries", 1))
    if acks != -1 or retries == 0:
        return given | {"enable_idempotence": False}
    return given


def _with_implied_delivery(given: dict[str, object]) -> dict[str, object]:
    """As in Kafka, whoever lets requests take longer and says nothing of deliveries lets these, too."""
    if "delivery_timeout_ms" in given:
        return given
    usual = ClientConfig()
    linger: Any = read_value("linger.ms", given.get("linger_ms", usual.linger_ms))
    request: Any = read_value("request.timeout.ms", given.get("request_timeout_ms", usual.request_timeout_ms))
    least = _delivery_ms_min(linger, request)
    return given | {"delivery_timeout_ms": least} if least > usual.delivery_timeout_ms else given


def _delivery_ms_min(linger_ms: int, request_timeout_ms: int) -> int:
    return min(linger_ms + request_timeout_ms, _INT_MAX)


def _check_producer(config: ClientConfig) -> None:
    if config.enable_idempotence:
        if config.acks != -1:
            raise ConfigRefused("acks", "must be all while enable.idempotence is true")
        if config.retries == 0:
            raise ConfigRefused("retries", "must not be 0 while enable.idempotence is true")
        if config.max_in_flight_requests_per_connection > _IN_FLIGHT_MAX_IDEMPOTENT:
            raise ConfigRefused(
                "max.in.flight.requests.per.connection",
                f"must be {_IN_FLIGHT_MAX_IDEMPOTENT} at most while enable.idempotence is true",
            )
    if config.delivery_timeout_ms < _delivery_ms_min(config.linger_ms, config.request_timeout_ms):
        raise ConfigRefused(
            "delivery.timeout.ms",
            "must be at least linger.ms + request.timeout.ms "
            f"({config.linger_ms} + {config.request_timeout_ms})",
        )
