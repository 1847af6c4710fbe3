"""Consumer groups through random lives: no partition ever has two owners, every group settles, and what a
dead member had is handed on."""

from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support_consumer_groups import (
    HEARTBEAT_MS,
    SESSION_MS,
    Client,
    ConsumerContext,
    consumer_groups,
)
from tests.support_log import on_loop

CLIENTS: Final = 4
WISHES: Final = (("a",), ("a", "b"), ("b",), ())

Act = tuple[Any, ...]


class Lives:
    """Clients that are in and out of a group. Some are static; all that live send heartbeats in time."""

    def __init__(self, context: ConsumerContext) -> None:
        self.context = context
        self.clients = [
            Client(context, f"m{number}", "a", "b", instance=f"i{number}" if number % 2 else None)
            for number in range(CLIENTS)
        ]
        self.living: set[int] = set()
        self.names = 0

    def join(self, number: int) -> None:
        if number not in self.living:
            client = self.clients[number]
            self.names += 1
            known = self.is_member(client)
            if client.instance is not None and known:
                # Only one that has said goodbye gets its place again before its session has ended.
                return
            client.member_id = f"m{number}-{self.names}"
            self.living.add(number)
            client.join()

    def leave(self, number: int, epoch: int) -> None:
        if number in self.living:
            client = self.clients[number]
            self.living.discard(number)
            if client.epoch:
                client.leave(epoch if client.instance is not None else -1)

    def die(self, number: int) -> None:
        self.living.discard(number)

    def beat(self, number: int) -> None:
        if number in self.living:
            self.clients[number].beat()

    def lose_reply(self, number: int) -> None:
        if number in self.living:
            self.clients[number].lose_reply()

    def hold_on(self, number: int, holds_on: int) -> None:
        self.clients[number].holds_on = bool(holds_on)

    def subscribe(self, number: int, wish: int) -> None:
        client = self.clients[number]
        client.topics = list(WISHES[wish])
        if number in self.living and client.epoch:
            client.subscribe(*WISHES[wish])

    def pass_time(self, beats: int) -> None:
        for _ in range(beats):
            self.context.pass_time(HEARTBEAT_MS)
            for number in sorted(self.living):
                self.clients[number].beat()
                self.check()

    def grow(self, topic: int) -> None:
        self.context.add_partition("ab"[topic])

    def is_member(self, client: Client) -> bool:
        members = self.context.groups.shard.groups.find("group")
        return members is not None and client.member_id in self.context.group.members

    def check(self) -> None:
        """What somebody has, nobody else has: also what a dead member had, until it is taken out."""
        owners: dict[tuple[str, int], str] = {}
        for client in self.clients:
            if not self.is_member(client):
                continue
            for partition in client.partitions:
                other = owners.setdefault(partition, client.member_id)
                assert other == client.member_id, f"{partition} is both {other}'s and {client.member_id}'s"

    def end_well(self) -> None:
        """The dead are taken out, the others share everything that anybody wants."""
        for client in self.clients:
            client.holds_on = False
        self.pass_time(SESSION_MS // HEARTBEAT_MS + 1)
        living = [self.clients[number] for number in sorted(self.living)]
        if not living:
            return
        self.context.settle(*living)
        assert set(self.context.group.members) == {client.member_id for client in living}
        wanted = {topic for client in living for topic in client.topics or ()}
        had = sorted(partition for client in living for partition in client.partitions)
        topics = self.context.image.topics
        assert had == sorted((name, index) for name in wanted for index in topics[name].partitions)


def acts() -> st.SearchStrategy[Act]:
    """Names of methods and what they are given."""
    numbers = st.integers(0, CLIENTS - 1)
    return st.one_of(
        st.tuples(st.just("join"), numbers),
        st.tuples(st.just("join"), numbers),
        st.tuples(st.just("beat"), numbers),
        st.tuples(st.just("leave"), numbers, st.sampled_from([-1, -2])),
        st.tuples(st.just("die"), numbers),
        st.tuples(st.just("lose_reply"), numbers),
        st.tuples(st.just("hold_on"), numbers, st.integers(0, 1)),
        st.tuples(st.just("subscribe"), numbers, st.integers(0, len(WISHES) - 1)),
        st.tuples(st.just("pass_time"), st.integers(1, 4)),
        st.tuples(st.just("grow"), st.integers(0, 1)),
    )


@given(st.lists(acts(), min_size=5, max_size=40))
@settings(max_examples=40)
def test_no_partition_has_two_owners_and_every_group_settles(story: list[Act]) -> None:
    live(story)


@on_loop
async def live(story: list[Act]) -> None:
    async with consumer_groups() as context:
        context.create_topic("a", 3)
        context.create_topic("b", 2)
        lives = Lives(context)
        for name, *arguments in story:
            getattr(lives, name)(*arguments)
            lives.check()
        lives.end_well()
