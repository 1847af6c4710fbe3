"""Promises of the worker processes: results and exceptions come back, and nothing is left running."""

import asyncio
import operator
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from headrace.errors import ErrorCode, KafkaError, WorkersClosed
from headrace.system.worker_process import JobFailed, answer, open_reply
from headrace.system.workers import ProcessWorkers, WorkerDied
from headrace.testing.workers import InlineWorkers

T = TypeVar("T")


def in_pool(body: Callable[[ProcessWorkers], Awaitable[T]], count: int = 1, idle_seconds: float = 60) -> T:
    async def main() -> T:
        async with ProcessWorkers(count, idle_seconds=idle_seconds) as workers:
            return await body(workers)

    return asyncio.run(main())


def kill_and_wait(pid: int) -> None:
    """Kill a child and see it end, without taking its status from whoever started it."""
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_job_runs_in_another_process_that_is_kept_for_the_next_one() -> None:
    async def body(workers: ProcessWorkers) -> tuple[int, int]:
        return await workers.run(os.getpid), await workers.run(os.getpid)

    first, second = in_pool(body)
    assert first == second != os.getpid()
    assert not is_running(first)


def test_no_process_is_started_before_the_first_job() -> None:
    async def body(workers: ProcessWorkers) -> list[int]:
        return workers.pids

    assert in_pool(body) == []


def test_jobs_share_a_bounded_number_of_processes() -> None:
    async def body(workers: ProcessWorkers) -> tuple[list[int], list[int]]:
        results = await asyncio.gather(*(workers.run(operator.mul, n, n) for n in range(12)))
        return results, workers.pids

    results, pids = in_pool(body, count=2)
    assert results == [n * n for n in range(12)]
    assert len(pids) == 2


def test_large_arguments_and_results_pass_whole() -> None:
    data = os.urandom(3_000_000)
    assert in_pool(lambda workers: workers.run(operator.concat, data, b"!")) == data + b"!"


def test_a_job_has_a_lower_priority_than_the_loop() -> None:
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    assert in_pool(lambda workers: workers.run(os.nice, 0)) == min(19, niceness + 10)


def test_an_exception_of_a_job_is_raised_where_it_was_asked_for_and_the_process_lives_on() -> None:
    async def body(workers: ProcessWorkers) -> tuple[int, int]:
        before = await workers.run(os.getpid)
        with pytest.raises(FileNotFoundError) as caught:
            await workers.run(os.stat, "/no/such/file")
        assert caught.value.filename == "/no/such/file"
        assert "in a worker process" in caught.value.__notes__[0]
        return before, await workers.run(os.getpid)

    before, after = in_pool(body)
    assert before == after


def raise_kafka_error() -> None:
    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "bad bytes at 12")


class Unportable(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


def raise_unportable() -> None:
    raise Unportable("this", "that")


def test_a_refusal_keeps_its_code_on_the_way_between_processes() -> None:
    with pytest.raises(KafkaError, match="bad bytes at 12") as caught:
        open_reply(answer(pickle.dumps((raise_kafka_error, ()))))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_an_exception_that_cannot_be_pickled_is_told_by_its_name_and_text() -> None:
    with pytest.raises(JobFailed, match="Unportable: this and that"):
        open_reply(answer(pickle.dumps((raise_unportable, ()))))


def test_a_process_that_dies_in_a_job_is_reported_and_replaced() -> None:
    async def body(workers: ProcessWorkers) -> int:
        with pytest.raises(WorkerDied, match="signal 9"):
            await workers.run(signal.raise_signal, signal.SIGKILL)
        return await workers.run(operator.add, 1, 2)

    assert in_pool(body) == 3


def test_a_process_that_was_killed_while_idle_costs_no_job() -> None:
    async def body(workers: ProcessWorkers) -> tuple[int, int]:
        first = await workers.run(os.getpid)
        kill_and_wait(first)
        return first, await workers.run(os.getpid)

    first, second = in_pool(body)
    assert first != second


def test_cancelling_a_run_kills_its_process_before_the_caller_goes_on() -> None:
    async def body(workers: ProcessWorkers) -> int:
        await workers.run(os.getpid)
        (pid,) = workers.pids
        run = asyncio.ensure_future(workers.run(time.sleep, 3600))
        await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert not is_running(pid)
        return await workers.run(operator.add, 1, 2)

    assert in_pool(body) == 3


def test_closing_ends_jobs_in_progress_and_refuses_new_ones() -> None:
    async def main() -> None:
        workers = ProcessWorkers()
        await workers.run(os.getpid)
        (pid,) = workers.pids
        run = asyncio.ensure_future(workers.run(time.sleep, 3600))
        await asyncio.sleep(0)
        await workers.close()
        assert not is_running(pid)
        with pytest.raises(WorkersClosed):
            await run
        with pytest.raises(WorkersClosed):
            await workers.run(os.getpid)

    asyncio.run(main())


def test_an_idle_process_goes_and_gives_back_its_memory() -> None:
    async def body(workers: ProcessWorkers) -> None:
        pid = await workers.run(os.getpid)
        # The loop fires timers in the order they are due, so this one comes after the pool's.
        await asyncio.sleep(0.02)
        assert workers.pids == []
        assert not is_running(pid)
        assert await workers.run(operator.add, 1, 2) == 3

    in_pool(body, idle_seconds=0.01)


def test_a_job_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import asyncio, os, sys, time\n"
        f"sys.path[:] = {sys.path!r}\n"
        "from headrace.system.workers import ProcessWorkers\n"
        "async def main():\n"
        "    workers = ProcessWorkers()\n"
        "    print(await workers.run(os.getpid), flush=True)\n"
        "    await workers.run(time.sleep, 3600)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        parent.kill()
        # The worker has inherited this pipe: it ends only when both are gone.
        assert parent.stdout.read() == b""


def test_a_worker_imports_only_what_its_jobs_need() -> None:
    modules = in_pool(lambda workers: workers.run(eval, "sorted(__import__('sys').modules)"))
    assert "headrace.system.worker_process" in modules
    assert not {"asyncio", "headrace.system.workers", "headrace.log"} & set(modules)


def test_inline_workers_run_at_once_and_pass_exceptions_on() -> None:
    workers = InlineWorkers()
    assert asyncio.run(workers.run(operator.add, 1, 2)) == 3
    with pytest.raises(ZeroDivisionError):
        asyncio.run(workers.run(operator.truediv, 1, 0))
    assert workers.runs == 2


def test_a_pool_of_no_processes_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        ProcessWorkers(0)
