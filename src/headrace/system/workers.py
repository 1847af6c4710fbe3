"""Worker processes for Python that computes for long, which in a thread would starve the event loop.

Processes are started on first use as fresh interpreters (never forked from a process with threads), run at a
lower priority, import nothing but what their jobs need, and go when they have been idle for a while, which
gives back their memory.
"""

import asyncio
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Final, TypeVar

from headrace.errors import HeadraceError, WorkersClosed
from headrace.system.worker_process import FRAME_LENGTH, open_reply

T = TypeVar("T")

NICENESS: Final = 10
IDLE_SECONDS: Final = 60.0


class WorkerDied(HeadraceError):
    """A worker process ended in the middle of a job."""


class WorkerProcess:
    """One process and the channel to it."""

    __slots__ = ("_process", "_reader", "_writer", "idle_timer")

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self.idle_timer: asyncio.TimerHandle | None = None

    @classmethod
    async def start(cls, niceness: int) -> "WorkerProcess":
        """Start an interpreter that has this one's import path and one end of a socket pair."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = start_interpreter(theirs.fileno(), niceness)
        try:
            reader, writer = await asyncio.open_connection(sock=ours)
        except BaseException:
            ours.close()
            process.kill()
            process.wait()
            raise
        return cls(process, reader, writer)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    async def ask(self, job: bytes) -> bytes:
        """Send a job and wait for its reply."""
        try:
            self._writer.write(FRAME_LENGTH.pack(len(job)) + job)
            await self._writer.drain()
            (length,) = FRAME_LENGTH.unpack(await self._reader.readexactly(FRAME_LENGTH.size))
            return await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            status = self.kill()
            how = f"by signal {-status}" if status < 0 else f"with status {status}"
            raise WorkerDied(f"worker process {self.pid} ended {how} in the middle of a job") from error

    def kill(self) -> int:
        """End the process, whatever it is at; on return it has touched its last file. Returns its status."""
        if self.idle_timer is not None:
            self.idle_timer.cancel()
        self._writer.transport.abort()
        if self._process.poll() is None:
            self._process.kill()
        return self._process.wait()


def start_interpreter(descriptor: int, niceness: int) -> "subprocess.Popen[bytes]":
    """A fresh Python that serves jobs. It takes a few milliseconds until it is on its own."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; from headrace.system.worker_process import serve; "
        f"serve({descriptor}, {niceness})"
    )
    command = [sys.executable, "-I", "-c", program]
    return subprocess.Popen(command, pass_fds=(descriptor,), stdin=subprocess.DEVNULL)


class ProcessWorkers:
    """A bounded pool of worker processes behind the Workers port; it belongs to one event loop.

    Cancelling a run kills the process it is in: a job's files have then been left as they are.
    """

    __slots__ = ("_all", "_closed", "_idle", "_idle_seconds", "_niceness", "_vacancies")

    def __init__(
        self, count: int = 1, *, niceness: int = NICENESS, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        if count < 1:
            raise ValueError(f"a pool needs at least one worker process, not {count}")
        self._niceness = niceness
        self._idle_seconds = idle_seconds
        self._vacancies = asyncio.Semaphore(count)
        self._idle: list[WorkerProcess] = []
        self._all: set[WorkerProcess] = set()
        self._closed = False

    async def __aenter__(self) -> "ProcessWorkers":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def pids(self) -> list[int]:
        """The processes there are at the moment."""
        return sorted(worker.pid for worker in self._all)

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Run a picklable module-level function in a worker process; its exception is raised here."""
        job = pickle.dumps((function, arguments))
        async with self._vacancies:
            worker = await self._take()
            try:
                reply = await worker.ask(job)
            except BaseException as error:
                self._discard(worker)
                if self._closed and isinstance(error, WorkerDied):
                    raise WorkersClosed("the worker processes were stopped during a job") from error
                raise
            self._give_back(worker)
        result: T = open_reply(reply)
        return result

    async def close(self) -> None:
        """Kill every process; runs in progress raise WorkersClosed."""
        self._closed = True
        for worker in list(self._all):
            self._discard(worker)
        # The aborted transports are closed in the loop's next round.
        await asyncio.sleep(0)

    async def _take(self) -> WorkerProcess:
        if self._closed:
            raise WorkersClosed("the worker processes have been stopped")
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                if worker.idle_timer is not None:
                    worker.idle_timer.cancel()
                return worker
            # Somebody has killed it while it had nothing to do; the next job must not pay for that.
            self._discard(worker)
        worker = await WorkerProcess.start(self._niceness)
        self._all.add(worker)
        if self._closed:
            self._discard(worker)
            raise WorkersClosed("the worker processes have been stopped")
        return worker

    def _give_back(self, worker: WorkerProcess) -> None:
        if worker not in self._all:
            return
        self._idle.append(worker)
        loop = asyncio.get_running_loop()
        worker.idle_timer = loop.call_later(self._idle_seconds, self._discard, worker)

    def _discard(self, worker: WorkerProcess) -> None:
        if worker in self._idle:
            self._idle.remove(worker)
        self._all.discard(worker)
        worker.kill()
