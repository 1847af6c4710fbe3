"""The same commands with Kafka's tools on a Kafka and on a Headrace: what they print is the same."""

import re
from pathlib import Path

from compat import support_tools as tools
from compat.support_seat import Seat, Software
from compat.support_tools import KafkaTools, ToolRun

TOPIC, OTHER = "orders", "other"
TOPIC_ENTITY = ("--entity-type", "topics", "--entity-name", TOPIC)
BROKER_ENTITY = ("--entity-type", "brokers", "--entity-name", "1")
DEFAULT_ENTITY = ("--entity-type", "brokers", "--entity-default")
#: What a change leads to is looked at a few commands later: a broker of Kafka's learns of it after the reply.
SCRIPT: tuple[tuple[str, ...], ...] = (
    (tools.TOPICS, "--create", "--topic", TOPIC, "--partitions", "3", "--config", "retention.ms=3600000"),
    (tools.TOPICS, "--create", "--topic", OTHER, "--replica-assignment", "1,1"),
    (tools.TOPICS, "--create", "--topic", TOPIC),
    (tools.TOPICS, "--create", "--topic", "a.b", "--config", "segment.bytes=1"),
    (tools.TOPICS, "--create", "--topic", "c", "--config", "cleanup.policy=forget"),
    (tools.TOPICS, "--create", "--topic", "c", "--config", "remote.storage.enable=true"),
    (tools.TOPICS, "--create", "--topic", "c", "--replication-factor", "2"),
    (tools.TOPICS, "--create", "--topic", "c", "--replica-assignment", "2"),
    (tools.TOPICS, "--create", "--topic", ".."),
    (tools.TOPICS, "--alter", "--topic", OTHER, "--partitions", "4"),
    (tools.TOPICS, "--alter", "--topic", OTHER, "--partitions", "5", "--replica-assignment", "1,1,1,1,9"),
    (tools.TOPICS, "--alter", "--topic", OTHER, "--partitions", "3"),
    (tools.TOPICS, "--list"),
    (tools.TOPICS, "--describe", "--topic", TOPIC),
    (tools.TOPICS, "--describe", "--topic", OTHER),
    (tools.TOPICS, "--describe", "--topic", "absent"),
    (tools.CONFIGS, "--alter", *TOPIC_ENTITY, "--add-config", "cleanup.policy=[compact,delete],flush.ms=10"),
    (tools.CONFIGS, "--alter", *TOPIC_ENTITY, "--delete-config", "retention.ms"),
    (tools.CONFIGS, "--alter", *TOPIC_ENTITY, "--add-config", "max.message.bytes=-3"),
    (tools.CONFIGS, "--alter", *TOPIC_ENTITY, "--add-config", "min.insync.replicas=0"),
    (tools.CONFIGS, "--alter", *TOPIC_ENTITY, "--delete-config", "segment.ms"),
    (tools.CONFIGS, "--describe", *TOPIC_ENTITY),
    (tools.CONFIGS, "--describe", "--all", *TOPIC_ENTITY),
    (tools.CONFIGS, "--alter", *BROKER_ENTITY, "--add-config", "log.cleaner.threads=2"),
    (tools.CONFIGS, "--alter", *BROKER_ENTITY, "--add-config", "log.dirs=elsewhere"),
    (tools.CONFIGS, "--alter", *BROKER_ENTITY, "--add-config", "log.cleaner.threads=none"),
    (tools.CONFIGS, "--alter", *DEFAULT_ENTITY, "--add-config", "message.max.bytes=2000000"),
    (tools.CONFIGS, "--alter", *DEFAULT_ENTITY, "--add-config", "listeners=PLAINTEXT://:1"),
    (tools.CONFIGS, "--describe", *BROKER_ENTITY),
    (tools.CONFIGS, "--describe", *DEFAULT_ENTITY),
    (tools.CONFIGS, "--describe", "--all", *BROKER_ENTITY),
    (tools.CONFIGS, "--describe", "--entity-type", "topics"),
    (tools.GET_OFFSETS, "--topic", TOPIC),
    (tools.GET_OFFSETS, "--topic-partitions", f"{TOPIC}:1-2,{OTHER}:0"),
    (tools.GET_OFFSETS, "--topic", TOPIC, "--time", "earliest"),
    (tools.GET_OFFSETS, "--topic", TOPIC, "--time", "max-timestamp"),
    (tools.GET_OFFSETS, "--topic", TOPIC, "--time", "earliest-local"),
    (tools.GET_OFFSETS, "--topic", "absent"),
    (tools.LOG_DIRS, "--describe", "--topic-list", TOPIC),
    (tools.METADATA_QUORUM, "describe", "--status"),
    (tools.METADATA_QUORUM, "describe", "--replication"),
    (tools.FEATURES, "describe"),
    (tools.FEATURES, "upgrade", "--feature", "group.version=9"),
    (tools.FEATURES, "downgrade", "--feature", "streams.version=0"),
    (tools.FEATURES, "upgrade", "--release-version", "4.3", "--dry-run"),
    (tools.TOPICS, "--delete", "--topic", OTHER),
    (tools.FEATURES, "describe"),
    (tools.TOPICS, "--delete", "--topic", OTHER),
    (tools.TOPICS, "--describe", "--topics-with-overrides"),
)
#: What is not the same on two nodes, or in two moments, and what it is replaced with.
VARIABLE = (
    (re.compile(r"(TopicId: |DirectoryId\": \"|directory\.id=)[\w-]{22}"), r"\1ID"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"[^\s\"=]*/(?:kafka|headrace)/data"), "DATA"),
    (re.compile(r"((?:HighWatermark|Epoch|LeaderEpoch): +)\d+"), r"\1N"),
    (re.compile(r"\t\d+ +\t0  \t\d+ +\t\d+ +\t"), "\tN\t0\tN\tN\t"),
    (re.compile(r"\n\tat .*"), ""),
)
OWN_KEYS = re.compile(r"\s*headrace\.")


def test_every_command_prints_the_same(kafka_libs: Path, tmp_path: Path) -> None:
    with KafkaTools() as java:
        kafka, headrace = (_play(java, software, tmp_path / software) for software in Software)
    different = [
        "\n".join((" ".join(command), f"on Kafka: {expected}", f"on Headrace: {ours}"))
        for command, expected, ours in zip(SCRIPT, kafka, headrace, strict=True)
        if ours != expected
    ]
    assert not different, "\n\n".join(different)


def _play(java: KafkaTools, software: Software, directory: Path) -> list[ToolRun]:
    seat = Seat(directory)
    seat.format(software)
    try:
        seat.start(software)
        address = ("--bootstrap-server", seat.address)
        return [_alike(java.attempt(tool, *address, *arguments)) for tool, *arguments in SCRIPT]
    finally:
        seat.kill()


def _alike(run: ToolRun) -> ToolRun:
    """Without what differs for good reasons, and with lines sorted, since some come from hash tables."""
    return ToolRun(run.status, _settled(run.out), _settled(run.err))


def _settled(text: str) -> str:
    for pattern, replacement in VARIABLE:
        text = pattern.sub(replacement, text)
    return "\n".join(sorted(line for line in text.splitlines() if not OWN_KEYS.match(line)))
