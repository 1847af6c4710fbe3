"""Configurations by the client's administrative calls: who is asked, and what is made of the answers."""

import asyncio
from typing import Any

from headrace.client.admin.configs import (
    ConfigChange,
    ConfigKind,
    ConfigResource,
    ConfigSource,
    Operation,
    ResourceKind,
    alter_configs,
    describe_configs,
)
from headrace.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from headrace.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from tests.support_client_admin import ScriptedCluster

TOPIC = ConfigResource(ResourceKind.TOPIC, "t")
BROKER = ConfigResource(ResourceKind.BROKER, "2")
ALL_BROKERS = ConfigResource(ResourceKind.BROKER, "")
GROUP = ConfigResource(ResourceKind.GROUP, "g")


def described(request: Any) -> Message:
    """One key for each resource, named for it."""
    entry = DescribeConfigsResourceResult(
        name="key",
        value="v",
        config_source=5,
        config_type=2,
        synonyms=[DescribeConfigsSynonym(name="other", value="w", source=4)],
    )
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                resource_type=each.resource_type, resource_name=each.resource_name, configs=[entry]
            )
            for each in request.resources
        ]
    )


def test_a_broker_is_asked_for_its_own_and_any_for_the_rest() -> None:
    scripted = ScriptedCluster(described, described)
    outcomes = asyncio.run(describe_configs(scripted.cluster, [TOPIC, BROKER, ALL_BROKERS, GROUP]))
    assert set(outcomes.all()) == {TOPIC, BROKER, ALL_BROKERS, GROUP}
    asked = {whom: [each.resource_name for each in request.resources] for whom, request in scripted.sent}
    assert asked == {"any": ["t", "", "g"], 2: ["2"]}
    assert all(each.configuration_keys is None for each in scripted.requests[0].resources)


def test_an_entry_says_where_it_comes_from_and_what_it_is() -> None:
    scripted = ScriptedCluster(described)
    outcomes = asyncio.run(describe_configs(scripted.cluster, [TOPIC], keys=["key"], synonyms=True))
    entry = outcomes.all()[TOPIC]["key"]
    assert (entry.value, entry.source, entry.kind) == ("v", ConfigSource.DEFAULT, ConfigKind.STRING)
    assert entry.is_default
    assert [(each.name, each.source) for each in entry.synonyms] == [("other", ConfigSource.BROKER_FILE)]
    assert scripted.requests[0].resources[0].configuration_keys == ["key"]


def test_sources_and_kinds_of_newer_brokers_are_unknown() -> None:
    assert ConfigSource(99) is ConfigSource.UNKNOWN
    assert ConfigKind(99) is ConfigKind.UNKNOWN


def test_changes_go_out_key_by_key_and_each_resource_has_its_own_result() -> None:
    reply = IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(resource_type=2, resource_name="t"),
            AlterConfigsResourceResponse(
                resource_type=32, resource_name="g", error_code=ErrorCode.INVALID_CONFIG, error_message="no"
            ),
        ]
    )
    scripted = ScriptedCluster(reply)
    changes = {
        TOPIC: [ConfigChange("a", Operation.SET, "1"), ConfigChange("b", Operation.DELETE)],
        GROUP: [ConfigChange("c", Operation.APPEND, "x")],
    }
    outcomes = asyncio.run(alter_configs(scripted.cluster, changes, validate_only=True))
    assert set(outcomes.done) == {TOPIC}
    assert str(outcomes.refused[GROUP]) == "group 'g': INVALID_CONFIG: no"
    (request,) = scripted.requests
    assert request.validate_only
    sent = [(each.name, each.config_operation, each.value) for each in request.resources[0].configs]
    assert sent == [("a", 0, "1"), ("b", 1, None)]


def test_resources_have_names_that_people_know() -> None:
    assert [str(each) for each in (TOPIC, BROKER, ALL_BROKERS, GROUP)] == [
        "topic 't'",
        "broker '2'",
        "all brokers",
        "group 'g'",
    ]
