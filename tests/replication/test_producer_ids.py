"""Producer ids from blocks of the controller."""

import asyncio

from headrace.replication.producer_ids import ProducerIdBlock, ProducerIds

TRIES_MAX = 100


class CountedTries(ProducerIds):
    """Fails where the loop would be kept busy for ever."""

    tries = 0

    def take(self) -> int | None:
        self.tries += 1
        assert self.tries < TRIES_MAX, "an id is waited for without letting the loop run"
        return super().take()


def test_who_asks_as_a_block_arrives_does_not_keep_the_loop_busy() -> None:
    async def ask_twice() -> list[int]:
        arrival: asyncio.Future[ProducerIdBlock] = asyncio.get_running_loop().create_future()

        async def allocate() -> ProducerIdBlock:
            return await arrival

        ids = CountedTries(allocate)
        first = asyncio.ensure_future(ids.next_id())
        for _ in range(3):
            await asyncio.sleep(0)
        assert ids.tries
        # The second one runs after the block has come and before anybody was told.
        arrival.set_result(ProducerIdBlock(1000, 10))
        return list(await asyncio.gather(first, asyncio.ensure_future(ids.next_id())))

    assert sorted(asyncio.run(ask_twice())) == [1000, 1001]
