"""Members of consumer groups on bare sockets, who do at once what they are told."""

import selectors
from uuid import UUID

from bench.node_brokers import Broker
from bench.node_wire import CLIENT_ID, Refused, WireClient
from headrace.protocol.frame import decode_response, encode_request
from headrace.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

VERSION = 1
_REBALANCE_MS = 60_000
_WAIT_S = 60.0


class ConsumerMember:
    """One member, on a connection of its own."""

    def __init__(self, broker: Broker, group: str, topic: str, name: str) -> None:
        self.client = WireClient(broker.host, broker.port)
        self.group = group
        self.topic = topic
        self.member_id = name
        self.epoch = 0
        self.owned: dict[UUID, list[int]] = {}

    @property
    def partitions(self) -> int:
        """How many it has."""
        return sum(map(len, self.owned.values()))

    def close(self) -> None:
        self.client.socket.close()

    def send(self) -> None:
        """A heartbeat; the first one joins."""
        joins = self.epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=_REBALANCE_MS if joins else -1,
            subscribed_topic_names=[self.topic] if joins else None,
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in self.owned.items()
            ],
        )
        self.client.socket.sendall(encode_request(request, VERSION, 1, CLIENT_ID))

    def receive(self) -> None:
        """Take over what the reply says."""
        reply = decode_response(ConsumerGroupHeartbeatResponse, VERSION, self.client.frame())[1]
        if reply.error_code:
            raise Refused(f"heartbeat of {self.member_id}", reply.error_code)
        self.epoch = reply.member_epoch
        if reply.assignment is not None:
            self.owned = {each.topic_id: each.partitions for each in reply.assignment.topic_partitions}


def settle(members: list[ConsumerMember], partitions: int) -> None:
    """Have all send heartbeats until they are at one epoch and have all partitions among them."""
    share = partitions // len(members)
    while True:
        for member in members:
            member.send()
        with selectors.DefaultSelector() as selector:
            for member in members:
                selector.register(member.client.socket, selectors.EVENT_READ, member)
            while selector.get_map():
                for key, _ in selector.select(_WAIT_S):
                    selector.unregister(key.fileobj)
                    key.data.receive()
        has_all = sum(member.partitions for member in members) == partitions
        is_fair = all(share <= member.partitions <= share + 1 for member in members)
        if has_all and is_fair and len({member.epoch for member in members}) == 1:
            return
