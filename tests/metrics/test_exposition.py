"""The page as Prometheus reads it: every line in its form, every name given once."""

import math
import re

import pytest

from headrace.metrics.exposition import escape, render, spell
from headrace.metrics.instruments import LATENCY_MS, SIZE_BYTES
from headrace.metrics.names import mbean_name
from headrace.metrics.process import register_process
from headrace.metrics.registry import Registry
from headrace.system.process import process_state

SAMPLE = re.compile(
    r'[a-zA-Z_:][\w:]*(\{([a-zA-Z_]\w*="([^"\\\n]|\\["\\n])*",?)+\})? (NaN|[+-]Inf|[-+.\de]+)'
)


def page(registry: Registry) -> str:
    """The whole page."""
    return "".join(render(registry))


def test_counters_and_gauges_with_and_without_labels() -> None:
    registry = Registry()
    registry.counter("requests_total", "Requests.").add(3)
    topics = registry.counters("kafka_in_total", "Messages.", ("topic", "kind"))
    topics.of("orders", "a").add(7)
    topics.of("payments", "b").add(1)
    registry.gauge("temperature", "Now.", lambda: 21.5)
    registry.gauges("size", "Bytes.", ("log",), lambda: [(("one",), 1), (("two",), 2)])
    registry.count("kept_elsewhere_total", "Counted by others.", lambda: 9)
    assert page(registry) == (
        "# HELP requests_total Requests.\n# TYPE requests_total counter\nrequests_total 3\n"
        "# HELP kafka_in_total Messages.\n# TYPE kafka_in_total counter\n"
        'kafka_in_total{topic="orders",kind="a"} 7\nkafka_in_total{topic="payments",kind="b"} 1\n'
        "# HELP temperature Now.\n# TYPE temperature gauge\ntemperature 21.5\n"
        '# HELP size Bytes.\n# TYPE size gauge\nsize{log="one"} 1\nsize{log="two"} 2\n'
        "# HELP kept_elsewhere_total Counted by others.\n# TYPE kept_elsewhere_total counter\n"
        "kept_elsewhere_total 9\n"
    )


def test_a_histogram_is_cumulative_and_ends_at_infinity() -> None:
    registry = Registry()
    family = registry.histograms("latency", "ms", ("api",), (1.0, 2.0, 4.0))
    histogram = family.of("Fetch")
    histogram.exposed_step = 1
    for value in (0.5, 1.0, 1.5, 3.0, 100.0):
        histogram.record(value)
    assert page(registry).splitlines()[2:] == [
        'latency_bucket{api="Fetch",le="1"} 2',
        'latency_bucket{api="Fetch",le="2"} 3',
        'latency_bucket{api="Fetch",le="4"} 4',
        'latency_bucket{api="Fetch",le="+Inf"} 5',
        'latency_sum{api="Fetch"} 106.0',
        'latency_count{api="Fetch"} 5',
    ]


@pytest.mark.parametrize("bounds", [LATENCY_MS, SIZE_BYTES])
def test_the_usual_histograms_show_distinct_growing_bounds(bounds: tuple[float, ...]) -> None:
    registry = Registry()
    registry.histogram("latency", "ms", bounds).record(5)
    shown = [float(bound) for bound in re.findall(r'le="([^"]+)"', page(registry))]
    assert shown == sorted(set(shown))
    assert math.isinf(shown[-1])
    assert len(shown) < 30


def test_a_meter_shows_its_count_and_its_rates() -> None:
    registry = Registry()
    meter = registry.meter("kafka_bytes_in_total", "Bytes in.")
    meter.mark(500)
    registry.advance(5000)
    lines = page(registry).splitlines()
    assert "kafka_bytes_in_total 500" in lines
    assert "kafka_bytes_in_oneminuterate 100.0" in lines
    assert "kafka_bytes_in_fiveminuterate 100.0" in lines
    assert "kafka_bytes_in_fifteenminuterate 100.0" in lines


def test_meters_made_later_start_at_the_time_they_are_made() -> None:
    registry = Registry()
    family = registry.meters("m_total", "M.", ("topic",))
    registry.advance(100_000)
    family.of("late").mark(50)
    registry.advance(105_000)
    assert family.of("late").one_minute_rate == pytest.approx(10)


def test_help_and_labels_are_escaped() -> None:
    registry = Registry()
    registry.counters("c_total", "One\nline with \\ in it.", ("name",)).of('a"b\\c\nd').add(1)
    assert page(registry).splitlines() == [
        "# HELP c_total One\\nline with \\\\ in it.",
        "# TYPE c_total counter",
        'c_total{name="a\\"b\\\\c\\nd"} 1',
    ]
    assert escape("plain") == "plain"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (10**20, "100000000000000000000"),
        (1.5, "1.5"),
        (1e300, "1e+300"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
        (True, "1"),
    ],
)
def test_numbers_are_spelt_as_prometheus_reads_them(number: float, text: str) -> None:
    assert spell(number) == text


def test_a_reading_that_fails_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry()
    registry.gauge("broken", "Fails.", lambda: 1 // 0)
    registry.gauge("sound", "Works.", lambda: 1)
    assert "sound 1" in page(registry).splitlines()
    assert "metric broken could not be read" in caplog.text


def test_a_name_is_given_once() -> None:
    registry = Registry()
    registry.counter("c_total", "C.")
    with pytest.raises(ValueError, match="c_total already"):
        registry.gauge("c_total", "C.", lambda: 1)


@pytest.mark.parametrize("name", ["", "1st", "with-dash", "with space", "ümlaut"])
def test_names_that_prometheus_does_not_take_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a name for a metric"):
        Registry().counter(name, "X.")


@pytest.mark.parametrize("label", ["", "1st", "with-dash", "__own", "le"])
def test_labels_that_prometheus_does_not_take_are_refused(label: str) -> None:
    with pytest.raises(ValueError, match="not a name for a label"):
        Registry().counters("c_total", "X.", (label,))


def test_as_many_label_values_as_names() -> None:
    family = Registry().counters("c_total", "X.", ("topic", "partition"))
    with pytest.raises(ValueError, match="labels"):
        family.of("only one")


def test_the_instruments_of_what_is_gone_can_be_removed() -> None:
    registry = Registry()
    family = registry.counters("c_total", "X.", ("topic", "partition"))
    for topic in ("gone", "kept"):
        for partition in ("0", "1"):
            family.of(topic, partition).add()
    family.remove("gone")
    assert list(family.children) == [("kept", "0"), ("kept", "1")]
    family.remove("kept", "1")
    assert list(family.children) == [("kept", "0")]


def test_two_registries_know_nothing_of_each_other() -> None:
    first, second = Registry(), Registry()
    first.counter("c_total", "C.").add(1)
    assert second.counter("c_total", "C.").value == 0


def test_names_are_those_of_kafkas_beans() -> None:
    assert (
        mbean_name("kafka.server", "BrokerTopicMetrics", "MessagesInPerSec") + "_total"
        == "kafka_server_brokertopicmetrics_messagesin_total"
    )
    assert (
        mbean_name("kafka.network", "RequestMetrics", "TotalTimeMs")
        == "kafka_network_requestmetrics_totaltimems"
    )


def test_the_process_shows_its_memory_time_and_descriptors() -> None:
    registry = Registry()
    register_process(registry, process_state)
    lines = page(registry).splitlines()
    values = dict(line.split(" ") for line in lines if not line.startswith("#"))
    assert float(values["process_resident_memory_bytes"]) > 1_000_000
    assert float(values["process_cpu_seconds_total"]) > 0
    assert 0 < float(values["process_open_fds"]) <= float(values["process_max_fds"])
    assert float(values["process_start_time_seconds"]) > 1_600_000_000
    assert all(line.startswith("# ") or SAMPLE.fullmatch(line) for line in lines)
