"""A node beside Apache Kafka: the same client, the same settings, one machine, in turns.

Both brokers run at once and one of them is measured, so that neither has the machine at a better time. Of
several rounds the best counts. HEADRACE_BENCH_SECONDS is how long one measurement takes, HEADRACE_BENCH_DIR
where the data go. Without Java or Kafka's jars only our own figures are printed.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.harness import Row, spell_time
from bench.node_brokers import Broker, brokers, peak_resident_bytes, resident_bytes
from bench.node_latency import during_compaction, end_to_end
from bench.node_loads import Readable, produced, requests_per_second
from bench.node_starts import first_start, processor_share, seconds_to_write

SECONDS_VARIABLE = "HEADRACE_BENCH_SECONDS"
SECONDS = 2.5
ROUNDS = 4
LATENCY_ROUNDS = 2
STARTS = 3
STARTS_AFTER_KILL = 2
PRODUCERS = 8

Measure = Callable[[Broker], float]
Spell = Callable[[float], str]


@dataclass(slots=True, frozen=True)
class Contest:
    """The brokers that are compared, ours first; Kafka may be missing."""

    brokers: Sequence[Broker]
    seconds: float

    def each(self, measure: Measure, rounds: int = 1) -> list[list[float]]:
        """What is measured, per broker, in turns."""
        found: list[list[float]] = [[] for _ in self.brokers]
        for _ in range(rounds):
            for index, broker in enumerate(self.brokers):
                found[index].append(measure(broker))
        return found

    def highest(self, name: str, target: float | None, spell: Spell, measure: Measure) -> Row:
        """A row of what is better the more it is."""
        best = [max(figures) for figures in self.each(measure, ROUNDS)]
        return _row(name, best, spell, target, higher_is_better=True)

    def lowest(self, name: str, target: float | None, spell: Spell, measure: Measure, rounds: int = 1) -> Row:
        """A row of what is better the less it is."""
        best = [min(figures) for figures in self.each(measure, rounds)]
        return _row(name, best, spell, target, higher_is_better=False)


def run() -> list[Row]:
    """All rows."""
    seconds = float(os.environ.get(SECONDS_VARIABLE, SECONDS))
    with brokers() as (ours, theirs, reason):
        if theirs is None:
            print(f"Kafka cannot be had, so only our own figures follow: {reason}")
        contest = Contest([ours] if theirs is None else [ours, theirs], seconds)
        for broker in contest.brokers:
            first_start(broker)
        return [
            *_start_rows(contest),
            *_load_rows(contest),
            *_latency_rows(contest),
            *_compaction_rows(contest),
        ]


def _start_rows(contest: Contest) -> list[Row]:
    def start(broker: Broker) -> float:
        broker.stop()
        return seconds_to_write(broker)

    def start_after_kill(broker: Broker) -> float:
        broker.kill()
        return seconds_to_write(broker)

    return [
        contest.lowest("start to first acknowledged write", 1 / 6, spell_time, start, STARTS),
        contest.lowest("the same after kill -9", 1 / 10, spell_time, start_after_kill, STARTS_AFTER_KILL),
        contest.lowest("idle memory", 1 / 6, _spell_bytes, lambda broker: resident_bytes(broker.pid)),
        contest.lowest(
            "idle CPU, share of one core",
            None,
            lambda share: f"{share:.2%}",
            lambda broker: processor_share(broker, contest.seconds),
        ),
    ]


def _load_rows(contest: Contest) -> list[Row]:
    seconds = contest.seconds
    # Kafka's code is compiled while it runs, so it gets to run before it is measured.
    contest.each(lambda broker: produced(broker, 100, seconds).per_second)
    rows = [*_produce_rows(contest, "100 B", 100), *_produce_rows(contest, "1 KB", 1000)]
    contest.each(lambda broker: requests_per_second(broker, PRODUCERS, seconds))
    for producers in (1, PRODUCERS):
        name = f"one-message requests, {producers} producer{'s' * (producers > 1)}"
        rows.append(contest.highest(name, 1.3, _spell_rate, _request_measure(producers, seconds / 2)))
    readable = {broker.address: Readable(broker, 1000, seconds) for broker in contest.brokers}
    rows.append(
        contest.highest(
            "consume 1 KB, raw fetches of 1 MB",
            1.0,
            _spell_speed,
            lambda broker: readable[broker.address].bytes_per_second(seconds / 2),
        )
    )
    rows.append(
        contest.lowest(
            "memory under load", 1 / 4, _spell_bytes, lambda broker: peak_resident_bytes(broker.pid)
        )
    )
    return rows


def _produce_rows(contest: Contest, label: str, size: int) -> list[Row]:
    """The client costs more than either broker, so what a message costs the broker is told as well."""
    found = [[produced(broker, size, contest.seconds) for broker in contest.brokers] for _ in range(ROUNDS)]
    speeds = [max(run.per_second for run in of_broker) for of_broker in zip(*found, strict=True)]
    costs = [min(run.seconds_each for run in of_broker) for of_broker in zip(*found, strict=True)]
    return [
        _row(f"produce {label}, acks=all", speeds, _spell_messages(size), 1.3, higher_is_better=True),
        _row(f"broker's CPU for each message of {label}", costs, spell_time, None, higher_is_better=False),
    ]


def _request_measure(producers: int, seconds: float) -> Measure:
    return lambda broker: requests_per_second(broker, producers, seconds)


def _latency_rows(contest: Contest) -> list[Row]:
    both = [
        [end_to_end(broker, 2 * contest.seconds) for broker in contest.brokers] for _ in range(LATENCY_ROUNDS)
    ]
    rows = []
    for name, index in (("p50", 0), ("p99", 1)):
        best = [min(figures[index] for figures in of_broker) for of_broker in zip(*both, strict=True)]
        rows.append(_row(f"end to end at 1,000 msg/s, {name}", best, spell_time, 1.0, higher_is_better=False))
    return rows


def _compaction_rows(contest: Contest) -> list[Row]:
    """Ours against ourselves; Kafka's own ratio is there to compare."""
    rows = []
    for name, broker in zip(("", "Kafka's "), contest.brokers, strict=False):
        found = during_compaction(broker, contest.seconds)
        rows.append(
            Row(
                f"{name}produce p99 during {found.seconds:.1f} s of compaction, and idle",
                spell_time(found.busy.p99),
                spell_time(found.idle.p99),
                found.busy.p99 / found.idle.p99,
                None if name else 2.0,
                higher_is_better=False,
            )
        )
    return rows


def _row(name: str, best: list[float], spell: Spell, target: float | None, *, higher_is_better: bool) -> Row:
    if len(best) == 1:
        return Row(name, spell(best[0]), "-", higher_is_better=higher_is_better)
    ours, theirs = best
    return Row(name, spell(ours), spell(theirs), ours / theirs, target, higher_is_better)


def _spell_bytes(count: float) -> str:
    return f"{count / 1e6:.0f} MB"


def _spell_speed(per_second: float) -> str:
    return f"{per_second / 1e6:.0f} MB/s"


def _spell_rate(per_second: float) -> str:
    return f"{per_second:,.0f} /s"


def _spell_messages(size: int) -> Spell:
    if size >= 1000:
        return lambda per_second: _spell_speed(per_second * size)
    return lambda per_second: f"{per_second / 1e3:.0f} k/s"
