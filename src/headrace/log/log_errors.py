"""What can go wrong in a log, by type: refusals carry Kafka's code, storage failures name file and place."""

from headrace.errors import ErrorCode, HeadraceError, KafkaError


class LogDirectoryOffline(KafkaError):
    """The medium below a log directory has failed; nothing in it is written or acknowledged any more."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


class CorruptLog(KafkaError):
    """Bytes on disk that are not what was written, with the file and the position they are at."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"{path} is corrupt at position {position}: {reason}")
        self.path = path
        self.position = position


class OffsetOutOfRange(KafkaError):
    """An offset before the log's start or beyond its end."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, message)


class UnexpectedAppendOffset(HeadraceError):
    """A replicated batch that lies before the log's end; the follower has to truncate first."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(message)
        self.first_offset = first_offset
        self.last_offset = last_offset


class OffsetsOutOfOrder(HeadraceError):
    """Replicated batches whose offsets do not grow."""


class StaleRange(HeadraceError):
    """A file range that was handed out before its bytes were truncated or unlinked; read again."""
