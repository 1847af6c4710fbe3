"""A node answers as Kafka did: every recorded scenario, field by field, but for ids, times and addresses."""

import pytest

from tests.answers.allowances import as_served, unexpected
from tests.answers.catalogue import Scenario, all_scenarios
from tests.answers.recording import load_family, play
from tests.answers.session import Target

SCENARIOS = all_scenarios()


def assert_answers_as_recorded(scenario: Scenario, target: Target) -> None:
    exchanges, failure = play(scenario, target)
    recorded = load_family(scenario.family)[scenario.name]
    found = unexpected(str(scenario), as_served(recorded), exchanges)
    if failure is not None:
        found.append(f"ended early: {failure!r}")
    assert not found, "\n".join([f"{len(found)} differences", *found])


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if not each.alone], ids=str)
def test_a_node_answers_as_kafka(scenario: Scenario, shared_target: Target) -> None:
    assert_answers_as_recorded(scenario, shared_target)


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each.alone], ids=str)
def test_a_fresh_node_answers_as_kafka(scenario: Scenario, own_target: Target) -> None:
    assert_answers_as_recorded(scenario, own_target)
