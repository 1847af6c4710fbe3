"""Keys of metrics."""

from headrace.config.keys.notation import CLUSTER_WIDE, INT, LIST, LONG, LOW, STRING, key
from headrace.config.rules import ListOf, Range

KEYS = (
    key("metrics.num.samples", INT, 2, LOW, Range(1), inert=True).means(
        "How many samples a rate is computed from. No effect in Headrace: its metrics are counters that "
        "Prometheus reads."
    ),
    key("metrics.sample.window.ms", LONG, 30000, LOW, Range(1), inert=True).means(
        "Length of each sample. No effect in Headrace: its metrics are counters that Prometheus reads."
    ),
    key("metrics.recording.level", STRING, "INFO", LOW, inert=True).means(
        "How detailed the metrics are. No effect in Headrace: every metric is always kept."
    ),
    key(
        "metric.reporters",
        LIST,
        ("org.apache.kafka.common.metrics.JmxReporter",),
        LOW,
        ListOf(),
        CLUSTER_WIDE,
        inert=True,
    ).means(
        "Java classes that report metrics. No effect in Headrace: it loads no Java classes; its metrics "
        "are read by Prometheus."
    ),
    key("kafka.metrics.reporters", LIST, (), LOW, ListOf(), inert=True).means(
        "Java classes that report metrics of the older kind. No effect in Headrace: it loads no Java classes."
    ),
    key("kafka.metrics.polling.interval.secs", INT, 10, LOW, Range(1), inert=True).means(
        "Time between two reports of the older metrics. No effect in Headrace: its metrics are read by "
        "Prometheus."
    ),
    key("telemetry.max.bytes", INT, 1_048_576, LOW, Range(1)).means(
        "The largest set of metrics that a client may push, in bytes."
    ),
)
