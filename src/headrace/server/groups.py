"""The group coordinator of a node: made of its parts, and kept going."""

from contextlib import AsyncExitStack

from headrace.api.services import Services
from headrace.coordinator.hosted_shard import ShardSettings
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.coordinator.shard import ShardContext
from headrace.groups.coordinator import GroupCoordinator
from headrace.groups.group_configs import GroupConfigs
from headrace.groups.group_counters import GroupCounters
from headrace.groups.settings import group_settings
from headrace.groups.shard import GroupShard
from headrace.metadata.auto_creation import GROUP_TOPIC
from headrace.ports import Entropy
from headrace.protocol.prefixed import GROUP_LOG
from headrace.records.compression import Compression


def start_groups(services: Services, entropy: Entropy, stack: AsyncExitStack) -> None:
    """Serve the groups whose partitions this node leads, until the stack is left."""
    config = services.config
    settings, counters = group_settings(config), GroupCounters()
    configs = GroupConfigs(services.image, lambda: services.config)

    def make_shard(context: ShardContext) -> GroupShard:
        return GroupShard(context, settings, entropy, counters, configs)

    runtime = CoordinatorRuntime(
        GROUP_TOPIC,
        make_shard,
        ShardSettings(
            GROUP_LOG,
            Compression(config.integer("offsets.topic.compression.codec")),
            config.integer("offsets.commit.timeout.ms"),
            config.integer("group.coordinator.append.linger.ms"),
        ),
        services.replicas,
        services.image,
        services.clock,
        config.integer("offsets.topic.num.partitions"),
    )
    services.groups = GroupCoordinator(runtime, settings, counters, configs)
    stack.push_async_callback(runtime.close)
    runtime.start()
