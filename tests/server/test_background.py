"""Background work never ends without a word."""

import asyncio
import logging

import pytest

from headrace.errors import HeadraceError
from headrace.log.log_errors import LogDirectoryOffline
from headrace.server.background import Background


async def run_rounds(action_outcomes: list[Exception | None]) -> int:
    """Let a periodic task run once for each outcome; how often it ran."""
    runs = 0
    done = asyncio.Event()

    async def action() -> None:
        nonlocal runs
        outcome = action_outcomes[runs]
        runs += 1
        if runs == len(action_outcomes):
            done.set()
        if outcome is not None:
            raise outcome

    async with Background() as background:
        background.every("sweeping", lambda: 0.0, action)
        await done.wait()
    return runs


def test_a_failed_round_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    assert asyncio.run(run_rounds([RuntimeError("broom"), None, HeadraceError("dust"), None])) == 4
    assert "sweeping failed: broom; it is tried again at its next turn" in caplog.text
    assert "sweeping failed: dust" in caplog.text


def test_only_failures_that_nobody_foresaw_come_with_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(run_rounds([RuntimeError("bug"), OSError("disk"), None]))
    assert [record.exc_info is not None for record in caplog.records] == [True, False]


def test_an_offline_directory_is_not_reported_again_and_again(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        asyncio.run(run_rounds([LogDirectoryOffline("/data is offline"), None]))
    assert not caplog.records


def test_rounds_need_not_wait_for_anything() -> None:
    async def count() -> int:
        runs = 0
        done = asyncio.Event()

        def action() -> None:
            nonlocal runs
            runs += 1
            if runs == 3:
                done.set()

        async with Background() as background:
            background.every("counting", lambda: 0.0, action)
            await done.wait()
        return runs

    assert asyncio.run(count()) == 3


def test_something_to_be_done_once_is_done_and_its_failure_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        tried = asyncio.Event()

        async def fail() -> None:
            tried.set()
            raise HeadraceError("nobody listens")

        async with Background() as background:
            background.once("telling", fail)
            await tried.wait()

    asyncio.run(scenario())
    assert "telling failed: nobody listens" in caplog.text


def test_intervals_beyond_any_timer_just_wait() -> None:
    async def scenario() -> None:
        async with Background() as background:
            background.every("never", lambda: (2**63 - 1) / 1000, lambda: pytest.fail("it ran"))
            await asyncio.sleep(0)

    asyncio.run(scenario())


def test_rounds_end_and_single_tasks_go_on_when_it_quiesces() -> None:
    async def scenario() -> list[str]:
        done: list[str] = []
        began, told = asyncio.Event(), asyncio.Event()

        async def long() -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                done.append("long ended")

        async def short() -> None:
            done.append("short done")
            told.set()

        async with Background() as background:
            background.every("long", lambda: 0.0, long)
            await began.wait()
            await background.quiesce()
            background.once("short", short)
            await told.wait()
        return done

    assert asyncio.run(scenario()) == ["long ended", "short done"]
