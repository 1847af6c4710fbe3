"""A data directory with a place on the network, on which Kafka or Headrace may be started in turn.

Clients keep one address whoever serves it. At most one of the two runs at a time; Tests
about one node take the target that HEADRACE_COMPAT_TARGET names ("kafka" or
"headrace", which it is by default): a test that fails on Kafka itself expects too much.
"""

import os
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

from compat.kafka_libs import run_java
from compat.kafka_peer import KafkaPeer, write_properties
from tests.support_answers import free_ports
from tests.support_node import RunningNode, headrace

HOST = "127.0.0.1"
CLUSTER_ID = "c2VhdC1vZi1ib3RoLWtpbg"


class Software(StrEnum):
    """Who may take the seat."""

    KAFKA = "kafka"
    HEADRACE = "headrace"


def chosen_target() -> Software:
    """What tests about one node are run against."""
    return Software(os.environ.get("HEADRACE_COMPAT_TARGET", Software.HEADRACE))


class SeatTaken(Exception):
    """Two at once on one directory."""


class Seat:
    """One directory, one address. `properties` are for both; `kafka_only` makes those for Kafka alone from
    all the others.

    With `has_voters_in_log` the voters of the metadata quorum are not configured but written when formatting.
    """

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        kafka_only: Callable[[dict[str, str]], dict[str, str]] | None = None,
        *,
        data_dir: Path | None = None,
        has_voters_in_log: bool = False,
    ) -> None:
        port, controller_port = free_ports(2)
        self.port = port
        self.data_dir = data_dir or directory / "data"
        listeners = f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}"
        self.properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            **_quorum(controller_port, has_voters_in_log),
            "log.dirs": str(self.data_dir),
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            **(properties or {}),
        }
        own = self.properties | (kafka_only(self.properties) if kafka_only else {})
        self._kafka = KafkaPeer(directory / "kafka", own, port=port, controller_port=controller_port)
        self._headrace = RunningNode(directory / "headrace", self.properties, is_formatted=True)
        self.properties_file = directory / "server.properties"
        write_properties(self.properties_file, self.properties)
        self.running: Software | None = None

    @property
    def address(self) -> str:
        """The bootstrap server of whoever runs."""
        return f"{HOST}:{self.port}"

    @property
    def metadata_dir(self) -> Path:
        """The directory of the metadata log."""
        return self.data_dir / "__cluster_metadata-0"

    @property
    def headrace_output(self) -> str:
        """What Headrace has printed since it was started last."""
        return self._headrace.output

    def format(self, software: Software, *arguments: str) -> None:
        """Prepare the empty directory; `arguments` are further ones of `storage format`."""
        given = ("format", "-t", CLUSTER_ID, "-c", str(self.properties_file), *arguments)
        if software is Software.KAFKA:
            done = run_java("kafka.tools.StorageTool", *given)
        else:
            done = headrace("storage", *given)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, software: Software) -> None:
        """Start it on the directory and return when it serves clients."""
        if self.running is not None:
            raise SeatTaken(f"{self.running} is running")
        if software is Software.KAFKA:
            self._kafka.start()
        else:
            self._start_headrace()
        self.running = software

    def _start_headrace(self) -> None:
        try:
            self._headrace.start()
        except BaseException:
            self._headrace.kill()
            raise

    def stop(self) -> None:
        """End what runs in an orderly way."""
        if self.running is Software.KAFKA:
            self._kafka.stop()
        elif self.running is Software.HEADRACE:
            status = self._headrace.stop()
            assert status == 0, self._headrace.output
        self.running = None

    def kill(self) -> None:
        """End what runs as by `kill -9`."""
        if self.running is Software.KAFKA:
            self._kafka.kill()
        elif self.running is Software.HEADRACE:
            self._headrace.kill()
        self.running = None


def _quorum(controller_port: int, has_voters_in_log: bool) -> dict[str, str]:
    place = f"{HOST}:{controller_port}"
    if has_voters_in_log:
        return {"controller.quorum.voters": "", "controller.quorum.bootstrap.servers": place}
    return {"controller.quorum.voters": f"1@{place}"}
