"""Promises of the cleaner's throttle."""

import pytest

from headrace.log.throttle import Throttle
from headrace.testing.memory_disk import MemoryDisk
from tests.support_cleaner import NOW_MS, ScriptedLog, TestPace


def test_a_job_ahead_of_its_rate_sleeps_until_it_is_on_time() -> None:
    pace = TestPace()
    throttle = Throttle(1_000, pace)
    for _ in range(40):
        pace.advance(10)
        throttle.passed(100)
    # 4,000 units at 1,000 a second; the last fraction of an interval may still be owed.
    assert 3_100 <= pace.monotonic_ms() <= 4_000


def test_a_job_under_its_rate_never_sleeps() -> None:
    pace = TestPace()
    throttle = Throttle(1_000, pace)
    for _ in range(100):
        pace.advance(10)
        throttle.passed(5)
    assert pace.monotonic_ms() == 1_000


def test_no_limit_never_sleeps() -> None:
    pace = TestPace()
    throttle = Throttle(float("inf"), pace)
    pace.advance(1_000)
    throttle.passed(10**12)
    assert pace.monotonic_ms() == 1_000


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="stop the work"):
        Throttle(0, TestPace())


class SlowPace(TestPace):
    """Each look at the clock takes a while, as work between two looks would."""

    def monotonic_ms(self) -> int:
        self.advance(50)
        return super().monotonic_ms()


def test_a_round_of_compaction_keeps_to_its_rate() -> None:
    log = ScriptedLog(MemoryDisk())
    for number in range(40):
        log.append([(b"key-%d" % number, bytes(50_000))])
    log.roll()
    pace = SlowPace()
    result = log.clean(log.plan(now_ms=NOW_MS, bytes_per_second=1_000_000), pace)
    moved = result.stats.map_bytes_read + result.stats.bytes_read + result.stats.bytes_written
    assert moved > 6_000_000
    assert result.stats.elapsed_ms >= 0.8 * moved / 1_000
