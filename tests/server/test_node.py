"""A node from within: what it says when it starts, and what it leaves undone when it stops."""

import asyncio
import logging
from pathlib import Path

import pytest

from headrace.protocol.messages.create_topics import CreateTopicsResponse
from tests.support_log import on_loop
from tests.support_server import inner_node


@on_loop
async def test_topics_that_are_on_their_way_are_given_up_when_the_node_stops(tmp_path: Path) -> None:
    creation: asyncio.Future[CreateTopicsResponse] = asyncio.get_running_loop().create_future()
    async with inner_node(tmp_path) as node:
        node.services.auto_topics.begin(["t"], creation)
        assert not creation.done()
    assert creation.cancelled()


@on_loop
async def test_a_first_start_does_not_speak_of_an_unclean_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        async with inner_node(tmp_path):
            pass
        async with inner_node(tmp_path):
            pass
    assert caplog.text.count("no partitions in") == 2
    assert "unclean" not in caplog.text
