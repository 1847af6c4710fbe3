"""The error codes in a reply, wherever they are in it."""

from collections.abc import Iterator

from headrace.protocol.message import Message


def error_codes(reply: Message) -> Iterator[int]:
    """Every code other than 0, the outermost first."""
    code = getattr(reply, "error_code", 0)
    if code:
        yield code
    for name in reply.FIELD_NAMES:
        value = getattr(reply, name)
        if isinstance(value, list):
            for item in value:
                if isinstance(item, Message):
                    yield from error_codes(item)
        elif isinstance(value, Message):
            yield from error_codes(value)


def has_code(reply: Message, *codes: int) -> bool:
    """Whether any of the codes is in the reply."""
    return any(code in codes for code in error_codes(reply))
