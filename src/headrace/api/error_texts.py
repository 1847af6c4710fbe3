"""What Kafka says about an error code where nothing more is known: texts that clients show as they are."""

from typing import Final

from headrace.errors import ErrorCode, KafkaError

_TEXTS: Final = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "The server experienced an unexpected error when processing the request.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.REQUEST_TIMED_OUT: "The request timed out.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.UNSUPPORTED_VERSION: "The version of API is not supported.",
    ErrorCode.NOT_CONTROLLER: "This is not the correct controller for this cluster.",
    ErrorCode.INVALID_REQUEST: (
        "This most likely occurs because of a request being malformed by the client library or the message"
        " was sent to an incompatible broker. See the broker logs for more details."
    ),
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
}


def default_text(code: ErrorCode) -> str:
    """The text of a code."""
    return _TEXTS.get(code, code.name)


def told_text(error: KafkaError) -> str:
    """What a refusal says, or else the text of its code."""
    return error.message or default_text(error.code)
