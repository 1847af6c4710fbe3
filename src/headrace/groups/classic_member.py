"""A member of a classic group: what it told when it joined, and which of its requests wait."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Final, TypeAlias, TypeVar

from headrace.protocol.messages.describe_groups import DescribedGroupMember
from headrace.protocol.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from headrace.protocol.messages.sync_group import SyncGroupResponse

NO_ASSIGNMENT: Final = b""

JoinFuture: TypeAlias = "asyncio.Future[JoinGroupResponse]"
SyncFuture: TypeAlias = "asyncio.Future[SyncGroupResponse]"
T = TypeVar("T")


class ClassicMember:
    """One member. A static one has an instance id, and may come back under another member id."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Sequence[JoinGroupRequestProtocol],
        assignment: bytes = NO_ASSIGNMENT,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: JoinFuture | None = None
        self.awaiting_sync: SyncFuture | None = None
        self.is_new = False

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def needs_no_heartbeat(self) -> bool:
        """Whether a request of it waits here, which is as good as a heartbeat. One that is new may be gone
        all the same: its client gave up, and asked again under another id."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def metadata(self, protocol: str) -> bytes:
        """What the member says about itself in a protocol."""
        for each in self.protocols:
            if each.name == protocol:
                return each.metadata
        raise ValueError(f"member {self.member_id} does not support protocol {protocol}")

    def supports(self, protocol: str) -> bool:
        return any(each.name == protocol for each in self.protocols)

    def matches(self, protocols: Sequence[JoinGroupRequestProtocol]) -> bool:
        """Whether it says the same as before."""
        if len(protocols) != len(self.protocols):
            return False
        pairs = zip(protocols, self.protocols, strict=True)
        return all(a.name == b.name and a.metadata == b.metadata for a, b in pairs)

    def vote(self, candidates: Collection[str]) -> str:
        """The candidate that it likes best."""
        return next(each.name for each in self.protocols if each.name in candidates)

    def described(self, protocol: str | None) -> DescribedGroupMember:
        """The member as DescribeGroups tells it; its metadata only if the protocol is settled."""
        return DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol is None else self.metadata(protocol),
            member_assignment=self.assignment,
        )


def answer(future: "asyncio.Future[T] | None", reply: T) -> bool:
    """Answer a request that waits, unless its client is gone."""
    if future is None:
        return False
    if not future.done():
        future.set_result(reply)
    return True
