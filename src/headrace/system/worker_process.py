"""The inside of a worker process: jobs come in over a socket, one at a time, and results go back.

A thread of its own watches the socket, so that the process ends with its parent even in the middle of a job.
"""

import os
import pickle
import signal
import socket
import struct
import threading
import traceback
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final

from headrace.errors import HeadraceError

FRAME_LENGTH: Final = struct.Struct(">Q")

Job = tuple[Callable[..., object], tuple[object, ...]]


class JobFailed(HeadraceError):
    """A job's exception that can't travel between processes as it is; the message has its type and text."""


def serve(descriptor: int, niceness: int) -> None:
    """Work off jobs until the other end of the socket closes."""
    # An interrupt from the terminal goes to every process of the group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(niceness)
    jobs: SimpleQueue[bytes] = SimpleQueue()
    with socket.socket(fileno=descriptor) as channel:
        threading.Thread(target=_receive_jobs, args=(channel, jobs), daemon=True).start()
        while True:
            reply = answer(jobs.get())
            channel.sendall(FRAME_LENGTH.pack(len(reply)))
            channel.sendall(reply)


def answer(job: bytes) -> bytes:
    """Run a pickled job; the reply is a pickled pair of whether it went well and its result or exception."""
    try:
        function, arguments = unpack_job(job)
        return pickle.dumps((True, function(*arguments)))
    except Exception as error:  # noqa: BLE001 - whatever the job raised is the caller's to handle
        return pickle.dumps((False, portable(error)))


def unpack_job(job: bytes) -> Job:
    function, arguments = pickle.loads(job)
    return function, arguments


def portable(error: Exception) -> Exception:
    """The exception itself if it survives pickling unchanged, or one that says the same."""
    origin = "in a worker process:\n" + traceback.format_exc()
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - a constructor that pickle can't call may raise anything
        copy = None
    if type(copy) is not type(error) or str(copy) != str(error):
        error = JobFailed(f"{type(error).__name__}: {error}")
    error.add_note(origin)
    return error


def _receive_jobs(channel: socket.socket, jobs: "SimpleQueue[bytes]") -> None:
    """Hand on jobs as they come. At the end of the stream the parent is gone, and nobody waits for them."""
    with channel.makefile("rb") as stream:
        while True:
            header = stream.read(FRAME_LENGTH.size)
            body = b""
            if len(header) == FRAME_LENGTH.size:
                (length,) = FRAME_LENGTH.unpack(header)
                body = stream.read(length)
            if not body:
                os._exit(0)
            jobs.put(body)


def open_reply(reply: bytes) -> Any:
    """The result of a job, or its exception raised."""
    went_well, outcome = pickle.loads(reply)
    if went_well:
        return outcome
    raise outcome
