"""The refusal of a configuration value, in the words that Kafka's clients and tools know."""

from headrace.config.values import ConfigValue, shown_in_error
from headrace.errors import ErrorCode, KafkaError


class InvalidConfig(KafkaError):
    """A configuration that cannot be used: which key, which value (never a secret), and why."""

    def __init__(self, message: str, *, key: str | None = None, value: str | None = None) -> None:
        super().__init__(ErrorCode.INVALID_CONFIG, message)
        self.key = key
        self.value = value


def invalid_value(key: str, value: ConfigValue, reason: str) -> InvalidConfig:
    """The refusal of one key's value."""
    shown = shown_in_error(value)
    return InvalidConfig(f"Invalid value {shown} for configuration {key}: {reason}", key=key, value=shown)


def invalid_key(key: str, message: str) -> InvalidConfig:
    """A refusal that concerns one key, in words of its own."""
    return InvalidConfig(message, key=key)


def invalid_request(message: str) -> KafkaError:
    """The refusal of a request that makes no sense, whatever the configuration is."""
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
