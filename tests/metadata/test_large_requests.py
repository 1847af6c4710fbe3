"""Requests for thousands of partitions leave others on the loop their turns, and stay one change."""

import asyncio

from headrace.errors import ErrorCode
from headrace.metadata.decision import STEP
from headrace.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.support_metadata import MetadataNode, on_loop, started

MANY = 10 * STEP


def creation(node: MetadataNode, name: str, partitions: int) -> "asyncio.Task[CreateTopicsResponse]":
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return asyncio.create_task(node.metadata.controller.create_topics(CreateTopicsRequest(topics=[topic])))


@on_loop
async def test_others_have_their_turns_and_see_all_of_the_topic_or_nothing() -> None:
    node = await started()
    task = creation(node, "big", MANY)
    turns, seen = 0, set()
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
        topic = node.metadata.image.topics.get("big")
        seen.add(0 if topic is None else len(topic.partitions))
    assert (await task).topics[0].error_code == ErrorCode.NONE
    assert seen == {0, MANY}
    # Placing, recording, encoding and decoding: each in as many pieces.
    assert turns >= 4 * (MANY // STEP - 1)


@on_loop
async def test_a_decision_waits_for_one_that_is_being_made() -> None:
    node = await started()
    first, second, other = creation(node, "same", MANY), creation(node, "same", 1), creation(node, "other", 1)
    codes = [(await task).topics[0].error_code for task in (first, second, other)]
    assert codes == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NONE]
    assert len(node.metadata.image.topics["same"].partitions) == MANY


@on_loop
async def test_whoever_leaves_in_the_middle_leaves_nothing_or_everything_behind() -> None:
    node = await started()
    controller = node.metadata.controller
    for turns in (1, 5, 15, 25, 35, 45):
        name = f"after-{turns}"
        task = creation(node, name, MANY)
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await creation(node, f"next-{turns}", 1)
        decided, committed = controller.image.topics.get(name), node.metadata.image.topics.get(name)
        assert (decided is None) == (committed is None)
        if committed is not None:
            assert len(committed.partitions) == MANY
    assert "after-1" not in node.metadata.image.topics
    names = set(node.metadata.image.topics)
    await node.stop()
    again = node.restarted()
    await again.start()
    assert set(again.metadata.image.topics) == names
