"""Where a broker says its replicas lie: it alone knows which of its log directories it has chosen."""

from uuid import UUID

from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.brokers import check_broker_epoch
from headrace.metadata.control_view import ControlView
from headrace.metadata.decision import Decision
from headrace.metadata.delta import PartitionId
from headrace.metadata.partition_changes import BrokerChange, partition_change_records
from headrace.metadata.partitions import PartitionState
from headrace.metadata.snapshot import VersionedRecord
from headrace.protocol.disk_records.cluster_metadata import PartitionChangeRecord
from headrace.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)


def assign_replicas_to_dirs(
    view: ControlView, request: AssignReplicasToDirsRequest
) -> Decision[AssignReplicasToDirsResponse]:
    """Note the directories of a broker's replicas; those in a directory that has failed are led by others."""
    version = view.image.metadata_version
    if not version.has_directories:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    broker = check_broker_epoch(view, request.broker_id, request.broker_epoch)
    records: list[VersionedRecord] = []
    lost: list[tuple[PartitionId, PartitionState]] = []
    response = AssignReplicasToDirsResponse()
    for directory in request.directories:
        told = AssignReplicasToDirsResponseDirectoryData(id=directory.id)
        for topic in directory.topics:
            results = AssignReplicasToDirsResponseTopicData(topic_id=topic.topic_id)
            for each in topic.partitions:
                found = PartitionId(topic.topic_id, each.partition_index)
                code = _refusal(view, found, broker.id)
                if code is ErrorCode.NONE:
                    state = view.image.topics_by_id[found.topic_id].partitions[each.partition_index]
                    if state.directory_of(broker.id) != directory.id:
                        record = _change(found, state, broker.id, directory.id)
                        records.append((record, version.partition_record))
                    if not broker.has_online(directory.id):
                        lost.append((found, state))
                results.partitions.append(
                    AssignReplicasToDirsResponsePartitionData(
                        partition_index=each.partition_index, error_code=code
                    )
                )
            told.topics.append(results)
        response.directories.append(told)
    records += partition_change_records(view, BrokerChange(removed=broker.id), lost)
    return Decision(response, records, atomic=False)


def _refusal(view: ControlView, partition: PartitionId, broker_id: int) -> ErrorCode:
    topic = view.image.topics_by_id.get(partition.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    state = topic.partitions.get(partition.partition)
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker_id in state.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _change(
    partition: PartitionId, state: PartitionState, broker_id: int, directory_id: UUID
) -> PartitionChangeRecord:
    directories = list(state.directories)
    directories[state.replicas.index(broker_id)] = directory_id
    return PartitionChangeRecord(
        partition_id=partition.partition, topic_id=partition.topic_id, directories=directories
    )
