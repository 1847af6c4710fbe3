"""What came of each item of a request, and the loop that asks again for those that may still work out."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from headrace.client.config import ClientConfig
from headrace.client.errors import BrokerRefused
from headrace.client.retrying import Patience
from headrace.errors import ErrorCode, HeadraceError

K = TypeVar("K")
V = TypeVar("V")
Item = TypeVar("Item")

UNMENTIONED: Final = "the broker's reply has no result for it"


class SeveralRefused(HeadraceError):
    """More than one item was refused."""

    def __init__(self, refusals: Iterable[BrokerRefused]) -> None:
        self.refusals = tuple(refusals)
        super().__init__("; ".join(map(str, self.refusals)))


@dataclass(frozen=True, slots=True)
class Outcomes(Generic[K, V]):
    """Results by item: every item is in one of the two."""

    done: Mapping[K, V]
    refused: Mapping[K, BrokerRefused]

    def all(self) -> Mapping[K, V]:
        """All results; the refusals are raised if there are any."""
        if len(self.refused) == 1:
            raise next(iter(self.refused.values()))
        if self.refused:
            raise SeveralRefused(self.refused.values())
        return self.done


@dataclass(frozen=True, slots=True)
class Answer(Generic[V]):
    """What a broker said about one item; `value` counts if the code is that of success. A final answer is not
    asked for again, whatever the code."""

    code: int
    message: str | None
    value: V
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class Answers(Generic[K, V]):
    """What one reply, or several of different brokers, said about items."""

    items: Mapping[K, Answer[V]]
    #: How long the broker wants to be left alone before it is asked again.
    throttle_ms: int = 0


def request_ms(config: ClientConfig, patience: Patience) -> int:
    """How long a broker may take over one request of several."""
    return min(config.request_timeout_ms, patience.left_ms)


async def settle(
    items: Mapping[K, Item],
    ask: Callable[[Mapping[K, Item]], Awaitable[Answers[K, V]]],
    *,
    patience: Patience,
    retried: frozenset[ErrorCode],
    where: Callable[[K], str],
) -> Outcomes[K, V]:
    """Ask about items until each is done, refused for good, or the time is over."""
    done: dict[K, V] = {}
    refused: dict[K, BrokerRefused] = {}
    pending = dict(items)
    while pending:
        answers = await ask(pending)
        waiting = {}
        for key, item in pending.items():
            answer = answers.items.get(key)
            if answer is None:
                refused[key] = BrokerRefused(ErrorCode.UNKNOWN_SERVER_ERROR, UNMENTIONED, where(key))
            elif answer.code == ErrorCode.NONE:
                refused.pop(key, None)
                done[key] = answer.value
            else:
                refused[key] = BrokerRefused(answer.code, answer.message, where(key))
                if answer.code in retried and not answer.is_final:
                    waiting[key] = item
        pending = {} if patience.is_over else waiting
        if pending:
            await asyncio.sleep(min(answers.throttle_ms, patience.left_ms) / 1000)
            await patience.pause()
    return Outcomes(done, refused)
