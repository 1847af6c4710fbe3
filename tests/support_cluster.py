"""A node's real metadata behind the APIs, on a disk in memory: codec, dispatch and controller are real."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

from headrace.api.dynamic_config import concerns_node, refresh_config
from headrace.api.services import Services
from headrace.api.table import apis_of
from headrace.metadata.delta import MetadataDelta
from headrace.metadata.format import format_directories, format_plan
from headrace.metadata.image import MetadataImage
from headrace.metadata.service import MetadataService
from headrace.protocol.message import Message
from headrace.testing.clock import ManualClock
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import MemoryDisk
from tests.support_admin import CLUSTER_ID, LISTENER, Client
from tests.support_config import node

R = TypeVar("R", bound=Message)


class Cluster:
    """One node. Ask it as a client of a listener would."""

    def __init__(self, metadata: MetadataService, services: Services) -> None:
        self.metadata = metadata
        self.services = services

    async def ask(self, request: Message, kind: type[R], version: int, listener: str = LISTENER) -> R:
        """Send a request and wait for its reply."""
        is_controller = listener in self.services.config.controller_listener_names
        client = Client(self.services, apis_of(is_controller), listener)
        client.send(request, version)
        assert client.connection.close_reason is None, client.connection.close_reason
        loop = asyncio.get_running_loop()
        while not client.connection.slots[-1].is_answered:
            turn = loop.create_future()
            loop.call_soon(turn.set_result, None)
            await turn
        return client.reply(kind, version)[1]


@asynccontextmanager
async def running_cluster(texts: dict[str, str] | None = None) -> AsyncIterator[Cluster]:
    """A freshly formatted node whose broker is registered and alive."""
    directories = {"log.dirs": "/data", "controller.quorum.voters": "1@localhost:9093"}
    config = node(directories | {"controller.quorum.bootstrap.servers": ""} | (texts or {}))
    disk, clock, entropy = MemoryDisk(), ManualClock(), SeededEntropy()
    list(format_directories(disk, clock, entropy, format_plan(config, CLUSTER_ID, entropy)))
    metadata = await MetadataService.open(disk, clock, entropy, config)
    services = Services(
        config=config,
        clock=clock,
        image=metadata.image,
        controller=metadata.controller,
        replicas=cast(Any, None),
        fetch_sessions=cast(Any, None),
        producer_ids=cast(Any, None),
        cluster_id=CLUSTER_ID,
    )

    def on_change(delta: MetadataDelta, image: MetadataImage) -> None:
        if concerns_node(services, delta):
            refresh_config(services)

    metadata.subscribe(on_change)
    await metadata.start_broker()
    try:
        yield Cluster(metadata, services)
    finally:
        await metadata.close()
