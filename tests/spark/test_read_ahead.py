"""Items that are made on a thread of their own, a few ahead of whoever takes them."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from typing import cast

import pytest
import uvloop

from headrace.spark.read_ahead import read_ahead
from headrace.spark.session import Session

PATIENCE_SECONDS = 60


class LoopOnly:
    """A session without a cluster."""

    def __init__(self) -> None:
        self.loop = uvloop.new_event_loop()
        self.run = self.loop.run_until_complete
        self.soon = self.loop.call_soon_threadsafe


@pytest.fixture
def session() -> Iterator[Session]:
    found = LoopOnly()
    yield cast(Session, found)
    found.loop.close()


class Source:
    """Numbers, and what becomes of who makes them."""

    def __init__(self, count: int, failure: Exception | None = None) -> None:
        self.made = 0
        self.is_closed = threading.Event()
        self._count = count
        self._failure = failure

    async def items(self) -> AsyncGenerator[int, None]:
        try:
            while self.made < self._count:
                self.made += 1
                yield self.made
            if self._failure is not None:
                raise self._failure
        finally:
            self.is_closed.set()


def test_all_items_come_in_order(session: Session) -> None:
    for count in (0, 1, 100):
        assert list(read_ahead(session, Source(count).items())) == list(range(1, count + 1))


def test_a_failure_comes_after_the_items_before_it(session: Session) -> None:
    items = read_ahead(session, Source(3, ValueError("broken")).items())
    assert [next(items), next(items), next(items)] == [1, 2, 3]
    with pytest.raises(ValueError, match="broken"):
        next(items)


def test_no_more_than_a_few_items_are_made_ahead(session: Session) -> None:
    source = Source(1000)
    items = read_ahead(session, source.items())
    for taken in range(1, 50):
        assert next(items) == taken
        assert source.made <= taken + 4
    items.close()  # type: ignore[attr-defined]  # It is a generator.


def test_giving_up_ends_the_thread_and_closes_the_source(session: Session) -> None:
    before = threading.active_count()
    source = Source(10**9)
    items = read_ahead(session, source.items())
    assert next(items) == 1
    items.close()  # type: ignore[attr-defined]  # It is a generator.
    assert source.is_closed.wait(PATIENCE_SECONDS)
    assert threading.active_count() == before


def test_giving_up_does_not_wait_for_an_item_that_never_comes(session: Session) -> None:
    async def stuck() -> AsyncGenerator[int, None]:
        yield 1
        await asyncio.Event().wait()

    items = read_ahead(session, stuck())
    assert next(items) == 1
    items.close()  # type: ignore[attr-defined]  # It is a generator.


def test_a_session_serves_one_iteration_after_the_other(session: Session) -> None:
    for _ in range(3):
        items = read_ahead(session, Source(10**9).items())
        assert [next(items), next(items)] == [1, 2]
        items.close()  # type: ignore[attr-defined]  # It is a generator.
