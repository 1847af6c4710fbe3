"""The recordings themselves: that they cover what they should, and that a difference would be seen."""

import re
from dataclasses import replace
from uuid import UUID

import pytest

from headrace.protocol.apis import APIS
from headrace.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from headrace.protocol.messages.init_producer_id import InitProducerIdResponse
from headrace.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.answers.allowances import DEVIATIONS, as_served, unexpected
from tests.answers.catalogue import FAMILIES, PROPERTIES, SERVED_KEYS, all_scenarios
from tests.answers.describing import describe
from tests.answers.masking import Masks, uuid_text
from tests.answers.recording import differences, load_family, recorded_properties
from tests.answers.session import Exchange, Target

EXCHANGES = [
    exchange for family in FAMILIES for scenario in load_family(family).values() for exchange in scenario
]
REFUSAL = re.compile(r"'error_code': (?!0\b)")


def masks() -> Masks:
    return Target("somewhere", 9092, 9093, "/data", "cluster-of-tests").masks()


@pytest.mark.parametrize("key", sorted(SERVED_KEYS))
def test_every_version_of_every_api_is_answered_in_the_recordings(key: int) -> None:
    api = APIS[key]
    answered = {each.version for each in EXCHANGES if each.api == api.name and isinstance(each.reply, dict)}
    assert answered == set(range(api.version_min, api.stable_version_max + 1))


def test_the_recordings_are_many_and_both_good_and_bad() -> None:
    assert len(EXCHANGES) > 1500
    refused = [each for each in EXCHANGES if each.reply == "closed" or REFUSAL.search(str(each.reply))]
    assert len(refused) > 500


def test_every_scenario_is_recorded_and_nothing_else_is() -> None:
    recorded = {(family, name) for family in FAMILIES for name in load_family(family)}
    assert recorded == {(each.family, each.name) for each in all_scenarios()}


def test_the_settings_of_the_recordings_are_those_of_the_scenarios() -> None:
    assert recorded_properties() == PROPERTIES


def test_a_changed_field_is_a_difference() -> None:
    reply = {"topics": [{"name": "a", "error_code": 0}]}
    recorded = Exchange("about", "Metadata", 1, {}, reply)
    changed = replace(recorded, reply={"topics": [{"name": "a", "error_code": 3}]})
    absent = replace(recorded, reply={"topics": [{"name": "a"}]})
    longer = replace(recorded, reply={"topics": reply["topics"] * 2})
    truth = replace(recorded, reply={"topics": [{"name": "a", "error_code": False}]})
    for seen in (changed, absent, longer, truth, replace(recorded, reply="closed")):
        assert len(differences([recorded], [seen])) == 1
    assert differences([recorded], [recorded]) == []
    assert differences([recorded], []) != []


def test_ids_are_compared_by_their_order_of_appearance() -> None:
    first, second = UUID(int=1), UUID(int=2)
    rules = masks()
    names = [rules.value("T", "topic_id", each) for each in (second, first, second, UUID(int=0))]
    assert names == ["<uuid 1>", "<uuid 2>", "<uuid 1>", "zero"]
    assert rules.text("error_message", f"no {uuid_text(first)}") == "no <uuid 2>"


def test_times_are_masked_only_when_they_are_of_the_run() -> None:
    rules = masks()
    assert rules.value("T", "timestamp", rules.started_ms + 1) == "<now>"
    assert rules.value("T", "timestamp", 1_700_000_000_000) == 1_700_000_000_000
    assert rules.value("T", "offset", rules.started_ms + 1) == rules.started_ms + 1


def test_addresses_are_masked_by_their_role() -> None:
    rules = masks()
    told = "PLAINTEXT://somewhere:9092,CONTROLLER://somewhere:9093 in /data/x of cluster-of-tests"
    assert (
        rules.text("value", told)
        == "PLAINTEXT://<address>,CONTROLLER://<controller address> in <data>/x of <cluster>"
    )
    assert rules.value("Broker", "port", 9092) == "<address>"
    assert rules.value("Broker", "port", 9099) == 9099


def test_results_are_sorted_by_what_they_are_about() -> None:
    reply = CreateTopicsResponse(
        topics=[CreatableTopicResult(name=name, topic_id=UUID(int=at + 1)) for at, name in enumerate("ba")]
    )
    described = describe(reply, 7, masks())
    assert [each["name"] for each in described["topics"]] == ["a", "b"]
    assert [each["topic_id"] for each in described["topics"]] == ["<uuid 1>", "<uuid 2>"]


def test_only_fields_of_the_version_are_described() -> None:
    partition = ListOffsetsPartitionResponse(partition_index=1, offset=5, leader_epoch=-1)
    reply = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[partition])])
    assert "leader_epoch" not in describe(reply, 3, masks())["topics"][0]["partitions"][0]
    assert describe(reply, 4, masks())["topics"][0]["partitions"][0]["leader_epoch"] == -1


def test_a_producer_id_is_masked_and_its_absence_is_not() -> None:
    rules = masks()
    assert describe(InitProducerIdResponse(producer_id=0), 4, rules)["producer_id"] == "<producer 1>"
    assert describe(InitProducerIdResponse(), 4, rules)["producer_id"] == -1


def test_an_announcement_is_expected_of_what_is_served() -> None:
    full = next(each for each in EXCHANGES if each.api == "ApiVersions")
    (expected,) = as_served([full])
    assert {each["api_key"] for each in expected.reply["api_keys"]} == SERVED_KEYS
    assert len(full.reply["api_keys"]) > len(SERVED_KEYS)


def test_a_listed_deviation_must_deviate(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = [Exchange(about, "Metadata", 1, {}, {"code": 0}) for about in ("one", "two")]
    seen = [recorded[0], replace(recorded[1], reply={"code": 1})]
    assert len(unexpected("s", recorded, seen)) == 1
    monkeypatch.setitem(DEVIATIONS, "s", {"two": "for a reason"})
    assert unexpected("s", recorded, seen) == []
    assert unexpected("s", recorded, recorded) == ["1: two deviates no more"]
    assert unexpected("s", recorded, seen[1:] + seen) != []


def test_every_deviation_names_a_recorded_exchange() -> None:
    for scenario, listed in DEVIATIONS.items():
        family, name = scenario.split(".")
        assert set(listed) <= {each.about for each in load_family(family)[name]}
