"""All connections of a client: one for each broker and lane.

A lane is a connection of its own. Requests that a broker may let wait, such as fetches for which there is
nothing yet, go in lanes of their own: a broker answers the requests of a connection one after the other.
"""

import asyncio
from typing import Final, TypeAlias

from headrace.client.config import ClientConfig
from headrace.client.errors import ClientClosed
from headrace.client.link import Link
from headrace.client.metadata import Broker
from headrace.ports import Entropy

Lane: TypeAlias = str
DEFAULT_LANE: Final[Lane] = ""


class Links:
    """Opens connections on demand and closes them together."""

    __slots__ = ("_config", "_entropy", "_is_closed", "_links", "_retiring")

    def __init__(self, config: ClientConfig, entropy: Entropy) -> None:
        self._config = config
        self._entropy = entropy
        self._links: dict[tuple[int, Lane], Link] = {}
        self._retiring: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def to(self, broker: Broker, lane: Lane = DEFAULT_LANE) -> Link:
        """The way to a broker. One that has moved to another address gets a new one."""
        if self._is_closed:
            raise ClientClosed("the cluster's connections were closed")
        key = (broker.node_id, lane)
        link = self._links.get(key)
        if link is not None and link.broker.address != broker.address:
            self._retire(self._links.pop(key))
            link = None
        if link is None:
            link = self._links[key] = Link(broker, self._config, self._entropy)
        return link

    def known(self, broker: Broker, lane: Lane = DEFAULT_LANE) -> Link | None:
        """The way to a broker, if it was asked for before."""
        return self._links.get((broker.node_id, lane))

    def close_node(self, node_id: int) -> None:
        """Close all connections to a broker; the next request makes new ones."""
        for key in [key for key in self._links if key[0] == node_id]:
            self._retire(self._links.pop(key))

    async def close_lane(self, lane: Lane) -> None:
        """Close the connections of a lane. Requests under way in it end with ConnectionLost."""
        keys = [key for key in self._links if key[1] == lane]
        await _close_all([self._links.pop(key) for key in keys])

    async def close(self) -> None:
        """Close everything, and leave nothing running."""
        self._is_closed = True
        links = list(self._links.values())
        self._links.clear()
        await _close_all(links)
        if self._retiring:
            await asyncio.wait(self._retiring)

    def _retire(self, link: Link) -> None:
        task = asyncio.ensure_future(link.close(has_left=True))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)


async def _close_all(links: list[Link]) -> None:
    # All of them before the first wait: who is cancelled meanwhile leaves none open.
    for link in links:
        link.hang_up()
    for link in links:
        await link.close()
