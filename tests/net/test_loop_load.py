"""The idle shares of the loop: what counts as moving bytes, and what as handling."""

import pytest

from headrace.net import loop_load
from headrace.net.loop_load import WINDOW_SAMPLES, LoopLoad
from tests.support_net import Echo, Run, site

SECOND = 1_000_000_000


class Times:
    """The two clocks that the load looks at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.elapsed = 0
        self.processor = 0
        monkeypatch.setattr(loop_load, "perf_counter_ns", lambda: self.elapsed)
        monkeypatch.setattr(loop_load, "thread_time_ns", lambda: self.processor)

    def passes(self, elapsed: float, processor: float) -> None:
        self.elapsed += int(elapsed * SECOND)
        self.processor += int(processor * SECOND)


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    """Both stand still until told to pass."""
    return Times(monkeypatch)


def test_a_loop_that_only_waits_is_idle(times: Times) -> None:
    load = LoopLoad()
    assert load.network_idle_share == load.handler_idle_share == 1.0
    times.passes(10, 0)
    assert load.network_idle_share == load.handler_idle_share == 1.0


def test_moving_bytes_and_handling_are_told_apart(times: Times) -> None:
    load = LoopLoad()
    times.passes(10, 6)
    load.network_ns += 1 * SECOND
    load.handler_ns += 3 * SECOND
    assert load.network_idle_share == pytest.approx(0.9)
    # Two of the six seconds were spent on neither: coroutines and timers, which count as handling.
    assert load.handler_idle_share == pytest.approx(0.5)
    assert load.handler_busy_ns == 5 * SECOND


def test_a_handler_that_blocks_is_busy_though_it_uses_no_processor(times: Times) -> None:
    load = LoopLoad()
    times.passes(10, 0)
    load.handler_ns += 4 * SECOND
    assert load.handler_idle_share == pytest.approx(0.6)


def test_the_shares_are_those_of_the_last_minute(times: Times) -> None:
    load = LoopLoad()
    for _ in range(WINDOW_SAMPLES):
        times.passes(1, 1)
        load.network_ns += SECOND
        load.sample()
    assert load.network_idle_share == pytest.approx(0.0)
    for _ in range(WINDOW_SAMPLES):
        times.passes(1, 0)
        load.sample()
    assert load.network_idle_share == pytest.approx(1.0)


def test_connections_account_for_their_time(run: Run) -> None:
    async def scenario() -> None:
        async with site(Echo()) as place:
            client = await place.connect()
            await client.ask(b"a")
            assert await client.reply() == b"a"
            assert place.network.load.network_ns > 0
            assert place.network.load.handler_ns > 0

    run(scenario())
