"""Members of groups on bare sockets: what a coordinator takes is measured, not what a client library does."""

import selectors
import time
from collections.abc import Iterable
from typing import TypeVar

from bench.node_brokers import Broker
from bench.node_wire import CLIENT_ID, Refused, WireClient
from headrace.errors import ErrorCode
from headrace.protocol.frame import decode_response, encode_request
from headrace.protocol.message import Message
from headrace.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from headrace.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from headrace.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from headrace.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from headrace.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

M = TypeVar("M", bound=Message)

COMMIT_VERSION = 8
JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION = 9, 5, 4
PROTOCOL = "range"
#: As much as a consumer of a few topics says about itself, and is told.
METADATA = bytes(100)
ASSIGNMENT = bytes(120)
_WAIT_S = 60.0


def await_coordinator(broker: Broker) -> None:
    """Have the groups' topic made, and wait until it is served."""
    deadline = time.perf_counter() + _WAIT_S
    asked = OffsetFetchRequest(
        group_id="awaiting", topics=[OffsetFetchRequestTopic(name="nothing", partition_indexes=[0])]
    )
    with WireClient(broker.host, broker.port) as client:
        while time.perf_counter() < deadline:
            found = client.call(FindCoordinatorRequest(key="awaiting"), FindCoordinatorResponse, 1)
            if not found.error_code and not client.call(asked, OffsetFetchResponse, 7).error_code:
                return
    raise Refused("the coordinator", ErrorCode.COORDINATOR_NOT_AVAILABLE)


def commit_frame(group: str, topic: str, partitions: int) -> bytes:
    """A whole request that commits an offset for each of some partitions."""
    request = OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=4711)
                    for index in range(partitions)
                ],
            )
        ],
    )
    return encode_request(request, COMMIT_VERSION, 1, CLIENT_ID)


def check_committed(frame: memoryview) -> None:
    """Refused unless a reply says that everything was committed."""
    for topic in decode_response(OffsetCommitResponse, COMMIT_VERSION, frame)[1].topics:
        for partition in topic.partitions:
            if partition.error_code:
                raise Refused("commit", partition.error_code)


class Member:
    """One member of a group, on a connection of its own."""

    def __init__(self, broker: Broker, group: str) -> None:
        self.client = WireClient(broker.host, broker.port)
        self.group = group
        self.member_id = ""
        self.generation = -1
        self.members: list[str] = []

    def close(self) -> None:
        self.client.socket.close()

    def send(self, request: Message, version: int) -> None:
        self.client.socket.sendall(encode_request(request, version, 1, CLIENT_ID))

    def receive(self, response: type[M], version: int) -> M:
        return decode_response(response, version, self.client.frame())[1]

    def send_join(self) -> None:
        protocols = [JoinGroupRequestProtocol(name=PROTOCOL, metadata=METADATA)]
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=protocols,
        )
        self.send(request, JOIN_VERSION)

    def on_joined(self) -> bool:
        """Take the reply over; false if the member was only told its id."""
        reply = self.receive(JoinGroupResponse, JOIN_VERSION)
        if reply.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = reply.member_id
            return False
        if reply.error_code:
            raise Refused("join", reply.error_code)
        self.generation = reply.generation_id
        self.members = [member.member_id for member in reply.members]
        return True

    def send_sync(self) -> None:
        assignments = [
            SyncGroupRequestAssignment(member_id=member, assignment=ASSIGNMENT) for member in self.members
        ]
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name=PROTOCOL,
            assignments=assignments,
        )
        self.send(request, SYNC_VERSION)

    def on_synced(self) -> None:
        reply = self.receive(SyncGroupResponse, SYNC_VERSION)
        if reply.error_code:
            raise Refused("sync", reply.error_code)

    def heartbeat(self) -> int:
        request = HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member_id
        )
        self.send(request, HEARTBEAT_VERSION)
        return self.receive(HeartbeatResponse, HEARTBEAT_VERSION).error_code


def settle(members: list[Member]) -> None:
    """Have all join, and one assign; returns when everybody knows its part."""
    for member in members:
        member.send_join()
    for member in _as_they_answer(members):
        if not member.on_joined():
            member.send_join()
            member.on_joined()
    for member in members:
        member.send_sync()
    for member in _as_they_answer(members):
        member.on_synced()


def know_each_other(members: list[Member]) -> None:
    """Have members told their ids one after the other, without joining."""
    for member in members:
        member.send_join()
        if member.on_joined():
            raise Refused("join", ErrorCode.UNKNOWN_SERVER_ERROR)


def _as_they_answer(members: Iterable[Member]) -> Iterable[Member]:
    """Members in the order in which their replies arrive."""
    with selectors.DefaultSelector() as selector:
        for member in members:
            selector.register(member.client.socket, selectors.EVENT_READ, member)
        while selector.get_map():
            for key, _ in selector.select(_WAIT_S):
                selector.unregister(key.fileobj)
                yield key.data
