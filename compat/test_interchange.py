"""One data directory, Kafka and Headrace in turn: neither notices that the other was there."""

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from compat.kafka_peer import KafkaFailed
from compat.support_contents import ClusterSeen, RecordSeen, differences, read_all, see
from compat.support_history import QUICK_UPKEEP, History, see_records
from compat.support_seat import Seat, Software
from compat.support_security import Guards, guarded_properties, settings_in
from compat.support_tools import KafkaTools
from tests.support_answers import free_ports
from tests.support_cli import CLEAN, KILLED, unpack_fixture
from tests.support_e2e import create_topic
from tests.support_node import NodeDied

KAFKA, HEADRACE = Software.KAFKA, Software.HEADRACE
STOP, KILL = "stop", "kill"
UNCOMMITTED, COMMITTED = "read_uncommitted", "read_committed"
LENGTH_ABRIDGED = 200
FIXTURES = Path(__file__).resolve().parents[1] / "tests" / "fixtures"
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

    def take(properties: dict[str, str] | None = None, **options: Any) -> Seat:
        seat = Seat(tmp_path / f"seat-{len(taken)}", QUICK_UPKEEP | (properties or {}), **options)
        taken.append(seat)
        return seat

    yield take
    for seat in taken:
        seat.kill()
        # Shown with a test that has failed.
        logging.getLogger(__name__).warning("Headrace printed last:\n%s", seat.headrace_output)


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
    history.write_round(has_coordinators=seat.running is KAFKA)
    return history.check(has_coordinators=seat.running is KAFKA)


def _look(seat: Seat, history: History, before: ClusterSeen | None) -> None:
    """All that was there is there: by what was written, and by what the one before had shown."""
    expected = history.continued.finish()
    assert [record.value for record in see_records(seat.address, "continued")] == expected
    now = history.check(has_coordinators=seat.running is KAFKA)
    assert before is not None
    assert before.internal_topics.items() <= now.internal_topics.items()
    assert list(differences(_at_rest(before), _at_rest(now))) == []


def _at_rest(seen: ClusterSeen) -> ClusterSeen:
    """Without what may change: coordinators create their topics when a client first asks for one."""
    kept = {name: topic for name, topic in seen.topics.items() if name not in RESTLESS}
    return replace(seen, topics=kept, internal_topics={})


@pytest.mark.parametrize(("first", "second"), [(HEADRACE, KAFKA), (KAFKA, HEADRACE)])
def test_a_directory_in_use_is_refused_to_the_other(
    first: Software, second: Software, take_seat: Callable[..., Seat]
) -> None:
    seat = take_seat()
    seat.format(first)
    seat.start(first)
    before = see(seat.address)
    other = take_seat(data_dir=seat.data_dir)
    with pytest.raises((KafkaFailed, NodeDied)):
        other.start(second)
    if second is HEADRACE:
        assert ".lock" in other.headrace_output
    assert see(seat.address) == before


@pytest.mark.timeout(WHOLE_TIMEOUT_S)
def test_what_only_kafka_can_set_survives_headrace_and_its_snapshots(
    take_seat: Callable[..., Seat], tmp_path: Path
) -> None:
    (sasl_port,) = free_ports(1)
    seat = take_seat(
        {"metadata.log.max.record.bytes.between.snapshots": "100"},
        kafka_only=lambda properties: guarded_properties(properties["listeners"], sasl_port),
    )
    seat.format(KAFKA)
    with KafkaTools() as java:
        guards = Guards(java, seat.address, sasl_port, tmp_path)
        seat.start(KAFKA)
        guards.set_everything()
        before = guards.describe()
        assert all(before.values())
        seat.stop()
        kept = settings_in(java, _newest_snapshot(seat))

        for ending in (STOP, KILL, STOP):
            theirs = _newest_snapshot(seat)
            seat.start(HEADRACE)
            _change_until_snapshot(seat, theirs)
            seat.stop() if ending == STOP else seat.kill()
            assert settings_in(java, _newest_snapshot(seat)) == kept

        seat.start(KAFKA)
        assert guards.describe() == before


def _newest_snapshot(seat: Seat) -> Path:
    return max(seat.metadata_dir.glob("*.checkpoint"))


def _change_until_snapshot(seat: Seat, last: Path) -> None:
    """Create topics until the metadata log has grown enough for a new snapshot."""
    for _ in range(200):
        create_topic(seat.address, f"t-{uuid4()}", 5)
        if _newest_snapshot(seat) > last:
            return
    pytest.fail(f"there is no snapshot after {last}")


@pytest.mark.timeout(WHOLE_TIMEOUT_S)
@pytest.mark.parametrize("fixture", [CLEAN, KILLED])
def test_a_directory_of_a_real_kafka_is_served_as_it_is_and_given_back(
    fixture: str, take_seat: Callable[..., Seat], tmp_path: Path
) -> None:
    # What was recorded is from years ago: only without a limit of time it is still there.
    seat = take_seat({"log.retention.ms": "-1"}, data_dir=unpack_fixture(fixture, tmp_path / "fixture"))
    expected = json.loads((FIXTURES / "expected-records.json").read_text(encoding="utf-8"))
    partitions = {
        (topic, record[0]) for topic, records in expected[UNCOMMITTED].items() for record in records
    }
    for software in (HEADRACE, KAFKA, HEADRACE):
        seat.start(software)
        for isolation in (UNCOMMITTED, COMMITTED):
            seen = read_all(seat.address, sorted(partitions), isolation)
            for topic, records in expected[isolation].items():
                assert _as_recorded(topic, seen) == sorted(records, key=lambda record: record[:2])
        seat.stop()


def _as_recorded(topic: str, seen: dict[tuple[str, int], tuple[RecordSeen, ...]]) -> list[list[object]]:
    """In the form of the recording: texts for bytes, by partition and offset."""
    return [
        [
            partition,
            record.offset,
            record.timestamp_type,
            record.timestamp,
            _text(record.key),
            _abridged(record.value),
            [[name, _text(value)] for name, value in record.headers],
        ]
        for (name_of_topic, partition), records in sorted(seen.items())
        if name_of_topic == topic
        for record in records
    ]


def _abridged(value: bytes | None) -> str | dict[str, int] | None:
    """Of long values the recording has the length only."""
    return {"len": len(value)} if value is not None and len(value) >= LENGTH_ABRIDGED else _text(value)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
