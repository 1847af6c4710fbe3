"""Records what a running Apache Kafka answers to the scenarios of tests/answers.

    python -m tools.record_answers                    compare the recordings with fresh answers
    python -m tools.record_answers --write            replace them
    python -m tools.record_answers [--write] fetch    only these families

Starts several brokers one after the other, needs Java and Kafka's jars as `make compat` does, and takes a few
minutes. The comparison runs the scenarios in reverse, so that one that leans on another shows.
"""

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compat.kafka_libs import kafka_version
from compat.kafka_peer import CLUSTER_ID, running_kafka
from tests.answers.catalogue import FAMILIES, PROPERTIES, Scenario, all_scenarios
from tests.answers.recording import differences, load_family, play, store_family, store_settings
from tests.answers.session import Exchange, Target

Answers = dict[str, dict[str, list[Exchange]]]


@contextmanager
def fresh_kafka() -> Iterator[Target]:
    """A Kafka with the scenarios' settings and nothing in it."""
    with tempfile.TemporaryDirectory() as scratch, running_kafka(Path(scratch), PROPERTIES) as peer:
        yield Target(peer.host, peer.port, peer.controller_port, str(peer.data_dir), CLUSTER_ID)


def collect(scenarios: list[Scenario]) -> Answers:
    """The answers of real brokers: one for all scenarios that can share, one for each of the others."""
    answers: Answers = defaultdict(dict)
    with fresh_kafka() as shared:
        for scenario in scenarios:
            if not scenario.alone:
                answers[scenario.family][scenario.name] = run(scenario, shared)
    for scenario in scenarios:
        if scenario.alone:
            with fresh_kafka() as own:
                answers[scenario.family][scenario.name] = run(scenario, own)
    return answers


def run(scenario: Scenario, target: Target) -> list[Exchange]:
    """A scenario's exchanges; on a real Kafka none may fail."""
    exchanges, failure = play(scenario, target)
    if failure is not None:
        raise RuntimeError(f"{scenario} ended after {len(exchanges)} exchanges") from failure
    print(f"{scenario}: {len(exchanges)}", flush=True)
    return exchanges


def write(scenarios: list[Scenario]) -> None:
    """Record the scenarios and keep the answers."""
    answers = collect(scenarios)
    for family, recorded in answers.items():
        store_family(family, recorded)
    store_settings(kafka_version(), PROPERTIES)


def compare(scenarios: list[Scenario]) -> int:
    """Play the scenarios once more and print what differs from the recordings."""
    answers = collect(scenarios[::-1])
    found = 0
    for family, seen in answers.items():
        recorded = load_family(family)
        for name, exchanges in seen.items():
            for difference in differences(recorded.get(name, []), exchanges):
                print(f"{family}.{name}: {difference}")
                found += 1
    return found


def main() -> None:
    given = sys.argv[1:]
    families = [each for each in given if each != "--write"] or list(FAMILIES)
    scenarios = [each for each in all_scenarios() if each.family in families]
    if "--write" in given:
        write(scenarios)
    elif found := compare(scenarios):
        raise SystemExit(f"{found} answers differ from the recordings")


if __name__ == "__main__":
    main()
