"""Making connections: every address that a name has is tried, the next one before the last has given up.

An address that does not answer costs the time until the next one is tried alongside, not its whole time-out.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from headrace.net.addresses import Address
from headrace.net.client_errors import DialFailed

T = TypeVar("T")

#: How long an attempt has for itself before the next one is made alongside.
STAGGER_SECONDS: Final = 0.25


async def dial(address: Address, timeout_ms: int, send_buffer: int, receive_buffer: int) -> socket.socket:
    """A connected socket; DialFailed if none of the addresses of that name answers in time."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            found = await _resolve(loop, address)
            return await first_to_succeed(
                [partial(_connect, loop, each, send_buffer, receive_buffer) for each in found],
                STAGGER_SECONDS,
            )
    except TimeoutError:
        reason = f"no connection within {timeout_ms} ms; is a firewall in between?"
        raise DialFailed(str(address), reason) from None
    except OSError as error:
        raise DialFailed(str(address), _in_words(error)) from None


def _in_words(error: OSError) -> str:
    """What the system says; loops put words of their own in its place."""
    return os.strerror(error.errno) if error.errno else str(error)


async def _resolve(loop: asyncio.AbstractEventLoop, address: Address) -> list[tuple[int, object]]:
    try:
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise DialFailed(str(address), f"the host name cannot be resolved: {error.strerror}") from None
    return [(family, peer) for family, _, _, _, peer in found]


async def _connect(
    loop: asyncio.AbstractEventLoop, found: tuple[int, object], send_buffer: int, receive_buffer: int
) -> socket.socket:
    family, peer = found
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        if send_buffer >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        if receive_buffer >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        await loop.sock_connect(sock, peer)  # type: ignore[arg-type]  # whatever the resolver gave
    except BaseException:
        sock.close()
        raise
    return sock


async def first_to_succeed(attempts: Sequence[Callable[[], Awaitable[T]]], stagger_seconds: float) -> T:
    """The first result there is. An attempt starts when the one before has failed or has had its time.

    The others are cancelled, and what they may have made is thrown away by who made it. If all fail, the
    last failure is raised."""
    running: set[asyncio.Task[T]] = set()
    waiting = list(attempts)
    failure: BaseException = OSError("there is no address to connect to")
    try:
        while running or waiting:
            if waiting:
                running.add(asyncio.ensure_future(_run(waiting.pop(0))))
            patience = stagger_seconds if waiting else None
            done, running = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if (error := task.exception()) is None:
                    return _kept(task, done)
                failure = error
        raise failure
    finally:
        await _abandon(running)


async def _run(attempt: Callable[[], Awaitable[T]]) -> T:
    return await attempt()


def _kept(winner: "asyncio.Task[T]", done: "set[asyncio.Task[T]]") -> T:
    """The winner's result; what another brought at the same moment is closed."""
    for task in done - {winner}:
        if task.exception() is None:
            _close(task.result())
    return winner.result()


async def _abandon(running: "set[asyncio.Task[T]]") -> None:
    for task in running:
        task.cancel()
        # Not after the wait: whoever waits may be cancelled once more.
        task.add_done_callback(_discard)
    if running:
        await asyncio.wait(running)


def _discard(task: "asyncio.Task[T]") -> None:
    if not task.cancelled() and task.exception() is None:
        _close(task.result())


def _close(result: object) -> None:
    close = getattr(result, "close", None)
    if close is not None:
        close()
