"""Changing the levels of features, metadata.version among them."""

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from headrace.config.alteration import ResourceType
from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.configs import MIN_ISR
from headrace.metadata.control_view import ControlView
from headrace.metadata.decision import Decision
from headrace.metadata.registrations import FeatureRange
from headrace.metadata.snapshot import VersionedRecord
from headrace.metadata.versions import (
    ELR_VERSION,
    KRAFT_VERSION,
    LATEST_KNOWN_LEVEL,
    METADATA_VERSION,
    MINIMUM,
    UnknownVersion,
    check_dependencies,
    metadata_changes_between,
    metadata_version,
    supported_features,
)
from headrace.protocol.disk_records.cluster_metadata import ConfigRecord, FeatureLevelRecord, NoOpRecord
from headrace.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_UNSUPPORTED: Final = FeatureRange(0, 0)
_FAILED: Final = "The update failed for all features since the following feature had an error: "


class UpgradeType(IntEnum):
    """In which direction a level may move, by its code on the wire."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class KRaftVersion:
    """Access to kraft.version, which the quorum keeps itself."""

    __slots__ = ("level", "upgrade")

    def __init__(self, level: int, upgrade: Callable[[int, bool], None]) -> None:
        self.level = level
        self.upgrade = upgrade


def update_features(
    view: ControlView, kraft_version: KRaftVersion, request: UpdateFeaturesRequest, api_version: int = 2
) -> Decision[UpdateFeaturesResponse]:
    """Decide on all updates of a request together: one that cannot be made stops the others."""
    updates = {each.feature: each.max_version_level for each in request.feature_updates}
    directions = {each.feature: _direction(each.upgrade_type) for each in request.feature_updates}
    proposed = {**view.image.features, **updates}
    records: list[VersionedRecord] = []
    try:
        for name, level in updates.items():
            _check_step(view, kraft_version.level, name, level, directions[name])
            records += _update(
                view, kraft_version, name, level, directions[name], proposed, request.validate_only
            )
    except KafkaError as problem:
        reply = UpdateFeaturesResponse(error_code=problem.code, error_message=_FAILED + problem.message)
        return Decision(reply)
    if updates.get(ELR_VERSION, 0) > 0:
        records = elr_safety_records(view) + records
    reply = UpdateFeaturesResponse(error_message=None)
    if api_version <= 1:
        reply.results = [
            UpdatableFeatureResult(feature=each.feature, error_message="NONE")
            for each in request.feature_updates
        ]
    return Decision(reply, [] if request.validate_only else records)


def _direction(code: int) -> UpgradeType:
    return UpgradeType(code) if 1 <= code <= UpgradeType.UNSAFE_DOWNGRADE else UpgradeType.UNKNOWN


def _check_step(view: ControlView, kraft_level: int, name: str, level: int, direction: UpgradeType) -> None:
    current = kraft_level if name == KRAFT_VERSION else view.image.feature_level(name)
    if direction is UpgradeType.UNKNOWN:
        raise _invalid(name, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(name, level, "A feature version cannot be less than 0.")
    reason = reason_not_supported(view, name, level)
    if reason is not None:
        raise _invalid(name, level, reason)
    if level < current and direction is UpgradeType.UPGRADE:
        raise _invalid(
            name,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade.",
        )
    if level > current and direction is not UpgradeType.UPGRADE:
        raise _invalid(name, level, "Can't downgrade to a newer version.")


def _update(
    view: ControlView,
    kraft_version: KRaftVersion,
    name: str,
    level: int,
    direction: UpgradeType,
    proposed: dict[str, int],
    validate_only: bool,
) -> list[VersionedRecord]:
    if name == METADATA_VERSION:
        return _update_metadata_version(view, level, direction)
    if name == KRAFT_VERSION:
        if direction is UpgradeType.UPGRADE:
            kraft_version.upgrade(level, validate_only)
            # The reply waits for this record, since the quorum's own are not the controller's.
            return [(NoOpRecord(), 0)]
        if level != kraft_version.level:
            raise _invalid(name, level, "Can't downgrade the version of this feature.")
        return []
    try:
        check_dependencies(name, level, proposed)
    except UnknownVersion as problem:
        raise _invalid(name, level, str(problem)) from None
    return [(FeatureLevelRecord(name=name, feature_level=level), 0)]


def _update_metadata_version(view: ControlView, level: int, direction: UpgradeType) -> list[VersionedRecord]:
    current = view.image.metadata_version
    try:
        new = metadata_version(level)
    except UnknownVersion:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid metadata.version {level}. Valid versions are from {MINIMUM:d} to {LATEST_KNOWN_LEVEL}.",
        ) from None
    if new < current and metadata_changes_between(new, current):
        if direction is UpgradeType.UNSAFE_DOWNGRADE:
            reason = "Unsafe metadata downgrade is not supported in this version."
        else:
            reason = (
                "Refusing to perform the requested downgrade because it might delete metadata information."
            )
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Unsupported metadata.version downgrade from {current:d} to {new:d}. {reason}",
        )
    return [(FeatureLevelRecord(name=METADATA_VERSION, feature_level=level), 0)]


def reason_not_supported(view: ControlView, name: str, level: int) -> str | None:
    """Why some node of the cluster could not run with this level; None if all could."""
    own = FeatureRange(*supported_features().get(name, _UNSUPPORTED))
    nodes = [(f"Local controller {view.node_id}", own)]
    image = view.image
    nodes += [(f"Broker {each.id}", each.features.get(name, _UNSUPPORTED)) for each in image.brokers.values()]
    if image.metadata_version.has_controller_registration:
        nodes += [
            (f"Controller {each.id}", each.features.get(name, _UNSUPPORTED))
            for each in image.controllers.values()
            if each.id != view.node_id
        ]
    for node, levels in nodes:
        if level not in levels:
            if levels.maximum == 0:
                return f"{node} does not support this feature."
            return f"{node} only supports versions {levels}"
    return None


def elr_safety_records(view: ControlView) -> list[VersionedRecord]:
    """Eligible leaders need one `min.insync.replicas` for the cluster and none for single brokers."""
    image = view.image
    records: list[VersionedRecord] = []
    if MIN_ISR not in image.broker_config(None):
        static = view.config.integer(MIN_ISR)
        records.append((_min_isr_record("", str(static)), 0))
    for resource, texts in image.configs.items():
        if resource.type == ResourceType.BROKER and resource.name and MIN_ISR in texts:
            records.append((_min_isr_record(resource.name, None), 0))
    return records


def _min_isr_record(broker: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.BROKER, resource_name=broker, name=MIN_ISR, value=value)


def _invalid(name: str, level: int, message: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {message}"
    )
