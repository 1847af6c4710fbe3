"""What the tests of configuration share: a small server.properties, and facts read off a running Kafka."""

import json
from pathlib import Path

from headrace.config.node import NodeConfig
from headrace.config.server_properties import read_node_config

FACTS = Path(__file__).parent / "fixtures" / "facts"

COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}
BROKER_ONLY = {
    "process.roles": "broker",
    "node.id": "2",
    "listeners": "PLAINTEXT://:9092",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
}
CONTROLLER_ONLY = {
    "process.roles": "controller",
    "node.id": "1",
    "listeners": "CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
}


def facts(name: str) -> dict[str, dict[str, object]]:
    """The defaults that a running Kafka showed, by key."""
    loaded: dict[str, dict[str, object]] = json.loads((FACTS / name).read_text())
    return loaded


def node(texts: dict[str, str] | None = None, base: dict[str, str] | None = None) -> NodeConfig:
    """A node that is broker and controller, with these keys besides."""
    return read_node_config((COMBINED if base is None else base) | (texts or {}))
