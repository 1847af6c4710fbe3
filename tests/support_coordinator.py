"""A coordinator on a small node: a shard that only remembers, and a runtime for it."""

import asyncio
from typing import Any

from headrace.coordinator.hosted_shard import ShardSettings
from headrace.coordinator.rebuild import Difference, Rebuilding, differences
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.coordinator.shard import CoordinatorRecord, Decision, ShardContext
from headrace.metadata.delta import MetadataDelta
from headrace.metadata.image import MetadataImage
from headrace.protocol.disk_records.transaction_state import TransactionLogKey, TransactionLogValue
from headrace.protocol.message import Message
from headrace.protocol.prefixed import TRANSACTION_LOG
from tests.support_data import NODE, DataNode

TOPIC = "__transaction_state"


class RememberingShard:
    """Keeps the last value of every key; those of transactions only when these are committed."""

    def __init__(self, context: ShardContext) -> None:
        self.context = context
        self.values: dict[str, int] = {}
        self.pending: dict[int, dict[str, int]] = {}
        self.offsets: list[int] = []
        self.loaded = self.unloaded = False
        self.images = 0
        self.fails_at: str | None = None

    def replay(
        self, offset: int, producer_id: int, producer_epoch: int, key: Message, value: Message | None
    ) -> None:
        assert isinstance(key, TransactionLogKey)
        if key.transactional_id == self.fails_at:
            raise ValueError("a bug")
        self.offsets.append(offset)
        target = self.values if producer_id < 0 else self.pending.setdefault(producer_id, {})
        if value is None:
            target.pop(key.transactional_id, None)
        else:
            assert isinstance(value, TransactionLogValue)
            target[key.transactional_id] = value.producer_id

    def replay_end_transaction_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        values = self.pending.pop(producer_id, {})
        if committed:
            self.values |= values

    def on_loaded(self, image: MetadataImage) -> None:
        self.loaded = True

    def on_new_metadata_image(self, image: MetadataImage, delta: MetadataDelta) -> None:
        self.images += 1

    def on_unloaded(self) -> None:
        self.unloaded = True

    def state(self) -> Any:
        return self.values, self.pending


def record(key: str, value: int | None) -> CoordinatorRecord:
    """A record that sets a key, or takes it away."""
    return CoordinatorRecord(
        TransactionLogKey(transactional_id=key),
        None if value is None else TransactionLogValue(producer_id=value, transaction_partitions=[]),
    )


def setting(key: str, value: int | None, **fields: Any) -> Any:
    """An operation that sets a key and replies with what it had before."""

    def decide(shard: RememberingShard, now_ms: int) -> Decision[int | None]:
        return Decision([record(key, value)], shard.values.get(key), **fields)

    return decide


class Coordinator:
    """The runtime of one node and its partition 0."""

    def __init__(self, node: DataNode) -> None:
        self.node = node
        self.runtime = CoordinatorRuntime(
            TOPIC,
            RememberingShard,
            ShardSettings(TRANSACTION_LOG, write_timeout_ms=1000),
            node.replicas,
            node.services.image,
            node.clock,
            5,
        )

    @property
    def shard(self) -> RememberingShard:
        return self.runtime.shards[0].active()

    def lead(self, **fields: Any) -> None:
        self.node.assign(TOPIC, 0, **({"leader": NODE} | fields))

    async def loaded(self) -> RememberingShard:
        """The shard, once it is loaded."""
        while self.runtime._loads:
            await asyncio.wait(self.runtime._loads)
        return self.shard

    def pass_time(self, milliseconds: int) -> None:
        self.node.clock.advance(milliseconds)
        self.runtime.timers.fire_due()

    async def differences(self) -> list[Difference]:
        node = self.node
        rebuilding = Rebuilding(RememberingShard, TRANSACTION_LOG, node.services.image, node.clock)
        return await differences(self.runtime, rebuilding)
