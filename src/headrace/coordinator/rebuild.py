"""Checks that a shard is what its log says: rebuilds it from there and compares."""

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from headrace.coordinator.hosted_shard import HostedShard, ShardState
from headrace.coordinator.keyed_timers import KeyedTimers
from headrace.coordinator.loading import Loading
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.coordinator.shard import Shard, ShardContext
from headrace.coordinator.timers import TimerQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.metadata.image import MetadataImage
    from headrace.ports import Clock
    from headrace.protocol.prefixed import CoordinatorRecords

S = TypeVar("S", bound=Shard)


class Difference(NamedTuple):
    """A shard whose state is not what its log adds up to."""

    partition: int
    live: Any
    rebuilt: Any


class Rebuilding(NamedTuple):
    """What a shard is made of, to make a second one."""

    make_shard: "Callable[[ShardContext], Shard]"
    codec: "CoordinatorRecords"
    image: "MetadataImage"
    clock: "Clock"


async def differences(runtime: CoordinatorRuntime[Any], rebuilding: Rebuilding) -> list[Difference]:
    """Every serving shard that is not as it would be after a restart."""
    found = []
    for hosted in tuple(runtime.shards.values()):
        if hosted.state is ShardState.ACTIVE and hosted.shard is not None:
            live = hosted.shard.state()
            rebuilt = await _rebuilt(hosted, rebuilding)
            if live != rebuilt:
                found.append(Difference(hosted.index, live, rebuilt))
    return found


async def _rebuilt(hosted: HostedShard[Any], rebuilding: Rebuilding) -> Any:
    timers = TimerQueue(rebuilding.clock)
    keyed = KeyedTimers(timers, lambda operation, outcome: outcome(None))
    shard = rebuilding.make_shard(ShardContext(hosted.index, keyed, rebuilding.image))
    await Loading(hosted.partition, rebuilding.codec, shard).run()
    state = shard.state()
    shard.on_unloaded()
    timers.close()
    return state
