"""Brokers that register, are fenced and unfenced, shut down and leave, and what that means for partitions."""

from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.control_view import ControlView
from headrace.metadata.decision import Decision
from headrace.metadata.ids import encode_id, is_reserved_directory
from headrace.metadata.partition_changes import (
    BrokerChange,
    partition_change_records,
    with_broker_in_elr,
    with_broker_in_isr,
    without_leader,
)
from headrace.metadata.registrations import BrokerState, FeatureRange
from headrace.metadata.snapshot import VersionedRecord
from headrace.metadata.versions import METADATA_VERSION
from headrace.protocol.disk_records.cluster_metadata import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
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
from headrace.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

_FENCE, _UNFENCE = 1, -1


def check_broker_epoch(view: ControlView, broker_id: int, epoch: int) -> BrokerState:
    """The registration of a broker; STALE_BROKER_EPOCH if it is not the one that asks."""
    broker = view.image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}"
        )
    if broker.epoch != epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}",
        )
    return broker


def register_broker(
    view: ControlView, request: BrokerRegistrationRequest, next_offset: int
) -> Decision[BrokerRegistrationResponse]:
    """Take a broker in, or a new incarnation of it.

    The broker of this very node need not wait for the session of its former incarnation: that one is dead,
    since this process has its lock. If it did not stop cleanly, its replicas may lack records that were only
    in the operating system's cache, and are not eligible to lead by themselves any more."""
    _check_registration(view, request)
    existing = view.image.brokers.get(request.broker_id)
    version = view.image.metadata_version
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        rack=request.rack,
        end_points=[
            BrokerEndpoint(
                name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
            )
            for each in request.listeners
        ],
        features=_features(view, request),
        log_dirs=list(request.log_dirs) if version.has_directories else [],
    )
    records: list[VersionedRecord] = []
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
        record.broker_epoch = existing.epoch
    else:
        stopped_cleanly = existing is not None and existing.epoch == request.previous_broker_epoch
        records += _shutdown_records(view, request.broker_id, stopped_cleanly)
        record.broker_epoch = next_offset
    records.append((record, version.register_broker_record))
    # Should a crash split these over two lives, the broker registers again: its record comes last.
    return Decision(BrokerRegistrationResponse(broker_epoch=record.broker_epoch), records, atomic=False)


def _check_registration(view: ControlView, request: BrokerRegistrationRequest) -> None:
    image = view.image
    if request.cluster_id != view.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {view.cluster_id}, but got cluster ID {request.cluster_id}",
        )
    existing = image.brokers.get(request.broker_id)
    is_other_node = request.broker_id != view.node_id
    has_session = existing is not None and is_other_node and not existing.fenced
    if existing is not None and has_session and existing.incarnation_id != request.incarnation_id:
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently restarted this "
            "should self-resolve once the heartbeat manager expires the broker's session.",
        )
    if request.is_migrating_zk_broker:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, "Controller does not support registering ZK brokers."
        )
    if image.metadata_version.has_directories:
        _check_directories(view, request)


def _check_directories(view: ControlView, request: BrokerRegistrationRequest) -> None:
    if not request.log_dirs:
        raise _invalid("No directories specified in request")
    if any(map(is_reserved_directory, request.log_dirs)):
        raise _invalid("Reserved directory ID in request")
    if len(set(request.log_dirs)) != len(request.log_dirs):
        raise _invalid("Duplicate directory ID in request")
    for other in view.image.brokers.values():
        for directory in request.log_dirs:
            if other.id != request.broker_id and directory in other.log_dirs:
                shown = encode_id(directory)
                raise _invalid(f"Broker {other.id} is already registered with directory {shown}")


def _features(view: ControlView, request: BrokerRegistrationRequest) -> list[BrokerFeature]:
    finalized = view.image.features
    given = {
        each.name: FeatureRange(each.min_supported_version, each.max_supported_version)
        for each in request.features
    }
    if METADATA_VERSION not in given:
        raise _invalid(f"Request features do not contain '{METADATA_VERSION}'")
    for name in dict.fromkeys((*given, *finalized)):
        level, levels = finalized.get(name, 0), given.get(name, FeatureRange(0, 0))
        if level not in levels:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {level} of "
                f"{name}. The broker wants a version between {levels.minimum} and {levels.maximum}, "
                "inclusive.",
            )
    return [
        BrokerFeature(name=name, min_supported_version=each.minimum, max_supported_version=each.maximum)
        for name, each in given.items()
    ]


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REGISTRATION, message)


def _shutdown_records(view: ControlView, broker_id: int, stopped_cleanly: bool) -> list[VersionedRecord]:
    """A broker that registers anew has been down; its partitions may not know yet."""
    in_isr = list(with_broker_in_isr(view, broker_id))
    if not view.image.elr_enabled or stopped_cleanly:
        return partition_change_records(view, BrokerChange(removed=broker_id), in_isr)
    change = BrokerChange(unclean=broker_id)
    records = partition_change_records(view, change, in_isr)
    return records + partition_change_records(view, change, with_broker_in_elr(view, broker_id))


def heartbeat(view: ControlView, request: BrokerHeartbeatRequest) -> Decision[BrokerHeartbeatResponse]:
    """Let a broker go on to the state it asks for: unfenced, in controlled shutdown, or down."""
    broker = check_broker_epoch(view, request.broker_id, request.broker_epoch)
    caught_up = request.current_metadata_offset >= view.image.registration_offsets.get(broker.id, -1)
    fenced, shutting_down, may_stop = broker.fenced, broker.in_controlled_shutdown, False
    records: list[VersionedRecord] = []
    if broker.fenced:
        if request.want_shut_down:
            may_stop = True
        elif not request.want_fence and caught_up:
            fenced = False
            records += _unfence_records(view, broker)
    elif shutting_down or request.want_shut_down:
        if not request.want_fence and _leads_anything(view, broker.id):
            if not shutting_down:
                records += _controlled_shutdown_records(view, broker)
            shutting_down = True
        else:
            fenced = may_stop = True
            records += _fence_records(view, broker)
    elif request.want_fence:
        fenced = True
        records += _fence_records(view, broker)
    records += _directory_records(view, broker, request)
    reply = BrokerHeartbeatResponse(is_caught_up=caught_up, is_fenced=fenced, should_shut_down=may_stop)
    return Decision(reply, records, atomic=False)


def _leads_anything(view: ControlView, broker_id: int) -> bool:
    return any(partition.leader == broker_id for _, partition in view.partitions())


def _unfence_records(view: ControlView, broker: BrokerState) -> list[VersionedRecord]:
    changes = partition_change_records(view, BrokerChange(added=broker.id), without_leader(view))
    return [(_change(broker, fenced=_UNFENCE), 0), *changes]


def _fence_records(view: ControlView, broker: BrokerState) -> list[VersionedRecord]:
    in_isr = with_broker_in_isr(view, broker.id)
    changes = partition_change_records(view, BrokerChange(removed=broker.id), in_isr)
    return [*changes, (_change(broker, fenced=_FENCE), 0)]


def _controlled_shutdown_records(view: ControlView, broker: BrokerState) -> list[VersionedRecord]:
    in_isr = with_broker_in_isr(view, broker.id)
    changes = partition_change_records(view, BrokerChange(removed=broker.id), in_isr)
    return [(_change(broker, in_controlled_shutdown=1), 1), *changes]


def _directory_records(
    view: ControlView, broker: BrokerState, request: BrokerHeartbeatRequest
) -> list[VersionedRecord]:
    version = view.image.metadata_version
    records: list[VersionedRecord] = []
    offline = [each for each in broker.log_dirs if each in request.offline_log_dirs]
    if version.has_directories and offline:
        hit = (each for each in view.partitions() if each[1].directory_of(broker.id) in offline)
        records += partition_change_records(view, BrokerChange(removed=broker.id), hit)
        online = [each for each in broker.log_dirs if each not in offline]
        records.append((_change(broker, log_dirs=online), 2))
    cordoned = request.cordoned_log_dirs
    if version.has_cordoned_log_dirs and cordoned is not None:
        known = broker.cordoned_log_dirs
        if known is None or set(known) != set(cordoned):
            records.append((_change(broker, cordoned_log_dirs=list(cordoned)), 3))
    return records


def _change(broker: BrokerState, **fields: object) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, **fields)  # type: ignore[arg-type]


def unregister_broker(
    view: ControlView, request: UnregisterBrokerRequest
) -> Decision[UnregisterBrokerResponse]:
    """Forget a broker and take it out of every partition."""
    broker = view.image.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"Broker ID {request.broker_id} is not currently registered",
        )
    change = BrokerChange(removed=broker.id)
    records = partition_change_records(view, change, with_broker_in_isr(view, broker.id))
    records += partition_change_records(view, change, with_broker_in_elr(view, broker.id))
    records.append((UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch), 0))
    return Decision(UnregisterBrokerResponse(), records, atomic=False)


def register_controller(
    view: ControlView, request: ControllerRegistrationRequest
) -> Decision[ControllerRegistrationResponse]:
    """Note where a controller is reached and what it supports."""
    if not view.image.metadata_version.has_controller_registration:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            ControllerEndpoint(
                name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
            )
            for each in request.listeners
        ],
        features=[
            ControllerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
    )
    return Decision(ControllerRegistrationResponse(error_message=None), [(record, 0)])
