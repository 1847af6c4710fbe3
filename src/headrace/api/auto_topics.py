"""Topics that are created because somebody asked about them: which are on their way just now.

A topic is asked about by many clients at once, and created once. Nobody waits for it: clients ask again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Collection
from typing import Final

from headrace.errors import ErrorCode
from headrace.protocol.messages.create_topics import CreateTopicsResponse

logger: Final = logging.getLogger("headrace.api")


class AutoTopics:
    """The topics whose creation was begun and is not done."""

    __slots__ = ("_tasks", "in_flight")

    def __init__(self) -> None:
        self.in_flight: set[str] = set()
        # The loop keeps no task alive that nobody waits for.
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, names: Collection[str], creation: Awaitable[CreateTopicsResponse]) -> None:
        """Let the creation of these topics run; what fails is logged, since nobody hears of it otherwise."""
        self.in_flight.update(names)
        task = asyncio.ensure_future(self._finish(frozenset(names), creation))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, names: frozenset[str], creation: Awaitable[CreateTopicsResponse]) -> None:
        try:
            response = await creation
        except Exception:
            logger.exception("auto-creation of %s failed", ", ".join(sorted(names)))
            return
        finally:
            self.in_flight -= names
        for topic in response.topics:
            if topic.error_code:
                reason = topic.error_message or ErrorCode(topic.error_code).name
                logger.warning("auto-creation of topic %s failed: %s", topic.name, reason)

    async def settled(self) -> None:
        """Wait until every creation that was begun is done."""
        while self._tasks:
            await asyncio.wait(self._tasks)
