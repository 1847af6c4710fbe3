"""One data directory, Kafka and Headrace in turn: neither notices that the other was there."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from compat.support_contents import ClusterSeen, differences
from compat.support_history import QUICK_UPKEEP, History, see_records
from compat.support_seat import Seat, Software

KAFKA, HEADRACE = Software.KAFKA, Software.HEADRACE
STOP, KILL = "stop", "kill"
WHOLE_TIMEOUT_S = 1200
#: Topics that change between two looks for good reasons: one goes on being written to, one being compacted.
RESTLESS = {"continued", "compacted"}


class Passage(NamedTuple):
    """Who prepares the directory, and how it goes from hand to hand. Whoever is last only looks."""

    formatted_by: Software
    format_arguments: tuple[str, ...]
    turns: tuple[tuple[Software, str], ...]
    last: Software
    has_voters_in_log: bool = False


PASSAGES = {
    "stopped": Passage(KAFKA, (), ((KAFKA, STOP), (HEADRACE, STOP), (KAFKA, STOP), (HEADRACE, STOP)), KAFKA),
    "killed": Passage(
        HEADRACE, (), ((HEADRACE, KILL), (KAFKA, KILL), (HEADRACE, KILL), (KAFKA, KILL)), HEADRACE
    ),
    "formatted-as-4.0-by-kafka": Passage(
        KAFKA, ("--release-version", "4.0"), ((KAFKA, KILL), (HEADRACE, STOP), (HEADRACE, KILL)), KAFKA
    ),
    "formatted-as-4.0-by-headrace": Passage(
        HEADRACE, ("--release-version", "4.0"), ((HEADRACE, STOP), (KAFKA, STOP)), HEADRACE
    ),
    "voters-in-the-log-by-kafka": Passage(
        KAFKA, ("--standalone",), ((KAFKA, STOP), (HEADRACE, KILL), (HEADRACE, STOP)), KAFKA, True
    ),
    "voters-in-the-log-by-headrace": Passage(
        HEADRACE, ("--standalone",), ((HEADRACE, KILL), (KAFKA, KILL)), HEADRACE, True
    ),
}


@pytest.fixture
def take_seat(kafka_libs: Path, tmp_path: Path) -> Iterator[Callable[..., Seat]]:
    """Makes seats; whoever still sits there at the end is killed."""
    taken: list[Seat] = []

    def take(properties: dict[str, str] | None = None, **options: object) -> Seat:
        seat = Seat(tmp_path / f"seat-{len(taken)}", QUICK_UPKEEP | (properties or {}), **options)  # type: ignore[arg-type]
        taken.append(seat)
        return seat

    yield take
    for seat in taken:
        seat.kill()


@pytest.mark.timeout(WHOLE_TIMEOUT_S)
@pytest.mark.parametrize("passage", PASSAGES.values(), ids=PASSAGES)
def test_a_directory_goes_from_hand_to_hand_and_nothing_changes(
    passage: Passage, take_seat: Callable[..., Seat]
) -> None:
    seat = take_seat(has_voters_in_log=passage.has_voters_in_log)
    seat.format(passage.formatted_by, *passage.format_arguments)
    history = History(seat.address, seat.data_dir)
    before: ClusterSeen | None = None
    try:
        for software, ending in passage.turns:
            seat.start(software)
            before = _take_turn(seat, history, before)
            history.continued.send(2000)
            seat.stop() if ending == STOP else seat.kill()
        seat.start(passage.last)
        _look(seat, history, before)
    finally:
        history.close()


def _take_turn(seat: Seat, history: History, before: ClusterSeen | None) -> ClusterSeen:
    """Look at what was left, add to it, and look at it again."""
    if before is None:
        history.create_topics()
    else:
        _look(seat, history, before)
    history.write_round(with_transactions=seat.running is KAFKA)
    return history.check()


def _look(seat: Seat, history: History, before: ClusterSeen | None) -> None:
    """All that was there is there: by what was written, and by what the one before had shown."""
    expected = history.continued.finish()
    assert [record.value for record in see_records(seat.address, "continued")] == expected
    now = history.check()
    assert before is not None
    assert list(differences(_at_rest(before), _at_rest(now))) == []


def _at_rest(seen: ClusterSeen) -> ClusterSeen:
    return replace(seen, topics={name: topic for name, topic in seen.topics.items() if name not in RESTLESS})
