"""`headrace topic` against a node: what it prints for people and programs, and how it fails."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from headrace.cli.app import app
from headrace.cli.topics import looking

if TYPE_CHECKING:
    from tests.support_node import RunningNode

Topic = Callable[..., Result]


@pytest.fixture
def topic(shared_node: "RunningNode") -> Topic:
    """Runs `headrace topic` against the shared node."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["topic", *arguments, "--bootstrap-server", shared_node.bootstrap])

    return run


def succeeded(result: Result) -> str:
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def failed(result: Result) -> str:
    assert result.exit_code == 1, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_a_topic_is_created_listed_and_deleted(topic: Topic) -> None:
    assert succeeded(topic("create", "cli-life", "--partitions", "2")) == "Created topic cli-life.\n"
    assert "cli-life" in succeeded(topic("list")).splitlines()
    assert succeeded(topic("delete", "cli-life")) == "Deleted topic cli-life.\n"
    assert "cli-life" not in succeeded(topic("list")).splitlines()


def test_creating_a_topic_that_exists_fails_in_the_brokers_words_unless_that_is_fine(topic: Topic) -> None:
    succeeded(topic("create", "cli-twice"))
    message = failed(topic("create", "cli-twice"))
    assert message == "headrace: topic 'cli-twice': TOPIC_ALREADY_EXISTS: Topic 'cli-twice' already exists.\n"
    assert succeeded(topic("create", "cli-twice", "--if-not-exists")) == "Topic cli-twice exists already.\n"
    shown = json.loads(succeeded(topic("create", "cli-twice", "--if-not-exists", "--format", "json")))
    assert shown == {"name": "cli-twice", "created": False}


def test_a_topic_can_be_validated_without_being_created(topic: Topic) -> None:
    assert succeeded(topic("create", "cli-dry", "--validate-only")) == "Topic cli-dry can be created.\n"
    assert "cli-dry" not in succeeded(topic("list")).splitlines()
    assert "INVALID_REPLICATION_FACTOR" in failed(topic("create", "cli-dry", "-r", "3", "--validate-only"))


def test_a_refused_configuration_is_named(topic: Topic) -> None:
    assert "retention.ms" in failed(topic("create", "cli-config", "--config", "retention.ms=soon"))
    assert "no.such.key" in failed(topic("create", "cli-config", "--config", "no.such.key=1"))


def test_creation_is_told_in_json(topic: Topic) -> None:
    made = json.loads(succeeded(topic("create", "cli-json", "-p", "3", "--format", "json")))
    listed = json.loads(succeeded(topic("list", "--format", "json")))
    assert made == {
        "name": "cli-json",
        "id": made["id"],
        "partitions": 3,
        "replication_factor": 1,
        "created": True,
    }
    assert {
        "name": "cli-json",
        "id": made["id"],
        "internal": False,
        "partitions": 3,
        "replication_factor": 1,
    } in listed


def test_a_description_has_the_lines_of_kafkas_script_with_offsets(topic: Topic) -> None:
    succeeded(
        topic("create", "cli-described", "--replica-assignment", "1,1", "--config", "retention.ms=5000")
    )
    head, first, second = succeeded(topic("describe", "cli-described")).splitlines()
    assert head.startswith("Topic: cli-described\tTopicId: ")
    assert "\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: " in head
    assert "retention.ms=5000" in head
    assert first == (
        "\tTopic: cli-described\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
        "\tOffsetFirst: 0\tOffsetNext: 0"
    )
    assert second.startswith("\tTopic: cli-described\tPartition: 1\t")


def test_what_can_be_described_is_and_the_rest_told(topic: Topic) -> None:
    succeeded(topic("create", "cli-there"))
    result = topic("describe", "cli-missing", "cli-there", "--format", "json")
    assert failed(result) == (
        "headrace: topic 'cli-missing': UNKNOWN_TOPIC_OR_PARTITION: there is no such topic\n"
    )
    (shown,) = json.loads(result.stdout)
    assert shown["name"] == "cli-there"
    assert shown["partitions"][0] == {
        "partition": 0,
        "leader": 1,
        "leader_epoch": 0,
        "replicas": [1],
        "isr": [1],
        "offline": [],
        "elr": [],
        "last_known_elr": [],
        "offset_first": 0,
        "offset_next": 0,
    }


def test_configurations_and_partitions_are_altered_together(topic: Topic) -> None:
    succeeded(topic("create", "cli-alter", "--config", "segment.ms=9000"))
    changed = topic(
        "alter", "cli-alter", "--partitions", "3", "--set", "retention.ms=5000", "--unset", "segment.ms"
    )
    assert succeeded(changed) == "Altered topic cli-alter.\n"
    (shown,) = json.loads(succeeded(topic("describe", "cli-alter", "--format", "json")))
    assert len(shown["partitions"]) == 3
    assert shown["configs"]["retention.ms"] == {"value": "5000", "source": "topic"}
    assert "segment.ms" not in shown["configs"]


def test_an_alteration_that_is_refused_in_part_changes_nothing(topic: Topic) -> None:
    succeeded(topic("create", "cli-whole", "--partitions", "2"))
    message = failed(topic("alter", "cli-whole", "--partitions", "1", "--set", "retention.ms=5000"))
    assert "INVALID_PARTITIONS" in message
    (shown,) = json.loads(succeeded(topic("describe", "cli-whole", "--format", "json")))
    assert "retention.ms" not in shown["configs"]


def test_a_missing_topic_is_not_altered_or_deleted(topic: Topic) -> None:
    assert "there is no such topic" in failed(topic("alter", "cli-none", "--set", "retention.ms=1"))
    assert "UNKNOWN_TOPIC_OR_PARTITION" in failed(topic("delete", "cli-none"))
    assert succeeded(topic("delete", "cli-none", "--if-exists")) == ""


def test_deletion_is_told_for_each_topic(topic: Topic) -> None:
    succeeded(topic("create", "cli-gone"))
    result = topic("delete", "cli-gone", "cli-none", "--format", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == [
        {"name": "cli-gone", "deleted": True},
        {"name": "cli-none", "deleted": False},
    ]


def test_somebody_at_a_terminal_sees_tables(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    succeeded(topic("create", "cli-table", "--config", "retention.ms=5000"))
    monkeypatch.setattr(looking, "is_terminal", lambda: True)
    listed = succeeded(topic("list"))
    assert "partitions" in listed.splitlines()[0] + listed.splitlines()[1]
    shown = succeeded(topic("describe", "cli-table"))
    assert "retention.ms = 5000  (topic)" in shown
    assert "next offset" in shown


@pytest.mark.parametrize(
    "words",
    [
        ("create", "x", "--config", "novalue"),
        ("create", "x", "--partitions", "0"),
        ("create", "x", "--replica-assignment", "1:x"),
        ("create", "x", "--replica-assignment", "1", "--partitions", "2"),
        ("alter", "x"),
        ("alter", "x", "--set", "a=1", "--unset", "a"),
        ("describe",),
        ("list", "--format", "xml"),
    ],
    ids=" ".join,
)
def test_misuse_is_told_before_anybody_is_asked(words: tuple[str, ...]) -> None:
    assert CliRunner().invoke(app, ["topic", *words, "-b", "localhost:1"]).exit_code == 2
