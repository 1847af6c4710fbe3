"""Kafka's own command-line tools, unmodified, many runs in one JVM.

A `KafkaTools` keeps one Java process for its lifetime; each call is the main method of a tool with its
arguments, as its script would start it. What a tool prints and the status it exits with come back.
"""

import json
import subprocess
from types import TracebackType
from typing import IO, NamedTuple

from compat.kafka_libs import java_launch

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
API_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
METADATA_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
STORAGE = "kafka.tools.StorageTool"
ACLS = "org.apache.kafka.tools.AclCommand"
DELEGATION_TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"


class ToolRun(NamedTuple):
    """What one run of a tool came to."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What was printed, without blank lines and without space at the ends of lines."""
        return [line.strip() for line in self.out.splitlines() if line.strip()]


class ToolFailed(AssertionError):
    """A tool that should have done its work did not; the message has what it printed."""


class KafkaTools:
    """One JVM that runs tools one after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_launch("ToolRuns.java"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> "KafkaTools":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def attempt(self, tool: str, *arguments: str, stdin: str = "") -> ToolRun:
        """Run a tool, whatever comes of it."""
        wanted = {"main": tool, "arguments": arguments, "stdin": stdin}
        to_java, from_java = self._streams()
        to_java.write(json.dumps(wanted) + "\n")
        to_java.flush()
        answer = from_java.readline()
        if not answer:
            raise ToolFailed(f"the JVM ended while it ran {tool} {' '.join(arguments)}")
        return ToolRun(**json.loads(answer))

    def run(self, tool: str, *arguments: str, stdin: str = "") -> ToolRun:
        """Run a tool that has to succeed."""
        done = self.attempt(tool, *arguments, stdin=stdin)
        if done.status != 0:
            command = " ".join((tool, *arguments))
            raise ToolFailed(f"{command} exited with {done.status}:\n{done.out}{done.err}")
        return done

    def close(self) -> None:
        """End the JVM."""
        for stream in self._streams():
            stream.close()
        self._process.wait()

    def _streams(self) -> tuple[IO[str], IO[str]]:
        to_java, from_java = self._process.stdin, self._process.stdout
        assert to_java is not None
        assert from_java is not None
        return to_java, from_java
