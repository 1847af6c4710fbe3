"""Headrace's own keys of server.properties. Kafka knows none of them, and passes over them with a warning.

They are apart from Kafka's, so that what DescribeConfigs tells of a node stays what Kafka tells."""

from typing import Final, NamedTuple

from headrace.config.definition import ConfigKey
from headrace.config.keys.notation import HIGH, INT, LONG, LOW, MEDIUM, STRING, key
from headrace.config.node import NodeConfig
from headrace.config.rules import OneOf, Range
from headrace.config.values import ConfigValue

PREFIX: Final = "headrace."

METRICS_PORT: Final = key("headrace.metrics.port", INT, -1, MEDIUM, Range(-1, 65535)).means(
    "The port that Prometheus reads metrics from, with GET /metrics; 0 lets the system choose one. -1 means "
    "that there are none to read."
)
METRICS_HOST: Final = key("headrace.metrics.host", STRING, "", LOW).means(
    "The address that metrics can be read at. Nothing means every interface."
)
EVENT_LOOP: Final = key("headrace.event.loop", STRING, "auto", LOW, OneOf("auto", "uvloop", "asyncio")).means(
    "The event loop that everything runs on: uvloop, which is faster, or that of Python itself. auto takes "
    "uvloop if it is installed. The environment's HEADRACE_LOOP goes before it."
)
LOG_LEVEL: Final = key(
    "headrace.log.level", STRING, "info", HIGH, OneOf("debug", "info", "warning", "error")
).means("How much the node tells about itself on its standard output.")

SCRUB_HOURS: Final = key("headrace.scrub.pass.hours", INT, 168, LOW, Range(0)).means(
    "In how many hours everything on disk is read once and its checksums verified, to find bits that have "
    "flipped. 0 means never."
)
SCRUB_RATE: Final = key("headrace.scrub.bytes.per.second", LONG, 16 * 1024 * 1024, LOW, Range(1)).means(
    "How fast that is read at most, while it is read."
)
INFLATED_MAX: Final = key(
    "headrace.batch.decompressed.max.bytes", LONG, 128 * 1024 * 1024, LOW, Range(4 * 1024 * 1024)
).means("A compressed batch that would inflate to more is refused with MESSAGE_TOO_LARGE.")

HEADRACE_KEYS: Final[dict[str, ConfigKey]] = {
    each.name: each
    for each in (METRICS_PORT, METRICS_HOST, EVENT_LOOP, LOG_LEVEL, SCRUB_HOURS, SCRUB_RATE, INFLATED_MAX)
}


class HeadraceSettings(NamedTuple):
    """The values of Headrace's own keys."""

    metrics_port: int | None
    metrics_host: str
    event_loop: str
    log_level: str
    scrub_hours: int
    scrub_bytes_per_second: int
    batch_decompressed_max: int


def headrace_settings(config: NodeConfig) -> HeadraceSettings:
    """What a node's properties say; InvalidConfig names the key, the value and the reason."""
    values = {
        name: own.parse(config.texts[name]) if config.is_set(name) else own.default
        for name, own in HEADRACE_KEYS.items()
    }
    port = _integer(values[METRICS_PORT.name])
    return HeadraceSettings(
        metrics_port=None if port < 0 else port,
        metrics_host=str(values[METRICS_HOST.name]),
        event_loop=str(values[EVENT_LOOP.name]),
        log_level=str(values[LOG_LEVEL.name]),
        scrub_hours=_integer(values[SCRUB_HOURS.name]),
        scrub_bytes_per_second=_integer(values[SCRUB_RATE.name]),
        batch_decompressed_max=_integer(values[INFLATED_MAX.name]),
    )


def _integer(value: ConfigValue) -> int:
    assert isinstance(value, int)
    return value
