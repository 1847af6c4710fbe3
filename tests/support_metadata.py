"""A node's metadata on a disk in memory: format, start, stop, kill, and look at what was written."""

import asyncio
import tarfile
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import ParamSpec

from headrace.config.node import NodeConfig
from headrace.log.checkpoints import remove_clean_shutdown, write_clean_shutdown
from headrace.metadata.format import format_directories, format_plan
from headrace.metadata.image import MetadataImage
from headrace.metadata.service import MetadataService
from headrace.metadata.store import decode_all
from headrace.protocol.message import Message
from headrace.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from headrace.raft.batches import DataBatch
from headrace.testing.clock import ManualClock
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import MemoryDisk

P = ParamSpec("P")
DATA = "/data"
CLUSTER_ID = "aGVhZHJhY2UtbWV0YWRhdGE"
RECORDED = Path(__file__).parent / "metadata" / "kafka-4.3.1-metadata.tar.gz"
FIXTURES = Path(__file__).parent / "fixtures"
STATIC = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": DATA,
}
STANDALONE = {key: text for key, text in STATIC.items() if key != "controller.quorum.voters"} | {
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093"
}


def on_loop(scenario: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Run a test that awaits on an event loop of its own."""

    @wraps(scenario)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(scenario(*args, **kwargs))

    return run


def unpack(archive: Path, disk: MemoryDisk, directory: str = DATA) -> None:
    """Put the files of a recorded log directory on a disk in memory."""
    with tarfile.open(archive) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            if content is None:
                continue
            name = member.name.removeprefix("./").partition("/")[2]
            path = f"{directory}/{name}"
            if "/" in name and not name.startswith("__cluster_metadata-0/"):
                continue
            disk.make_directory(path.rpartition("/")[0])
            # Indexes of a killed broker are megabytes of zeros, which the disk need not hold as bytes.
            disk.replace(path, content.read().rstrip(b"\0"))
            disk.open(path).truncate(member.size)


class MetadataNode:
    """One node whose only traffic is metadata."""

    def __init__(
        self,
        disk: MemoryDisk | None = None,
        *,
        seed: int = 0,
        texts: dict[str, str] | None = None,
    ) -> None:
        self.disk = disk or MemoryDisk()
        self.clock = ManualClock()
        self.entropy = SeededEntropy(seed)
        self.config = NodeConfig(texts or STATIC)
        self._service: MetadataService | None = None

    @property
    def metadata(self) -> MetadataService:
        assert self._service is not None
        return self._service

    @property
    def image(self) -> MetadataImage:
        return self.metadata.image

    def format(self, release: str | None = None, *, standalone: bool = False) -> list[str]:
        plan = format_plan(self.config, CLUSTER_ID, self.entropy, release=release, standalone=standalone)
        lines = format_directories(self.disk, self.clock, self.entropy, plan)
        return [line for line in lines if not line.startswith("Bootstrap metadata: ")]

    async def start(self) -> MetadataService:
        """Start on what is on the disk, up to an unfenced broker."""
        self._service = await MetadataService.open(self.disk, self.clock, self.entropy, self.config)
        for directory in self.config.log_dirs:
            remove_clean_shutdown(self.disk, directory)
        await self._service.start_broker()
        return self._service

    async def stop(self) -> None:
        """Stop cleanly, as a broker does after its logs are closed."""
        await self.metadata.stop_broker()
        for directory in self.config.log_dirs:
            write_clean_shutdown(self.disk, directory, self.metadata.broker_epoch)
        await self.metadata.close()
        self._service = None

    def restarted(self) -> "MetadataNode":
        """The same node in a new process: same disk, and time has passed."""
        node = MetadataNode(self.disk, seed=self.entropy.seed + 1, texts=self.config.texts)
        node.clock = self.clock
        return node

    async def create(
        self, name: str, partitions: int = 1, factor: int = 1, **texts: str
    ) -> CreatableTopicResult:
        """Create one topic; configuration keys with underscores for dots."""
        configs = [
            CreatableTopicConfig(name=key.replace("_", "."), value=text) for key, text in texts.items()
        ]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=factor, configs=configs
        )
        response = await self.metadata.controller.create_topics(CreateTopicsRequest(topics=[topic]))
        return response.topics[0]

    def records(self, since: int = 0) -> list[Message]:
        """Every metadata record in the log from an offset on."""
        found: list[Message] = []
        for batch in self.metadata.quorum.metadata_log.read_from(since):
            if isinstance(batch, DataBatch):
                found += decode_all(batch.values)
        return found


async def started(seed: int = 0, **overrides: str) -> MetadataNode:
    """A freshly formatted node that runs; configuration keys with underscores for dots."""
    keys = {key.replace("_", "."): text for key, text in overrides.items()}
    node = MetadataNode(seed=seed, texts={**STATIC, **keys})
    node.format()
    await node.start()
    return node
