"""What a client is told of a failure to write to an internal topic: it knows coordinators, not partitions."""

from typing import Final

from headrace.errors import ErrorCode, KafkaError

_TOLD_AS: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.UNKNOWN_SERVER_ERROR: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def told(error: BaseException) -> KafkaError:
    """A failure as the client of a group coordinator is told."""
    if not isinstance(error, KafkaError):
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    code = _TOLD_AS.get(error.code)
    return error if code is None else KafkaError(code)


def not_coordinator() -> KafkaError:
    """This node does not have the state that was asked for."""
    return KafkaError(ErrorCode.NOT_COORDINATOR)


def loading() -> KafkaError:
    """This node has the state soon."""
    return KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
