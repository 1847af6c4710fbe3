"""Every message of every version against Kafka's own classes: bytes and values, both ways."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from compat.kafka_libs import RunJava
from headrace.cli.dump.message_json import message_json
from headrace.protocol.apis import APIS
from headrace.protocol.codec import decode, encode
from headrace.protocol.errors import MalformedMessage, UnencodableMessage
from headrace.protocol.message import Message
from tests.protocol.test_fuzz import mutate
from tests.support_protocol import MessageMaker, every_message
from tools.generate_messages import PROTOCOL, generate, read_schemas, write_formatted

MESSAGES_PER_VERSION = 8
MUTANTS_PER_VERSION = 6
PACKAGES = {
    "cluster_metadata": "common.metadata",
    "offsets": "coordinator.group.generated",
    "consumer_groups": "coordinator.group.generated",
    "share_groups": "coordinator.group.generated",
    "streams_groups": "coordinator.group.generated",
    "transaction_state": "coordinator.transaction.generated",
    "share_group_state": "coordinator.share.generated",
    "producer_snapshot": "server.log.remote.metadata.storage.generated",
    "remote_log_metadata": "server.log.remote.metadata.storage.generated",
    "quorum_state": "raft.generated",
}
#: Kafka's converters show record data as nothing at all.
RECORD_FIELDS = ("records", "unalignedRecords")

#: Kafka reads tagged fields in any order as we do, but writes unknown ones back only if they came in order.
UNSORTED_TAGS = "Invalid raw tag field list"

#: A class, the version to read, the bytes or None for a new object, and the version to write.
Question = tuple[type[Message], int, bytes | None, int]


def java_name(cls: type[Message]) -> str:
    """Kafka's class for a message."""
    package, _, module = cls.__module__.rpartition(".")
    if package.endswith(".messages"):
        return f"org.apache.kafka.common.message.{cls.__name__}Data"
    return f"org.apache.kafka.{PACKAGES.get(module, 'common.message')}.{cls.__name__}"


def ask(run_java: RunJava, questions: list[Question]) -> list[str]:
    """Kafka's answers: its bytes and JSON, or a refusal."""
    lines = [
        f"{java_name(cls)} {version} {'-' if frame is None else frame.hex()} {target}"
        for cls, version, frame, target in questions
    ]
    done = run_java("ProtocolEcho.java", stdin="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert len(answers) == len(questions)
    return answers


def without_records(values: Any) -> Any:
    """JSON without record data, whose form is not comparable."""
    if isinstance(values, dict):
        return {key: without_records(value) for key, value in values.items() if key not in RECORD_FIELDS}
    if isinstance(values, list):
        return [without_records(value) for value in values]
    return values


def test_kafka_reads_what_we_write_and_writes_what_we_read(run_java: RunJava) -> None:
    maker = MessageMaker(seed=20)
    messages = [
        (maker.message(cls, version), version)
        for cls, version in every_message()
        for _ in range(MESSAGES_PER_VERSION)
    ]
    answers = ask(
        run_java, [(type(made), version, encode(made, version), version) for made, version in messages]
    )
    for (message, version), answer in zip(messages, answers, strict=True):
        written, _, values = answer.partition("\t")
        assert bytes.fromhex(written) == encode(message, version), (type(message).__name__, version)
        assert decode(type(message), version, bytes.fromhex(written)) == message
        expected = without_records(json.loads(json.dumps(message_json(message, version))))
        assert without_records(json.loads(values)) == expected, (type(message).__name__, version)


def test_defaults_are_those_of_kafka(run_java: RunJava) -> None:
    kinds = list(every_message())
    answers = ask(run_java, [(cls, version, None, version) for cls, version in kinds])
    compared = 0
    for (cls, version), answer in zip(kinds, answers, strict=True):
        if not answer.startswith("!"):
            assert bytes.fromhex(answer.partition("\t")[0]) == encode(cls(), version), (cls.__name__, version)
            compared += 1
    assert compared > 0.95 * len(kinds), "Kafka refuses its own defaults where records must not be null"


def test_what_we_accept_of_mutated_frames_kafka_accepts_alike(run_java: RunJava) -> None:
    chance = random.Random(21)
    maker = MessageMaker(seed=21)
    accepted = []
    for cls, version in every_message():
        for _ in range(MUTANTS_PER_VERSION):
            frame = mutate(encode(maker.message(cls, version), version), chance)
            try:
                accepted.append((cls, version, frame, encode(decode(cls, version, frame), version)))
            except MalformedMessage:
                continue
    answers = ask(run_java, [(cls, version, frame, version) for cls, version, frame, _ in accepted])
    for (cls, version, frame, ours), answer in zip(accepted, answers, strict=True):
        if UNSORTED_TAGS in answer:
            continue
        assert not answer.startswith("!"), (cls.__name__, version, frame.hex(), answer)
        assert bytes.fromhex(answer.partition("\t")[0]) == ours, (cls.__name__, version, frame.hex())
    assert len(accepted) > 500


def test_fields_of_other_versions_are_refused_where_kafka_refuses_them(run_java: RunJava) -> None:
    questions: list[Question] = []
    for cls, version in every_message():
        if version + 1 <= cls.VERSION_MAX:
            newer = MessageMaker(seed=version, unknown_tags=False).message(cls, version + 1)
            questions.append((cls, version + 1, encode(newer, version + 1), version))
    refused = 0
    for (cls, version, frame, target), answer in zip(questions, ask(run_java, questions), strict=True):
        assert frame is not None
        message = decode(cls, version, frame)
        try:
            ours = encode(message, target)
        except UnencodableMessage as error:
            if not answer.startswith("!"):
                pytest.fail(f"Kafka writes what we refuse: {error}")
            refused += 1
        else:
            assert not answer.startswith("!"), (cls.__name__, target, answer)
            assert bytes.fromhex(answer.partition("\t")[0]) == ours, (cls.__name__, target)
    assert 0 < refused < len(questions)


def test_the_committed_messages_are_what_the_jars_hold(kafka_libs: Path, tmp_path: Path) -> None:
    files = generate(read_schemas(kafka_libs))
    assert len(files) > 100
    write_formatted(files, tmp_path)
    for path in files:
        assert (PROTOCOL / path).read_text(encoding="utf-8") == (tmp_path / path).read_text(encoding="utf-8")


def test_header_versions_are_those_of_kafka(run_java: RunJava) -> None:
    apis = [api for api in APIS.values() if not api.is_withdrawn]
    versions = [(api.key, version) for api in apis for version in range(api.version_min, api.version_max + 1)]
    questions = [f"{key} {version}" for key, version in versions]
    done = run_java("ProtocolHeaders.java", stdin="\n".join(questions) + "\n")
    assert done.returncode == 0, done.stderr
    for (key, version), answer in zip(versions, done.stdout.splitlines(), strict=True):
        api = APIS[key]
        ours = (
            api.request_header_version(version),
            api.response_header_version(version),
            api.latest_unstable,
        )
        assert answer == f"{ours[0]} {ours[1]} {str(ours[2]).lower()} {api.version_min} {api.version_max}"
