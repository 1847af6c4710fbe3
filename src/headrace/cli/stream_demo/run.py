"""The demonstration from start to end: everything it starts, it stops."""

import asyncio
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final, NoReturn

from headrace.cli.stream_demo.java import HOW_TO_GET_JAVA, why_no_spark

if TYPE_CHECKING:
    from headrace.cli.stream_demo.events import Produced

TICK_SECONDS: Final = 0.5
GENERATOR_STOP_SECONDS_MAX: Final = 30


def run_demo(port: int, rows_per_second: int) -> NoReturn:
    """Show the demonstration until Ctrl-C; without Java or PySpark, run the node alone."""
    obstacle = why_no_spark(os.environ)
    if obstacle is not None:
        _run_node_alone(port, obstacle)
    from headrace.cli.start_server import refuse
    from headrace.errors import HeadraceError

    try:
        _show(port, rows_per_second)
    except HeadraceError as error:
        refuse(str(error))
    except KeyboardInterrupt:
        # Before the screen is there, an interrupt unwinds whatever was begun.
        _say("")
    _say("Stopped.")
    sys.exit(0)


def _run_node_alone(port: int, obstacle: str) -> NoReturn:
    from headrace.cli.start_up import UpCommand, start_up

    _say(f"The stream through Spark is left out. {obstacle}")
    if "Java" in obstacle or "java" in obstacle:
        for line in HOW_TO_GET_JAVA:
            _say(line)
    _say("")
    start_up(UpCommand(port=port, demo=True, scratch=True))


def _stop_on_signals(stop: threading.Event) -> None:
    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)


def _show(port: int, rows_per_second: int) -> None:
    from headrace.cli.stream_demo.events import Produced, create_topic
    from headrace.cli.stream_demo.node_process import NodeProcess
    from headrace.cli.stream_demo.pipeline import local_spark, start_query
    from headrace.cli.stream_demo.screen import LineScreen, TerminalScreen
    from headrace.cli.stream_demo.watch import Figures, Watch

    with tempfile.TemporaryDirectory(prefix="headrace-demo-") as scratch, NodeProcess(port) as node:
        _say(f"Headrace is up at {node.address}, metrics at {node.metrics}")
        asyncio.run(create_topic(node.address))
        _say("Starting Spark; the first windows come in some seconds.")
        produced = Produced()
        figures = Figures(node.address)
        with (
            local_spark(os.path.join(scratch, "spark.log")) as spark,
            _generator(node.address, rows_per_second, produced),
        ):
            stop = threading.Event()
            # Spark has set a handler of its own for Ctrl-C.
            _stop_on_signals(stop)
            query = start_query(
                spark,
                node.address,
                os.path.join(scratch, "checkpoint"),
                lambda windows: setattr(figures, "windows", windows),
            )
            with TerminalScreen() if sys.stdout.isatty() else LineScreen() as screen:
                watch = Watch(query, produced, figures)
                while not stop.wait(TICK_SECONDS):
                    watch.look()
                    screen.show(figures)
            _say("Stopping.")
            query.stop()


@contextmanager
def _generator(address: str, rows_per_second: int, produced: "Produced") -> Iterator[None]:
    """Produce from a thread with a loop of its own, until the block ends."""
    from headrace.cli.stream_demo.events import generate

    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    def run() -> None:
        try:
            loop.run_until_complete(generate(address, rows_per_second, produced, stop))
        except Exception as error:  # noqa: BLE001  # whatever it is, the one who watches reports it
            produced.error = error
        finally:
            loop.close()

    thread = threading.Thread(target=run, name="generator")
    thread.start()
    try:
        yield
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(stop.set)
        thread.join(GENERATOR_STOP_SECONDS_MAX)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
