"""What the codec raises: one error for bad input, one for a message that cannot be written.

Both name the message, its version and the field, so that a log line is enough to find the culprit.
"""

from headrace.errors import HeadraceError


class ProtocolError(HeadraceError):
    """Bytes and messages do not fit each other."""


class BadVarint(ProtocolError, ValueError):
    """A varint that is too long or too large; the decoders turn it into a `MalformedMessage`."""


class MalformedMessage(ProtocolError):
    """Bytes that are not the message they claim to be; `position` counts from the start of the buffer."""

    def __init__(self, message_name: str, version: int, field: str, position: int, reason: str) -> None:
        super().__init__(f"{message_name} v{version}: {field or 'message'} at byte {position}: {reason}")
        self.message_name = message_name
        self.version = version
        self.field = field
        self.position = position
        self.reason = reason

    def __reduce__(self) -> tuple[type["MalformedMessage"], tuple[str, int, str, int, str]]:
        return type(self), (self.message_name, self.version, self.field, self.position, self.reason)


class UnencodableMessage(ProtocolError):
    """A message whose values cannot be written in the version asked for."""

    def __init__(self, message_name: str, version: int, field: str, reason: str) -> None:
        super().__init__(f"{message_name} v{version}: {field or 'message'}: {reason}")
        self.message_name = message_name
        self.version = version
        self.field = field
        self.reason = reason

    def __reduce__(self) -> tuple[type["UnencodableMessage"], tuple[str, int, str, str]]:
        return type(self), (self.message_name, self.version, self.field, self.reason)
