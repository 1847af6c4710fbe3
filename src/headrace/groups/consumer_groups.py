"""The consumer groups of one shard: their parts put together, and kept in step with the metadata."""

import logging
from collections.abc import Collection
from typing import Final

from headrace.coordinator.shard import Decision
from headrace.errors import ErrorCode, KafkaError
from headrace.groups.classic_rebalance import Rebalances
from headrace.groups.client import GroupClient
from headrace.groups.consumer_changes import preferred_assignor
from headrace.groups.consumer_classic import ClassicRequests
from headrace.groups.consumer_descriptions import described
from headrace.groups.consumer_fencing import Fencing
from headrace.groups.consumer_group import ConsumerGroup
from headrace.groups.consumer_heartbeats import ConsumerHeartbeats
from headrace.groups.consumer_member import MemberState
from headrace.groups.consumer_regexes import Regexes
from headrace.groups.consumer_settings import ConsumerSettings
from headrace.groups.consumer_steps import Steps
from headrace.groups.consumer_targets import Targets
from headrace.groups.group_configs import GroupConfigs
from headrace.groups.group_registry import not_found
from headrace.groups.topic_hashes import TopicHashes
from headrace.metadata.delta import MetadataDelta
from headrace.metadata.image import MetadataImage
from headrace.ports import Entropy
from headrace.protocol.messages.consumer_group_describe import DescribedGroup
from headrace.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

logger: Final = logging.getLogger("headrace.groups")


class ConsumerGroups:
    """What a shard does for consumer groups, apart from replaying their records."""

    __slots__ = ("_groups", "_hashes", "_heartbeats", "_image", "_regexes", "_settings", "_timers", "classic")

    def __init__(
        self,
        rebalances: Rebalances,
        image: MetadataImage,
        configs: GroupConfigs,
        settings: ConsumerSettings,
        entropy: Entropy,
    ) -> None:
        groups = rebalances.groups
        hashes = TopicHashes(image)
        fencing = Fencing(rebalances, image, hashes, configs, settings)
        self._regexes = Regexes(
            groups,
            rebalances.timers,
            image,
            hashes,
            rebalances.counters,
            settings.regex_refresh_interval_ms,
        )
        targets = Targets(image, configs, settings)
        steps = Steps(targets, self._regexes, hashes, fencing.timers, rebalances.counters)
        self.classic = ClassicRequests(steps, fencing, image, settings, entropy)
        self._heartbeats = ConsumerHeartbeats(
            groups, steps, fencing, image, hashes, configs, settings, entropy
        )
        self._groups = groups
        self._hashes = hashes
        self._image = image
        self._settings = settings
        self._timers = fencing.timers

    def heartbeat(
        self, client: GroupClient, request: ConsumerGroupHeartbeatRequest, now_ms: int
    ) -> Decision[ConsumerGroupHeartbeatResponse]:
        """ConsumerGroupHeartbeat."""
        return self._heartbeats.heartbeat(client, request, now_ms)

    def describe(self, group_ids: Collection[str]) -> list[DescribedGroup]:
        """Consumer groups in detail; those that are none are said not to be found."""
        return [self._described(group_id) for group_id in group_ids]

    def _described(self, group_id: str) -> DescribedGroup:
        try:
            group = self._groups.get(group_id)
            if not isinstance(group, ConsumerGroup):
                raise not_found(f"Group {group_id} is not a consumer group.")
        except KafkaError as error:
            return DescribedGroup(
                group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=error.message
            )
        return described(group, preferred_assignor(group) or self._settings.assignors[0], self._image)

    # Its life

    def on_loaded(self, image: MetadataImage) -> None:
        """Members have a session from now on, and those that have to give partitions back their time."""
        self._regexes.topics_created_at = image.offset
        for group in self._groups:
            if isinstance(group, ConsumerGroup):
                for member in group.members.values():
                    self._timers.begin_session(group.group_id, member.member_id)
                    if member.state is MemberState.UNREVOKED_PARTITIONS:
                        self._timers.follow(group.group_id, member)

    def on_metadata(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Groups that are subscribed to topics which have changed have to look at them again."""
        if delta.topics_created:
            self._regexes.topics_created_at = image.offset
        changed = {topic.name for topic in delta.topics_deleted.values()}
        for topic_id in {*delta.topics_created, *(each.topic_id for each in delta.partitions)}:
            topic = image.topics_by_id.get(topic_id)
            if topic is not None:
                changed.add(topic.name)
        if not changed:
            return
        self._hashes.forget(changed)
        for group in self._groups:
            if (
                isinstance(group, ConsumerGroup)
                and not group.is_refresh_due
                and any(group.is_subscribed_to(name) for name in changed)
            ):
                group.is_refresh_due = True
