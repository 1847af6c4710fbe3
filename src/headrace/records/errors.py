"""What can be wrong with a batch or its records, each with the code a client is told."""

from headrace.errors import ErrorCode, KafkaError


class CorruptBatch(KafkaError):
    """A batch whose header or checksum cannot be right."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


class MalformedRecords(KafkaError):
    """A batch with a sound header whose records do not parse."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)


class UndecompressableRecords(KafkaError):
    """A payload that its codec refuses; Kafka has no code of its own for this."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)


class DecompressedTooLarge(KafkaError):
    """A payload that would inflate beyond what the reader is willing to hold in memory."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            ErrorCode.MESSAGE_TOO_LARGE, f"Decompressed records exceed the limit of {limit} bytes"
        )
