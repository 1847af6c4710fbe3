"""The keys of a client: what their values may be, and which of Kafka's keys are refused, and why."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Final, NamedTuple

from headrace.client.errors import ConfigRefused

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
_DURATION: Final = (0, _LONG_MAX)


class Key(NamedTuple):
    """How one key's value is read from what a user gave."""

    read: Callable[[str, object], object]


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ConfigRefused(name, f"{value!r} is not a text")
    return value.strip()


def _number(name: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            return int(value.strip())
        except ValueError:
            pass
    raise ConfigRefused(name, f"{value!r} is not a whole number")


def _boolean(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in ("true", "false"):
        raise ConfigRefused(name, f"{value!r} is neither true nor false")
    return word == "true"


def _servers(name: str, value: object) -> tuple[str, ...]:
    parts: Iterable[object] = value.split(",") if isinstance(value, str) else ()
    if isinstance(value, list | tuple):
        parts = value
    servers = tuple(_text(name, part) for part in parts)
    servers = tuple(server for server in servers if server)
    if not servers:
        raise ConfigRefused(name, f"{value!r} names no server; write host:port, several with commas between")
    return servers


def _acks(name: str, value: object) -> int:
    if value == "all":
        return -1
    number = _number(name, value)
    if number not in (-1, 0, 1):
        raise ConfigRefused(name, f"{value!r} is none of all, 1 and 0")
    return number


def _within(low: int, high: int = _INT_MAX) -> Key:
    def read(name: str, value: object) -> int:
        number = _number(name, value)
        if not low <= number <= high:
            raise ConfigRefused(name, f"{number} is not between {low} and {high}")
        return number

    return Key(read)


def _one_of(*words: str) -> Key:
    def read(name: str, value: object) -> str:
        word = _text(name, value).lower()
        if word not in words:
            raise ConfigRefused(name, f"{value!r} is none of {', '.join(words)}")
        return word

    return Key(read)


def _gzip_level(name: str, value: object) -> int:
    number = _number(name, value)
    if number != -1 and not 1 <= number <= 9:
        raise ConfigRefused(name, f"{number} is neither -1 nor between 1 and 9")
    return number


KEYS: Final[dict[str, Key]] = {
    "bootstrap.servers": Key(_servers),
    "client.id": Key(_text),
    "client.dns.lookup": _one_of("use_all_dns_ips"),
    "request.timeout.ms": _within(1),
    "default.api.timeout.ms": _within(1),
    "metadata.max.age.ms": _within(*_DURATION),
    "metadata.max.idle.ms": _within(5_000, _LONG_MAX),
    "metadata.recovery.strategy": _one_of("none", "rebootstrap"),
    "metadata.recovery.rebootstrap.trigger.ms": _within(*_DURATION),
    "reconnect.backoff.ms": _within(*_DURATION),
    "reconnect.backoff.max.ms": _within(*_DURATION),
    "retry.backoff.ms": _within(*_DURATION),
    "retry.backoff.max.ms": _within(*_DURATION),
    "connections.max.idle.ms": _within(-1, _LONG_MAX),
    "socket.connection.setup.timeout.ms": _within(1, _LONG_MAX),
    "socket.connection.setup.timeout.max.ms": _within(1, _LONG_MAX),
    "send.buffer.bytes": _within(-1),
    "receive.buffer.bytes": _within(-1),
    "allow.auto.create.topics": Key(_boolean),
    "topic.wait.ms": _within(*_DURATION),
    "in.flight.max": _within(1),
    "isolation.level": _one_of("read_uncommitted", "read_committed"),
    "fetch.min.bytes": _within(0),
    "fetch.max.wait.ms": _within(0),
    "fetch.max.bytes": _within(0),
    "max.partition.fetch.bytes": _within(0),
    "check.crcs": Key(_boolean),
    "client.rack": Key(_text),
    "acks": Key(_acks),
    "enable.idempotence": Key(_boolean),
    "batch.size": _within(0),
    "linger.ms": _within(*_DURATION),
    "compression.type": _one_of("none", "gzip", "snappy", "lz4", "zstd"),
    "compression.gzip.level": Key(_gzip_level),
    "compression.lz4.level": _within(1, 17),
    "compression.zstd.level": _within(-131_072, 22),
    "delivery.timeout.ms": _within(0),
    "buffer.memory": _within(0, _LONG_MAX),
    "max.block.ms": _within(*_DURATION),
    "max.request.size": _within(0),
    "max.in.flight.requests.per.connection": _within(1),
    "retries": _within(0),
    "partitioner.ignore.keys": Key(_boolean),
    "partitioner.adaptive.partitioning.enable": Key(_boolean),
    "partitioner.availability.timeout.ms": _within(*_DURATION),
}

_NO_SASL: Final = "this client has no SASL yet; it would connect without authentication"
_NO_TLS: Final = "this client has no TLS yet; the connection would not be encrypted"
_NO_GROUPS: Final = "this client does not join consumer groups; positions are given by who reads"
_NO_TRANSACTIONS: Final = "this client does not write in transactions yet"
_NO_PLUGINS: Final = "Java classes cannot be loaded here"
_BYTES_ONLY: Final = "keys and values are bytes here; encode and decode them in columns"
_NO_METRICS: Final = "this client has no metrics reporters"
_WHOLE_BATCHES: Final = "records come in whole columns here, bounded by fetch.max.bytes"
_NO_RESET: Final = (
    "a position that is gone is an error here, never silently replaced; choose where to start by offset"
)


class _Refusal(NamedTuple):
    reason: str
    #: Values that ask for nothing and so may stand.
    harmless: frozenset[str] = frozenset()


_OFF: Final = frozenset({"", "false"})
_REFUSED: Final[dict[str, _Refusal]] = {
    "security.protocol": _Refusal(_NO_TLS + " or authenticated", frozenset({"", "plaintext"})),
    "security.providers": _Refusal(_NO_PLUGINS, _OFF),
    "group.id": _Refusal(_NO_GROUPS),
    "group.instance.id": _Refusal(_NO_GROUPS),
    "group.protocol": _Refusal(_NO_GROUPS),
    "group.remote.assignor": _Refusal(_NO_GROUPS),
    "session.timeout.ms": _Refusal(_NO_GROUPS),
    "heartbeat.interval.ms": _Refusal(_NO_GROUPS),
    "max.poll.interval.ms": _Refusal(_NO_GROUPS),
    "partition.assignment.strategy": _Refusal(_NO_GROUPS),
    "enable.auto.commit": _Refusal(_NO_GROUPS, _OFF),
    "auto.commit.interval.ms": _Refusal(_NO_GROUPS),
    "exclude.internal.topics": _Refusal("topics are named one by one here", frozenset({"true"})),
    "auto.offset.reset": _Refusal(_NO_RESET, frozenset({"none"})),
    "max.poll.records": _Refusal(_WHOLE_BATCHES),
    "key.serializer": _Refusal(_BYTES_ONLY),
    "value.serializer": _Refusal(_BYTES_ONLY),
    "key.deserializer": _Refusal(_BYTES_ONLY),
    "value.deserializer": _Refusal(_BYTES_ONLY),
    "partitioner.class": _Refusal(_NO_PLUGINS, _OFF),
    "interceptor.classes": _Refusal(_NO_PLUGINS, _OFF),
    "config.providers": _Refusal(_NO_PLUGINS, _OFF),
    "metric.reporters": _Refusal(_NO_METRICS, _OFF),
    "metrics.num.samples": _Refusal(_NO_METRICS),
    "metrics.recording.level": _Refusal(_NO_METRICS),
    "metrics.sample.window.ms": _Refusal(_NO_METRICS),
    "enable.metrics.push": _Refusal(_NO_METRICS, _OFF),
    "transactional.id": _Refusal(_NO_TRANSACTIONS),
    "transaction.timeout.ms": _Refusal(_NO_TRANSACTIONS),
    "transaction.two.phase.commit.enable": _Refusal(_NO_TRANSACTIONS, _OFF),
    "share.acknowledgement.mode": _Refusal("this client has no share groups"),
    "share.acquire.mode": _Refusal("this client has no share groups"),
}
_REFUSED_PREFIXES: Final = (("sasl.", _NO_SASL), ("ssl.", _NO_TLS))


def is_public_key(name: str) -> bool:
    """Whether the client can be told this."""
    return name in KEYS


def read_value(name: str, value: object) -> object:
    """The value of a key in its own type; ConfigRefused if it cannot be that."""
    return KEYS[name].read(name, value)


def unsupported_reason(name: str, value: object) -> str | None:
    """Why one of Kafka's keys cannot be honoured; None if it asks for nothing; "" if it is not Kafka's."""
    refusal = _REFUSED.get(name)
    if refusal is None:
        return next((reason for prefix, reason in _REFUSED_PREFIXES if name.startswith(prefix)), "")
    return None if str(value).strip().lower() in refusal.harmless else refusal.reason


def nearest_key(name: str) -> str | None:
    """The known key that a wrongly spelt one was meant to be, if there is one."""
    wanted = name.strip().lower().replace("_", ".").replace("-", ".")
    found = get_close_matches(wanted, [*KEYS, *_REFUSED], n=1, cutoff=0.6)
    return found[0] if found else None
