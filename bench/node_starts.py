"""How long a broker takes until it has acknowledged a write, and what it uses while nobody wants anything."""

import time
from collections.abc import Callable

from bench.node_brokers import Broker, has_ended, processor_seconds
from bench.node_wire import Refused, WireClient, check_produced, create_topic, produce_frame

TOPIC = "starts"
START_TIMEOUT_S = 120.0
_TRIAL_PAUSE_S = 0.002


class NotReady(Exception):
    """A broker did not take a write in time."""


def first_start(broker: Broker) -> None:
    """Start a broker for the first time, and give it the topic that later starts write to."""

    def create(client: WireClient) -> None:
        create_topic(client, TOPIC)

    broker.launch()
    _persist(broker, create)


def seconds_to_write(broker: Broker) -> float:
    """Start a broker; the seconds until a write is acknowledged."""
    frame = produce_frame(TOPIC, b"first")

    def write(client: WireClient) -> None:
        client.socket.sendall(frame)
        check_produced(client.frame())

    started = time.perf_counter()
    broker.launch()
    _persist(broker, write)
    return time.perf_counter() - started


def _persist(broker: Broker, attempt: Callable[[WireClient], None]) -> None:
    """Try until it works, with a new connection each time."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and not has_ended(broker.pid):
        try:
            with WireClient(broker.host, broker.port) as client:
                attempt(client)
                return
        except (OSError, Refused):
            time.sleep(_TRIAL_PAUSE_S)
    raise NotReady(f"the broker at {broker.address} did not start to serve")


def processor_share(broker: Broker, seconds: float) -> float:
    """The share of one processor that a broker uses while it is left alone."""
    before, started = processor_seconds(broker.pid), time.perf_counter()
    time.sleep(seconds)
    return (processor_seconds(broker.pid) - before) / (time.perf_counter() - started)
