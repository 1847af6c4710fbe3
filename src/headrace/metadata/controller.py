"""The controller: turns requests into records, and replies once those are committed.

Its parts decide (`topics`, `topic_changes`, `configs`, `features`, `brokers`, `producer_ids`) on an image of
the controller's own, which runs ahead of what is committed, so that requests need not wait for each other's
sync. A reply always waits for everything that its decision has seen. A request as a whole is refused with
`KafkaError`; refusals of single items are in the response.

    create_topics(CreateTopicsRequest, is_describable=...) -> CreateTopicsResponse
    auto_create_topics(names) -> CreateTopicsResponse
    delete_topics(DeleteTopicsRequest, api_version) -> DeleteTopicsResponse
    create_partitions(CreatePartitionsRequest) -> CreatePartitionsResponse
    alter_configs(AlterConfigsRequest) -> AlterConfigsResponse
    incremental_alter_configs(IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse
    update_features(UpdateFeaturesRequest, api_version) -> UpdateFeaturesResponse
    register_broker(BrokerRegistrationRequest) -> BrokerRegistrationResponse
    heartbeat(BrokerHeartbeatRequest) -> BrokerHeartbeatResponse
    unregister_broker(UnregisterBrokerRequest) -> UnregisterBrokerResponse
    register_controller(ControllerRegistrationRequest) -> ControllerRegistrationResponse
    allocate_producer_ids(AllocateProducerIdsRequest) -> AllocateProducerIdsResponse
    assign_replicas_to_dirs(AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse
    describe_quorum(DescribeQuorumRequest, api_version) -> DescribeQuorumResponse   (does not wait)
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from headrace.config.node import NodeConfig
from headrace.metadata import (
    brokers,
    configs,
    directory_assignments,
    features,
    producer_ids,
    quorum_info,
    topic_changes,
    topics,
)
from headrace.metadata.auto_creation import auto_creation_request
from headrace.metadata.control_view import ControlView
from headrace.metadata.decision import RECORDS_PER_REQUEST_MAX, STEP, Decision, Steps, in_turns
from headrace.metadata.delta import MetadataDelta
from headrace.metadata.image import MetadataImage
from headrace.metadata.snapshot import VersionedRecord
from headrace.ports import Clock, Entropy
from headrace.protocol.message import Message
from headrace.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from headrace.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from headrace.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from headrace.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from headrace.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from headrace.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from headrace.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from headrace.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from headrace.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from headrace.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from headrace.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from headrace.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from headrace.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from headrace.protocol.prefixed import encode_metadata_record
from headrace.raft.quorum import Quorum

R = TypeVar("R")


def _anyone(name: str) -> bool:
    return True


class Controller:
    """The active controller of this node's metadata quorum."""

    __slots__ = ("_clock", "_deciding", "_quorum", "_view")

    def __init__(
        self,
        quorum: Quorum,
        clock: Clock,
        entropy: Entropy,
        config: NodeConfig,
        cluster_id: str,
        image: MetadataImage,
    ) -> None:
        self._quorum = quorum
        self._clock = clock
        self._deciding = asyncio.Lock()
        self._view = ControlView(image, config, entropy, cluster_id)

    @property
    def image(self) -> MetadataImage:
        """What the controller decides on: everything appended, committed or not. Readers want the store's."""
        return self._view.image

    @property
    def cluster_id(self) -> str:
        return self._view.cluster_id

    @property
    def kraft_version(self) -> int:
        """The finalized level of kraft.version."""
        return self._quorum.kraft_version

    # Topics

    async def create_topics(
        self, request: CreateTopicsRequest, is_describable: Callable[[str], bool] = _anyone
    ) -> CreateTopicsResponse:
        """Create topics, or with `validate_only` tell what would come of it."""
        return await self._settle_in_turns(topics.create_topics(self._view, request, is_describable))

    async def auto_create_topics(self, names: Iterable[str]) -> CreateTopicsResponse:
        """Create topics as a broker does that is asked for them."""
        return await self.create_topics(auto_creation_request(self._view.node, names))

    async def delete_topics(self, request: DeleteTopicsRequest, api_version: int = 6) -> DeleteTopicsResponse:
        """Delete topics by name or id."""
        return await self._settle(lambda: topic_changes.delete_topics(self._view, request, api_version))

    async def create_partitions(self, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        """Give topics more partitions."""
        return await self._settle(lambda: topic_changes.create_partitions(self._view, request))

    # Configuration and features

    async def alter_configs(self, request: AlterConfigsRequest) -> AlterConfigsResponse:
        """Replace configurations."""
        return await self._settle(lambda: configs.alter_configs(self._view, request))

    async def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        """Change configurations key by key."""
        return await self._settle(lambda: configs.incremental_alter_configs(self._view, request))

    async def update_features(
        self, request: UpdateFeaturesRequest, api_version: int = 2
    ) -> UpdateFeaturesResponse:
        """Change levels of features, all or none."""
        return await self._settle(
            lambda: features.update_features(
                self._view,
                features.KRaftVersion(self._quorum.kraft_version, self._upgrade_kraft),
                request,
                api_version,
            )
        )

    def _upgrade_kraft(self, level: int, validate_only: bool) -> None:
        self._quorum.upgrade_kraft_version(level, validate_only=validate_only)

    # Nodes

    async def register_broker(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        """Take a broker in; it begins fenced."""
        return await self._settle(
            lambda: brokers.register_broker(self._view, request, self._quorum.next_offset)
        )

    async def heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        """Hear from a broker, and unfence, fence or stop it as it asks."""
        return await self._settle(lambda: brokers.heartbeat(self._view, request))

    async def unregister_broker(self, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
        """Forget a broker."""
        return await self._settle(lambda: brokers.unregister_broker(self._view, request))

    async def register_controller(
        self, request: ControllerRegistrationRequest
    ) -> ControllerRegistrationResponse:
        """Note a controller."""
        return await self._settle(lambda: brokers.register_controller(self._view, request))

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        """Give a broker a block of producer ids."""
        return await self._settle(lambda: producer_ids.allocate_producer_ids(self._view, request))

    async def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest
    ) -> AssignReplicasToDirsResponse:
        """Note in which of its directories a broker keeps replicas."""
        return await self._settle(lambda: directory_assignments.assign_replicas_to_dirs(self._view, request))

    def describe_quorum(self, request: DescribeQuorumRequest, api_version: int = 2) -> DescribeQuorumResponse:
        """Tell who leads and who votes."""
        return quorum_info.describe_quorum(self._quorum, request, self._clock.now_ms(), api_version)

    # Settling

    async def activate(
        self, records: Sequence[Message], registration: ControllerRegistrationRequest | None = None
    ) -> None:
        """Append the records that a new leader begins with and note itself; all are committed together."""
        await self._take(Decision(None, [(record, 0) for record in records]))
        if registration is not None and self.image.metadata_version.has_controller_registration:
            await self._take(brokers.register_controller(self._view, registration))
        await self._quorum.committed(self._quorum.next_offset - 1)

    async def _settle(self, decide: Callable[[], Decision[R]]) -> R:
        """Append what is decided, take it over, and reply once it is committed, and all it was based on."""
        async with self._deciding:
            decision = decide()
            await self._take(decision)
        return await self._reply(decision)

    async def _settle_in_turns(self, steps: Steps[Decision[R]]) -> R:
        """The same for what may take long to decide. Other decisions wait, others on the loop do not."""
        async with self._deciding:
            decision = await in_turns(steps)
            await self._take(decision)
        return await self._reply(decision)

    async def _reply(self, decision: Decision[R]) -> R:
        await self._quorum.committed(self._quorum.next_offset - 1)
        return decision.reply

    async def _take(self, decision: Decision[R]) -> None:
        records = decision.records
        values = await in_turns(_encoded(records))
        # From here on nothing waits: whoever asked may leave, but the image has to follow the log.
        step = max(1, len(records) if decision.atomic else RECORDS_PER_REQUEST_MAX)
        for start in range(0, len(records), step):
            self._append(records[start : start + step], values[start : start + step])

    def _append(self, records: list[VersionedRecord], values: list[bytes]) -> None:
        place = self._quorum.append(values)
        delta = MetadataDelta()
        for offset, (record, _) in enumerate(records, place.base_offset):
            self._view.image.apply(record, delta, offset)


def _encoded(records: list[VersionedRecord]) -> Steps[list[bytes]]:
    values: list[bytes] = []
    for start in range(0, len(records), STEP):
        if start:
            yield
        values += [
            encode_metadata_record(record, version) for record, version in records[start : start + STEP]
        ]
    return values
