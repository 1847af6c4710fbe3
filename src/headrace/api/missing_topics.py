"""What there is to say about a topic that does not exist."""

from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.topic_names import check_topic_name


def is_topic_name(name: str) -> bool:
    """Whether a topic can have the name."""
    try:
        check_topic_name(name)
    except KafkaError:
        return False
    return True


def missing_topic_error(name: str) -> ErrorCode:
    """Why a topic is not there: nobody created it, or nobody can."""
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_topic_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
