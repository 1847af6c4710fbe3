"""Topics that are created because somebody asked about them: which are on their way just now.

A topic is asked about by many clients at once, and created once. Nobody waits for it: clients ask again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Collection
from functools import partial
from typing import Final

from headrace.errors import ErrorCode
from headrace.protocol.messages.create_topics import CreateTopicsResponse

logger: Final = logging.getLogger("headrace.api")


class AutoTopics:
    """The topics whose creation was begun and is not done."""

    __slots__ = ("_creations", "in_flight")

    def __init__(self) -> None:
        self.in_flight: set[str] = set()
        # The loop keeps no task alive that nobody waits for.
        self._creations: set[asyncio.Future[CreateTopicsResponse]] = set()

    def begin(self, names: Collection[str], creation: Awaitable[CreateTopicsResponse]) -> None:
        """Let the creation of these topics run; what fails is logged, since nobody hears of it otherwise."""
        self.in_flight.update(names)
        future = asyncio.ensure_future(creation)
        self._creations.add(future)
        future.add_done_callback(partial(self._on_done, frozenset(names)))

    def _on_done(self, names: frozenset[str], creation: asyncio.Future[CreateTopicsResponse]) -> None:
        self._creations.discard(creation)
        self.in_flight -= names
        if creation.cancelled():
            return
        error = creation.exception()
        if error is not None:
            logger.error("auto-creation of %s failed", ", ".join(sorted(names)), exc_info=error)
            return
        for topic in creation.result().topics:
            # Somebody else may have been quicker, and then all is well.
            if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                reason = topic.error_message or ErrorCode(topic.error_code).name
                logger.warning("auto-creation of topic %s failed: %s", topic.name, reason)

    def cancel(self) -> None:
        """Give up what is not done: the node stops."""
        for creation in self._creations:
            creation.cancel()

    async def settled(self) -> None:
        """Wait until every creation that was begun is done."""
        while self._creations:
            await asyncio.wait(self._creations)
