"""A client's end of the dispatch, without sockets: a connection that keeps what it is given."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from headrace.api.dispatch import Dispatch
from headrace.api.services import Api, Services
from headrace.protocol.fields import RecordData
from headrace.protocol.frame import decode_response, encode_request
from headrace.protocol.message import Message

R = TypeVar("R", bound=Message)

SIZE_BYTES = 4


class FakeSlot:
    """The place of one reply."""

    def __init__(self, connection: "FakeConnection") -> None:
        self.connection = connection
        self.frame: bytes | None = None
        self.is_discarded = False
        self.on_close: Callable[[], object] | None = None

    @property
    def is_answered(self) -> bool:
        return self.frame is not None or self.is_discarded

    def complete(self, parts: Sequence[RecordData]) -> None:
        assert not self.is_answered
        self.frame = b"".join(bytes(cast(Any, part)) for part in parts)

    def discard(self) -> None:
        assert not self.is_answered
        self.is_discarded = True


class FakeConnection:
    """A client that came in on a listener."""

    def __init__(self, listener: str = "PLAINTEXT") -> None:
        self.listener_name = listener
        self.peer = "/192.0.2.7"
        self.client_id: str | None = None
        self.software_name = self.software_version = "unknown"
        self.close_reason: str | None = None
        self.slots: list[FakeSlot] = []

    def __str__(self) -> str:
        return f"192.0.2.7:4711 on {self.listener_name}"

    def reserve(self) -> FakeSlot:
        self.slots.append(FakeSlot(self))
        return self.slots[-1]

    def close(self, reason: str, level: int = 0) -> None:
        self.close_reason = reason
        for slot in self.slots:
            if slot.on_close is not None and not slot.is_answered:
                slot.on_close()

    close_when_sent = close


class Client:
    """Sends requests to a dispatch and reads its replies."""

    def __init__(self, services: Services | None, apis: Iterable[Api], listener: str = "PLAINTEXT") -> None:
        self.connection = FakeConnection(listener)
        self.dispatch = Dispatch(cast(Services, services), apis, time.perf_counter_ns)

    def send(
        self,
        request: Message,
        version: int,
        correlation_id: int = 1,
        client_id: str | None = "tester",
        trailing: bytes = b"",
    ) -> None:
        """One request; `trailing` bytes follow it within its frame."""
        frame = encode_request(request, version, correlation_id, client_id)[SIZE_BYTES:]
        self.send_frame(frame + trailing)

    def send_frame(self, frame: bytes) -> None:
        """Any bytes as one frame; they are overwritten afterwards, as a receive buffer's are."""
        buffer = bytearray(frame)
        self.dispatch.on_frame(cast(Any, self.connection), memoryview(buffer))
        buffer[:] = b"\xff" * len(buffer)

    def reply(self, kind: type[R], version: int, index: int = -1) -> tuple[int, R]:
        """A reply's correlation id and message."""
        frame = self.connection.slots[index].frame
        assert frame is not None, "not answered"
        assert int.from_bytes(frame[:SIZE_BYTES], "big") == len(frame) - SIZE_BYTES
        return decode_response(kind, version, frame[SIZE_BYTES:])
