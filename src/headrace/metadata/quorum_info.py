"""The answer to DescribeQuorum, by the node that leads."""

from typing import Final

from headrace.errors import ErrorCode
from headrace.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from headrace.raft.quorum import Quorum
from headrace.raft.settings import METADATA_PARTITION

_UNKNOWN: Final = "This server does not host this topic-partition."


def describe_quorum(
    quorum: Quorum, request: DescribeQuorumRequest, now_ms: int, api_version: int = 2
) -> DescribeQuorumResponse:
    """Leader, epoch, high watermark and voters of the one partition there is."""
    asked = [
        (topic.topic_name, each.partition_index) for topic in request.topics for each in topic.partitions
    ]
    if len(request.topics) != 1 or asked != [METADATA_PARTITION]:
        return _unknown(request)
    partition = DescribeQuorumResponsePartitionData(
        partition_index=METADATA_PARTITION.partition,
        leader_id=quorum.node_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[
            ReplicaState(
                replica_id=voter.id,
                replica_directory_id=voter.directory_id,
                log_end_offset=quorum.next_offset,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
            for voter in quorum.voters
        ],
    )
    topic = DescribeQuorumResponseTopicData(topic_name=METADATA_PARTITION.topic, partitions=[partition])
    response = DescribeQuorumResponse(topics=[topic])
    if api_version >= 2:
        response.nodes = [
            Node(
                node_id=voter.id,
                listeners=[
                    Listener(name=name, host=address.host, port=address.port)
                    for name, address in voter.endpoints
                ],
            )
            for voter in quorum.voters
        ]
    return response


def _unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        topics=[
            DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    DescribeQuorumResponsePartitionData(
                        partition_index=each.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        error_message=_UNKNOWN,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
