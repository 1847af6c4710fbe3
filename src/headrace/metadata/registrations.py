"""Brokers and controllers as they have registered."""

from typing import NamedTuple
from uuid import UUID

from headrace.metadata.ids import is_directory_online
from headrace.metadata.versions import MetadataVersion
from headrace.protocol.disk_records.cluster_metadata import (
    BrokerEndpoint,
    BrokerFeature,
    ControllerEndpoint,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)


class EndpointState(NamedTuple):
    """Where a listener of a node is reached."""

    name: str
    host: str
    port: int
    security_protocol: int


class FeatureRange(NamedTuple):
    """The levels of a feature that a node supports."""

    minimum: int
    maximum: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.minimum <= level <= self.maximum

    def __str__(self) -> str:
        return str(self.minimum) if self.minimum == self.maximum else f"{self.minimum}-{self.maximum}"


class BrokerState(NamedTuple):
    """One registered broker. `epoch` tells incarnations apart and grows with each.

    `cordoned_log_dirs` is None until the broker has told."""

    id: int
    epoch: int
    incarnation_id: UUID
    endpoints: dict[str, EndpointState]
    features: dict[str, FeatureRange]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    is_migrating_zk_broker: bool
    log_dirs: tuple[UUID, ...]
    cordoned_log_dirs: tuple[UUID, ...] | None

    @property
    def is_active(self) -> bool:
        """Whether it may lead partitions and be in sync."""
        return not (self.fenced or self.in_controlled_shutdown)

    @property
    def takes_partitions(self) -> bool:
        """Whether at least one of its directories is open for new partitions."""
        if not self.log_dirs or self.cordoned_log_dirs is None:
            return True
        return not set(self.log_dirs) <= set(self.cordoned_log_dirs)

    def has_online(self, directory_id: UUID) -> bool:
        """Whether a directory of this broker can be used."""
        return is_directory_online(directory_id, self.log_dirs)

    def record(self, version: MetadataVersion) -> RegisterBrokerRecord:
        """The record that says the same, without what this version cannot say."""
        return RegisterBrokerRecord(
            broker_id=self.id,
            is_migrating_zk_broker=self.is_migrating_zk_broker and version.register_broker_record >= 2,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[BrokerEndpoint(**each._asdict()) for each in self.endpoints.values()],
            features=[
                BrokerFeature(
                    name=name, min_supported_version=each.minimum, max_supported_version=each.maximum
                )
                for name, each in self.features.items()
            ],
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.log_dirs) if version.has_directories else [],
            cordoned_log_dirs=(
                None
                if self.cordoned_log_dirs is None or not version.has_cordoned_log_dirs
                else list(self.cordoned_log_dirs)
            ),
        )


def broker_of_record(record: RegisterBrokerRecord) -> BrokerState:
    """The broker that a registration describes."""
    return BrokerState(
        record.broker_id,
        record.broker_epoch,
        record.incarnation_id,
        {each.name: _endpoint(each) for each in record.end_points},
        {each.name: _range(each) for each in record.features},
        record.rack,
        record.fenced,
        record.in_controlled_shutdown,
        record.is_migrating_zk_broker,
        tuple(record.log_dirs),
        None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
    )


class ControllerState(NamedTuple):
    """One registered controller."""

    id: int
    incarnation_id: UUID
    zk_migration_ready: bool
    endpoints: dict[str, EndpointState]
    features: dict[str, FeatureRange]

    def record(self) -> RegisterControllerRecord:
        """The record that says the same."""
        return RegisterControllerRecord(
            controller_id=self.id,
            incarnation_id=self.incarnation_id,
            zk_migration_ready=self.zk_migration_ready,
            end_points=[ControllerEndpoint(**each._asdict()) for each in self.endpoints.values()],
            features=[
                ControllerFeature(
                    name=name, min_supported_version=each.minimum, max_supported_version=each.maximum
                )
                for name, each in self.features.items()
            ],
        )


def controller_of_record(record: RegisterControllerRecord) -> ControllerState:
    """The controller that a registration describes."""
    return ControllerState(
        record.controller_id,
        record.incarnation_id,
        record.zk_migration_ready,
        {each.name: _endpoint(each) for each in record.end_points},
        {each.name: _range(each) for each in record.features},
    )


def _endpoint(endpoint: BrokerEndpoint | ControllerEndpoint) -> EndpointState:
    return EndpointState(endpoint.name, endpoint.host, endpoint.port, endpoint.security_protocol)


def _range(feature: BrokerFeature | ControllerFeature) -> FeatureRange:
    return FeatureRange(feature.min_supported_version, feature.max_supported_version)
