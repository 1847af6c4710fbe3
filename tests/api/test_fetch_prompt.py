"""Fetches that wait are answered in the turn of the loop that woke them, and leave nothing behind."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from headrace.api.k01_fetch import API
from headrace.replication.parked_fetches import ParkedFetch
from tests.support_admin import Client
from tests.support_data import DataNode, start_node
from tests.support_fetch import LATEST, fetch_request, wanted
from tests.support_log import on_loop

LONG_MS = 600_000


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """What goes away does so by itself."""
    gc.disable()
    yield
    gc.enable()


def parked_by(client: Client, node: DataNode) -> ParkedFetch[object]:
    client.send(fetch_request(wanted(0), max_wait_ms=LONG_MS), LATEST)
    (parked,) = node.partition().parked
    assert isinstance(parked, ParkedFetch)
    return parked


async def started() -> tuple[Client, DataNode]:
    node = await start_node()
    node.assign()
    return Client(node.services, [API]), node


@on_loop
async def test_one_turn_lies_between_an_append_and_the_reply() -> None:
    client, node = await started()
    parked_by(client, node)
    node.append()
    (slot,) = client.connection.slots
    assert not slot.is_answered
    await asyncio.sleep(0)
    assert slot.is_answered
    assert not node.partition().parked


@pytest.mark.parametrize("ends", ["by an append", "by its client"])
@on_loop
async def test_a_fetch_that_waited_is_no_garbage(ends: str) -> None:
    client, node = await started()
    future = weakref.ref(parked_by(client, node).future)
    if ends == "by an append":
        node.append()
    else:
        client.connection.close("gone")
    for _ in range(3):
        await asyncio.sleep(0)
    assert not node.partition().parked
    client.connection.slots.clear()
    assert future() is None


@on_loop
async def test_a_failure_while_answering_is_told() -> None:
    client, node = await started()
    parked_by(client, node)
    node.partition().go_offline()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    (slot,) = client.connection.slots
    assert slot.is_answered


@on_loop
async def test_who_has_gone_is_not_answered() -> None:
    client, node = await started()
    parked_by(client, node)
    client.connection.close("gone")
    node.append()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    (slot,) = client.connection.slots
    assert not slot.is_answered
    assert not node.partition().parked
