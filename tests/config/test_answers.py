"""Configuration described and altered as a running Kafka 4.3.1 did it, request by request."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace.config.alteration import (
    Change,
    Operation,
    ResourceType,
    altered,
    altered_on_broker,
    check_changes,
    merged,
)
from headrace.config.client_metrics import validate_client_metrics_config
from headrace.config.describe import (
    BrokerLayers,
    ConfigEntry,
    Source,
    describe_broker,
    describe_client_metrics,
    describe_cluster_defaults,
    describe_group,
    describe_topic,
)
from headrace.config.dynamic import usable, validate_broker_change
from headrace.config.group import validate_group_config
from headrace.config.node import NodeConfig
from headrace.config.server_properties import read_node_config
from headrace.config.topic import validate_topic_config
from headrace.errors import KafkaError
from tests.support_config import FACTS

SOURCES = {
    Source.TOPIC: "DYNAMIC_TOPIC_CONFIG",
    Source.DYNAMIC_BROKER: "DYNAMIC_BROKER_CONFIG",
    Source.DYNAMIC_DEFAULT_BROKER: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    Source.STATIC_BROKER: "STATIC_BROKER_CONFIG",
    Source.DEFAULT: "DEFAULT_CONFIG",
    Source.CLIENT_METRICS: "DYNAMIC_CLIENT_METRICS_CONFIG",
    Source.GROUP: "DYNAMIC_GROUP_CONFIG",
}


@dataclass
class Cluster:
    """What a controller stores and a broker is asked: just enough to carry out the recorded requests."""

    static: NodeConfig
    stored: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)

    def texts(self, resource: str, name: str) -> dict[str, str]:
        return self.stored.setdefault((resource, name), {})

    @property
    def layers(self) -> BrokerLayers:
        return BrokerLayers(self.static, self.texts("BROKER", ""), self.texts("BROKER", "1"))

    def alter(self, resource: str, name: str, changes: list[Change]) -> None:
        current = self.texts(resource, name)
        check_changes(changes)
        if resource == "BROKER":
            proposed = altered_on_broker(usable(current, per_broker=name != ""), changes)
            layers = self.layers
            validate_broker_change(
                self.static, layers.cluster, layers.broker, proposed, per_broker=name != ""
            )
        new = merged(current, altered(ResourceType[resource], current, changes))
        broker = self.layers.effective
        validators: dict[str, Callable[[], object]] = {
            "TOPIC": lambda: validate_topic_config(new, broker.topic_defaults(), current),
            "GROUP": lambda: validate_group_config(new, broker),
            "CLIENT_METRICS": lambda: validate_client_metrics_config(name, new),
            "BROKER": lambda: None,
        }
        validators[resource]()
        self.stored[resource, name] = new

    def describe(self, resource: str, name: str) -> list[ConfigEntry]:
        texts = self.texts(resource, name)
        match resource, name:
            case "TOPIC", _:
                return describe_topic(texts, self.layers)
            case "GROUP", _:
                return describe_group(texts, self.layers)
            case "CLIENT_METRICS", _:
                return describe_client_metrics(texts)
            case _, "":
                return describe_cluster_defaults(self.layers)
        return describe_broker(self.layers)


def recorded() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FACTS / "config_answers.json").read_text())
    return loaded


def shown(entry: ConfigEntry) -> list[object]:
    synonyms = [[s.name, s.value, SOURCES[s.source]] for s in entry.synonyms]
    told = (entry.read_only, entry.sensitive, entry.kind.name, entry.documentation is not None)
    return [entry.name, entry.value, SOURCES[entry.source], *told, synonyms]


def parse_changes(text: str) -> list[Change]:
    words = (part.split(" ", 2) for part in text.split("|"))
    return [Change(key, Operation[operation], value[0] if value else "") for operation, key, *value in words]


def test_every_recorded_request_gets_the_recorded_answer() -> None:
    recording = recorded()
    cluster = Cluster(read_node_config(recording["static"]))
    # With eligible leader replicas, the controller itself sets this for the cluster when it is formatted.
    cluster.texts("BROKER", "")["min.insync.replicas"] = "1"
    for answer in recording["answers"]:
        resource, name = answer["resource"], answer["name"]
        if "entries" in answer:
            entries = sorted(cluster.describe(resource, name), key=lambda entry: entry.name)
            assert [shown(entry) for entry in entries] == answer["entries"]
            continue
        error, message = "NONE", None
        try:
            cluster.alter(resource, name, parse_changes(answer["alter"]))
        except KafkaError as refusal:
            error, message = refusal.code.name, str(refusal)
        assert (error, message) == (answer["error"], answer.get("message")), answer["alter"]


def test_the_recording_has_refusals_and_changes_of_every_resource() -> None:
    seen = {(a["resource"], a["error"] != "NONE") for a in recorded()["answers"] if "alter" in a}
    assert seen == {
        (r, refused) for r in ("TOPIC", "BROKER", "GROUP", "CLIENT_METRICS") for refused in (True, False)
    }
