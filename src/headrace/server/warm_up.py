"""Compiles what the first requests of clients will need, before they come.

A message's decoder or encoder is compiled when it is first needed, which takes some milliseconds. Right after
the start nobody is in a hurry yet, so those that nearly every client needs are compiled then, one at a time
and with pauses: no request waits for more than one of them. The others still wait until they are needed.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from headrace.api.services import Api
from headrace.protocol.api_table import ApiKey
from headrace.protocol.codec import prepare_decoder, prepare_encoder
from headrace.protocol.message import Message

FIRST_SECONDS: Final = 0.3
PAUSE_SECONDS: Final = 0.02
#: The versions that librdkafka, Java clients of 4.x and ours, kafka-python and aiokafka speak with this node,
#: in this order. What is asked for most comes first.
EXPECTED: Final[Mapping[ApiKey, tuple[int, ...]]] = {
    ApiKey.API_VERSIONS: (3, 4),
    ApiKey.METADATA: (13, 5),
    ApiKey.PRODUCE: (10, 13, 9, 7),
    ApiKey.FETCH: (16, 18, 12, 11),
    ApiKey.INIT_PRODUCER_ID: (4, 5),
    ApiKey.FIND_COORDINATOR: (2, 6),
    ApiKey.LIST_OFFSETS: (7, 11),
    ApiKey.JOIN_GROUP: (5, 9, 7),
    ApiKey.SYNC_GROUP: (3, 5),
    ApiKey.HEARTBEAT: (3, 4),
    ApiKey.OFFSET_FETCH: (9, 10),
    ApiKey.OFFSET_COMMIT: (9, 10),
}


class WarmUp:
    """Goes through the expected messages of some APIs, a step at a time."""

    __slots__ = ("_loop", "_steps")

    def __init__(self, apis: Iterable[Api]) -> None:
        self._steps = _steps({api.key: api for api in apis})
        self._loop: asyncio.AbstractEventLoop

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take the first step soon, and the others one after the other."""
        self._loop = loop
        loop.call_later(FIRST_SECONDS, self._go_on)

    def _go_on(self) -> None:
        if self.step():
            self._loop.call_later(PAUSE_SECONDS, self._go_on)

    def step(self) -> bool:
        """Compile one more; False if there was none left."""
        return next(self._steps, None) is not None


def _steps(apis: Mapping[int, Api]) -> Iterator[type[Message]]:
    for key, versions in EXPECTED.items():
        api = apis.get(key)
        if api is None:
            continue
        low, high = api.versions
        for version in versions:
            if low <= version <= high:
                prepare_decoder(api.request, version)
                yield api.request
                prepare_encoder(api.response, version)
                yield api.response
