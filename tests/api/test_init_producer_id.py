"""InitProducerId for idempotent producers: every id once, from blocks that are fetched ahead."""

import asyncio
from typing import Any

import pytest

from headrace.api.k22_init_producer_id import API
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest
from headrace.replication.producer_ids import ProducerIdBlock, ProducerIds
from headrace.server.transactions import join_transactions
from tests.support_data import DataNode, FakeController, start_node
from tests.support_log import on_loop


async def ask(node: DataNode, version: int = 5, **fields: Any) -> tuple[int, int, int]:
    request = InitProducerIdRequest(**{"transactional_id": None, "transaction_timeout_ms": 60_000} | fields)
    reply: Any = await node.ask(API, request, version)
    return reply.error_code, reply.producer_id, reply.producer_epoch


@pytest.mark.parametrize("version", range(API.versions[0], API.versions[1] + 1))
@on_loop
async def test_every_version_gives_a_fresh_id_and_epoch_0(version: int) -> None:
    node = await start_node()
    assert [await ask(node, version) for _ in range(3)] == [(0, 0, 0), (0, 1, 0), (0, 2, 0)]


@on_loop
async def test_without_a_transaction_an_old_id_does_not_matter() -> None:
    node = await start_node()
    assert await ask(node, producer_id=77, producer_epoch=3) == (0, 0, 0)


@pytest.mark.parametrize("fields", [{"producer_id": 7}, {"producer_epoch": 7}])
@on_loop
async def test_half_an_identity_is_refused(fields: dict[str, int]) -> None:
    node = await start_node()
    assert await ask(node, **fields) == (ErrorCode.INVALID_REQUEST, -1, -1)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": "t", "transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transactional_id": "t", "transaction_timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transactional_id": "t"}, ErrorCode.NOT_COORDINATOR),
    ],
)
@on_loop
async def test_transactional_ids_are_a_coordinators_business(fields: dict[str, Any], code: ErrorCode) -> None:
    node = await start_node()
    join_transactions(node.services)
    assert await ask(node, **fields) == (code, -1, -1)


@on_loop
async def test_without_a_coordinator_transactional_ids_have_to_wait() -> None:
    with pytest.raises(KafkaError) as refused:
        await ask(await start_node(), transactional_id="t")
    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


@on_loop
async def test_no_id_is_given_twice_however_many_ask_at_once() -> None:
    controller = FakeController(block_size=10)
    ids = ProducerIds(controller.allocate)
    taken = await asyncio.gather(*(ids.next_id() for _ in range(95)))
    assert sorted(taken) == list(range(95))


@on_loop
async def test_the_next_block_is_there_before_the_present_one_is_used_up() -> None:
    controller = FakeController(block_size=10)
    ids = ProducerIds(controller.allocate)
    await ids.next_id()
    assert [ids.take() for _ in range(8)] == list(range(1, 9))
    for _ in range(5):
        await asyncio.sleep(0)
    assert controller.blocks == 2
    assert [ids.take(), ids.take()] == [9, 10]


@on_loop
async def test_a_controller_that_refuses_is_asked_again_for_the_next_producer() -> None:
    refusals = [KafkaError(ErrorCode.NOT_CONTROLLER)]

    async def allocate() -> ProducerIdBlock:
        await asyncio.sleep(0)
        if refusals:
            raise refusals.pop()
        return ProducerIdBlock(5000, 1000)

    ids = ProducerIds(allocate)
    with pytest.raises(KafkaError) as refusal:
        await ids.next_id()
    assert refusal.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert await ids.next_id() == 5000


@on_loop
async def test_a_producer_that_goes_takes_no_block_with_it() -> None:
    ids = ProducerIds(FakeController().allocate)
    gone = asyncio.ensure_future(ids.next_id())
    await asyncio.sleep(0)
    gone.cancel()
    assert await ids.next_id() == 0
