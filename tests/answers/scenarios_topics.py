"""CreateTopics, DeleteTopics and CreatePartitions."""

from collections.abc import Mapping
from uuid import UUID

from headrace.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from headrace.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.answers.requests import (
    UNKNOWN_ID,
    await_absence,
    await_topic,
    creatable,
    create,
    create_topic,
    metadata,
    versions,
)
from tests.answers.session import Session

LATEST = CreateTopicsRequest.VERSION_MAX


def created_in_every_version(session: Session) -> None:
    """A topic as asked for, one with all defaults, one only tried, and one that is there already."""
    for version in versions(CreateTopicsRequest):
        configs = {"retention.ms": "1000000", "cleanup.policy": "compact"}
        full = create(creatable(f"c-full-{version}", 3, configs=configs))
        session.ask("with settings", full, version)
        await_topic(session, f"c-full-{version}", 3)
        session.ask("again", full, version)
        tried = create(creatable(f"c-tried-{version}", 2), validate_only=True)
        session.ask("only tried", tried, version)
        session.ask("tried once more", tried, version)
        if version >= 4:
            session.ask("defaults", create(creatable(f"c-default-{version}", -1, -1)), version)
        session.ask("no topics", create(), version)


def refused_topics(session: Session) -> None:
    """Each topic's refusal names its reason, and spoils no other."""
    create_topic(session, "c-there.is")
    cases = {
        "no partitions": creatable("c-x", 0),
        "fewer partitions than none": creatable("c-x", -2),
        "no replicas": creatable("c-x", 1, 0),
        "fewer replicas than none": creatable("c-x", 1, -2),
        "more replicas than brokers": creatable("c-x", 1, 3),
        "an empty name": creatable(""),
        "a dot": creatable("."),
        "two dots": creatable(".."),
        "a blank": creatable("a b"),
        "a long name": creatable("x" * 250),
        "a letter not allowed": creatable("grün"),
        "a name that differs in its dot only": creatable("c-there_is"),
        "the metadata's own": creatable("__cluster_metadata"),
        "too many partitions": creatable("c-x", 10_001),
    }
    for about, topic in cases.items():
        for version in (2, 5, LATEST):
            session.ask(about, create(topic), version)
        session.ask(f"{about}, only tried", create(topic, validate_only=True), LATEST)
    both = create(creatable("c-good"), creatable("a b"), creatable("c-twice"), creatable("c-twice", 3))
    session.ask("good, bad and one twice", both, LATEST)


def settings_at_creation(session: Session) -> None:
    """Settings that are wrong, unknown, without value or at odds with each other."""
    cases: dict[str, Mapping[str, str | None]] = {
        "unknown": {"tea": "1"},
        "no number": {"retention.ms": "long"},
        "out of range": {"retention.ms": "-2"},
        "no value": {"retention.ms": None},
        "an empty value": {"cleanup.policy": ""},
        "no such word": {"cleanup.policy": "burn"},
        "no boolean": {"preallocate": "perhaps"},
        "at odds": {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
        "local above all": {"local.retention.ms": "1000", "retention.ms": "10"},
        "remote storage": {"remote.storage.enable": "true"},
        "a level of no codec": {"compression.gzip.level": "99"},
        "two wrong": {"retention.ms": "x", "segment.bytes": "1"},
        "a small segment": {"segment.bytes": "10"},
        "spaces around": {"retention.ms": " 1000000 "},
        "all kinds": {
            "cleanup.policy": "compact,delete",
            "compression.type": "zstd",
            "min.cleanable.dirty.ratio": "0.25",
            "message.timestamp.type": "LogAppendTime",
            "unclean.leader.election.enable": "true",
            "leader.replication.throttled.replicas": "0:1",
        },
    }
    for number, (about, configs) in enumerate(cases.items()):
        for version in (4, LATEST):
            topic = creatable(f"c-settings-{number}-{version}", configs=configs)
            session.ask(about, create(topic, validate_only=version == 4), version)


def own_assignments(session: Session) -> None:
    """Replicas placed by hand."""
    cases: dict[str, tuple[int, int, Mapping[int, list[int]]]] = {
        "as it should be": (-1, -1, {0: [1], 1: [1]}),
        "an unknown broker": (-1, -1, {0: [7]}),
        "a broker twice": (-1, -1, {0: [1, 1]}),
        "no broker": (-1, -1, {0: []}),
        "a gap": (-1, -1, {0: [1], 2: [1]}),
        "not from zero": (-1, -1, {1: [1]}),
        "a negative partition": (-1, -1, {-1: [1]}),
        "partitions as well": (2, -1, {0: [1], 1: [1]}),
        "replicas as well": (-1, 1, {0: [1]}),
        "a negative broker": (-1, -1, {0: [-1]}),
        "different counts": (-1, -1, {0: [1], 1: [1, 2]}),
    }
    for number, (about, (partitions, factor, replicas)) in enumerate(cases.items()):
        for version in (2, 5, LATEST):
            topic = CreatableTopic(
                name=f"c-assigned-{number}-{version}",
                num_partitions=partitions,
                replication_factor=factor,
                assignments=[
                    CreatableReplicaAssignment(partition_index=at, broker_ids=brokers)
                    for at, brokers in replicas.items()
                ],
            )
            session.ask(about, create(topic), version)
    twice = CreatableTopic(
        name="c-assigned-twice",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[1]) for _ in range(2)],
    )
    session.ask("a partition twice", create(twice), LATEST)


def deleted_in_every_version(session: Session) -> None:
    """By name up to 5, by name or id in 6; what is not there is named."""
    for version in versions(DeleteTopicsRequest, until=5):
        name = f"x-{version}"
        create_topic(session, name)
        session.ask("one that is and one that is not", _delete(name, "x-nowhere"), version)
        await_absence(session, name)
        session.ask("again", _delete(name), version)
        session.ask("odd names", _delete("", "a b"), version)
        session.ask("one twice", _delete("x-nowhere", "x-nowhere"), version)
        session.ask("none", _delete(), version)
    one, two = create_topic(session, "x-by-name"), create_topic(session, "x-by-id")
    session.ask("by name", _delete_states(("x-by-name", None)), 6)
    session.ask("by id", _delete_states((None, two)), 6)
    await_absence(session, "x-by-id")
    session.ask("gone by id", _delete_states((None, one), (None, two)), 6)
    third = create_topic(session, "x-third")
    cases: dict[str, tuple[tuple[str | None, UUID | None], ...]] = {
        "an unknown id": ((None, UNKNOWN_ID),),
        "an unknown name": (("x-nowhere", None),),
        "name and id": (("x-third", third),),
        "neither": ((None, None),),
        "the same by name and id": (("x-third", None), (None, third)),
        "a name twice": (("x-third", None), ("x-third", None)),
        "an id twice": ((None, third), (None, third)),
        "an empty name": (("", None),),
        "the metadata's own": (("__cluster_metadata", None),),
        "none": (),
        "good and bad": (("x-third", None), ("x-nowhere", None), (None, UNKNOWN_ID)),
    }
    for about, states in cases.items():
        session.ask(about, _delete_states(*states), 6)
    await_absence(session, "x-third")
    session.ask("what is left", metadata("x-third", "x-by-id"), 12)


def _delete(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=30_000)


def _delete_states(*states: tuple[str | None, UUID | None]) -> DeleteTopicsRequest:
    topics = [
        DeleteTopicState(name=name) if topic_id is None else DeleteTopicState(name=name, topic_id=topic_id)
        for name, topic_id in states
    ]
    return DeleteTopicsRequest(topics=topics, timeout_ms=30_000)


def grown_topics(session: Session) -> None:
    """CreatePartitions: only upwards, with assignments that fit."""
    create_topic(session, "g-one")
    for version in versions(CreatePartitionsRequest):
        count = version + 2
        session.ask("only tried", _grow("g-one", count, validate_only=True), version)
        session.ask("one more", _grow("g-one", count), version)
        await_topic(session, "g-one", count)
        session.ask("as many as there are", _grow("g-one", count), version)
        session.ask("fewer", _grow("g-one", 1), version)
        session.ask("an unknown topic", _grow("g-nowhere", 3), version)
    count = 10
    cases: dict[str, tuple[int, list[list[int]] | None]] = {
        "none": (0, None),
        "fewer than none": (-1, None),
        "too few assignments": (count, [[1]]),
        "too many assignments": (6, [[1], [1]]),
        "an unknown broker": (6, [[9]]),
        "a broker twice": (6, [[1, 1]]),
        "no broker": (6, [[]]),
        "no assignments": (6, []),
        "a fitting assignment": (6, [[1]]),
    }
    for about, (wanted, brokers) in cases.items():
        session.ask(about, _grow("g-one", wanted, brokers), 3)
    await_topic(session, "g-one", 6)
    create_topic(session, "g-two")
    several = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(name=name, count=wanted, assignments=None)
            for name, wanted in (("g-two", 2), ("g-nowhere", 2), ("g-one", 1), ("", 1))
        ],
        timeout_ms=30_000,
    )
    session.ask("several", several, 3)
    await_topic(session, "g-two", 2)
    twice = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="g-two", count=at, assignments=None) for at in (3, 4)],
        timeout_ms=30_000,
    )
    session.ask("one twice", twice, 3)
    session.ask("no topics", CreatePartitionsRequest(timeout_ms=30_000), 3)
    session.ask("how many there are", metadata("g-one", "g-two"), 12)


def _grow(
    name: str, count: int, brokers: list[list[int]] | None = None, validate_only: bool = False
) -> CreatePartitionsRequest:
    assignments = None
    if brokers is not None:
        assignments = [CreatePartitionsAssignment(broker_ids=each) for each in brokers]
    topic = CreatePartitionsTopic(name=name, count=count, assignments=assignments)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=30_000, validate_only=validate_only)


SCENARIOS = (
    created_in_every_version,
    refused_topics,
    settings_at_creation,
    own_assignments,
    deleted_in_every_version,
    grown_topics,
)
