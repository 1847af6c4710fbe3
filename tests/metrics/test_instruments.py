"""Counting, percentiles and rates."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.metrics.instruments import LATENCY_MS, METER_TICK_MS, Counter, Histogram, Meter


def test_a_counter_counts() -> None:
    counter = Counter()
    counter.add()
    counter.add(41)
    assert counter.value == 42


@given(st.lists(st.floats(0, 1e6), max_size=50))
def test_every_value_falls_into_the_bucket_of_the_first_bound_not_below_it(values: list[float]) -> None:
    histogram = Histogram((1.0, 10.0, 100.0))
    for value in values:
        histogram.record(value)
    assert histogram.counts == [
        sum(value <= 1 for value in values),
        sum(1 < value <= 10 for value in values),
        sum(10 < value <= 100 for value in values),
        sum(value > 100 for value in values),
    ]
    assert histogram.count == len(values)
    assert histogram.total == pytest.approx(sum(values))
    assert histogram.maximum == max(values, default=0.0)


def test_percentiles_are_right_to_the_width_of_a_bucket() -> None:
    chance = random.Random(7)
    values = sorted(chance.lognormvariate(1, 1.5) for _ in range(10_000))
    histogram = Histogram(LATENCY_MS)
    for value in values:
        histogram.record(value)
    for share in (0.5, 0.9, 0.99, 0.999):
        true = values[int(share * len(values)) - 1]
        assert true / 1.2 < histogram.percentile(share) < true * 1.2
    assert histogram.percentile(1.0) == histogram.maximum == values[-1]
    assert histogram.mean == pytest.approx(sum(values) / len(values))


def test_nothing_recorded_is_zero() -> None:
    histogram = Histogram()
    assert histogram.percentile(0.99) == 0.0
    assert histogram.mean == 0.0


def test_a_value_beyond_all_bounds_is_not_exaggerated() -> None:
    histogram = Histogram((1.0, 2.0))
    histogram.record(1_000_000.0)
    assert histogram.percentile(0.5) <= histogram.maximum == 1_000_000.0


@pytest.mark.parametrize("bounds", [(), (1.0, 1.0), (2.0, 1.0)])
def test_bounds_that_do_not_grow_are_refused(bounds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="have to grow"):
        Histogram(bounds)


def test_a_meter_approaches_a_steady_rate_and_forgets_it() -> None:
    meter = Meter(now_ms=0)
    now_ms = 0
    for _ in range(60):
        meter.mark(500)
        now_ms += METER_TICK_MS
        meter.advance(now_ms)
    assert meter.value == 30_000
    assert meter.one_minute_rate == pytest.approx(100)
    assert meter.fifteen_minute_rate == pytest.approx(100)
    meter.advance(now_ms + 60_000)
    assert meter.one_minute_rate == pytest.approx(100 / 2.718281828, rel=1e-6)
    assert meter.five_minute_rate == pytest.approx(100 * 2.718281828 ** (-1 / 5), rel=1e-6)
    assert meter.fifteen_minute_rate == pytest.approx(100 * 2.718281828 ** (-1 / 15), rel=1e-6)


def test_a_meter_that_is_not_asked_for_long_catches_up() -> None:
    often, seldom = Meter(0), Meter(0)
    for meter in (often, seldom):
        meter.mark(1000)
        meter.advance(METER_TICK_MS)
    for now_ms in range(2 * METER_TICK_MS, 41 * METER_TICK_MS, METER_TICK_MS):
        often.advance(now_ms)
    seldom.advance(40 * METER_TICK_MS + 4999)
    assert often.one_minute_rate == pytest.approx(seldom.one_minute_rate)


def test_a_rate_does_not_change_between_two_ticks() -> None:
    meter = Meter(0)
    meter.mark(100)
    meter.advance(METER_TICK_MS - 1)
    assert meter.one_minute_rate == 0.0
    meter.advance(METER_TICK_MS)
    assert meter.one_minute_rate == pytest.approx(20)
