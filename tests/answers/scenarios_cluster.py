"""DescribeQuorum, UpdateFeatures, UnregisterBroker, DescribeLogDirs and AlterReplicaLogDirs."""

from headrace.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.protocol.messages.api_versions import ApiVersionsRequest
from headrace.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from headrace.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from headrace.protocol.messages.unregister_broker import UnregisterBrokerRequest
from headrace.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.answers.requests import append, batch, create_topic, versions
from tests.answers.session import Session

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def quorum(session: Session) -> None:
    """The one partition of metadata, and others that have no quorum."""
    create_topic(session, "q-topic")
    for version in versions(DescribeQuorumRequest):
        session.ask("the metadata", _describe_quorum("__cluster_metadata", 0), version)
        session.ask("another partition", _describe_quorum("__cluster_metadata", 1), version)
        session.ask("two partitions", _describe_quorum("__cluster_metadata", 0, 1), version)
        session.ask("a topic", _describe_quorum("q-topic", 0), version)
        session.ask("no partition", _describe_quorum("__cluster_metadata"), version)
        session.ask("no topic", DescribeQuorumRequest(), version)


def _describe_quorum(topic: str, *partitions: int) -> DescribeQuorumRequest:
    asked = [DescribeQuorumRequestPartitionData(partition_index=each) for each in partitions]
    return DescribeQuorumRequest(topics=[DescribeQuorumRequestTopicData(topic_name=topic, partitions=asked)])


def refused_features(session: Session) -> None:
    """Levels that are not, go the wrong way, or are asked for twice."""
    cases: dict[str, list[tuple[str, int, int]]] = {
        "an unknown feature": [("tea.version", 1, UPGRADE)],
        "too high": [("group.version", 9, UPGRADE)],
        "below zero": [("group.version", -1, UPGRADE)],
        "as it is": [("group.version", 1, UPGRADE)],
        "down without saying so": [("group.version", 0, UPGRADE)],
        "metadata too high": [("metadata.version", 99, UPGRADE)],
        "metadata too low": [("metadata.version", 1, SAFE_DOWNGRADE)],
        "metadata down without saying so": [("metadata.version", 25, UPGRADE)],
        "metadata away": [("metadata.version", 0, SAFE_DOWNGRADE)],
        "the quorum's version": [("kraft.version", 0, UPGRADE)],
        "an empty name": [("", 1, UPGRADE)],
        "twice": [("group.version", 1, UPGRADE), ("group.version", 1, SAFE_DOWNGRADE)],
        "one good, one bad": [("share.version", 1, UPGRADE), ("tea.version", 1, UPGRADE)],
        "none": [],
    }
    for about, updates in cases.items():
        for version in versions(UpdateFeaturesRequest):
            session.ask(about, _update(updates, version, tried=version > 0), version)
    for kind in (0, 4):
        session.ask(f"upgrade type {kind}", _update([("group.version", 1, kind)], 1, tried=True), 1)


def changed_features(session: Session) -> None:
    """A feature goes down and up again, first as a trial."""
    down = [("streams.version", 0, SAFE_DOWNGRADE)]
    session.ask("down, the oldest way", _update(down, 0), 0)
    for version in versions(UpdateFeaturesRequest, since=1):
        session.ask("down, only tried", _update(down, version, tried=True), version)
        session.ask("down", _update(down, version), version)
        _await_feature(session, "streams.version", 0)
        session.ask("the features now", _named_client(), 4)
        session.ask("up", _update([("streams.version", 1, UPGRADE)], version), version)
        _await_feature(session, "streams.version", 1)
        session.ask("the features again", _named_client(), 4)
    unsafe = [("share.version", 0, UNSAFE_DOWNGRADE), ("group.version", 0, UNSAFE_DOWNGRADE)]
    session.ask("two at once", _update(unsafe, 2), 2)
    session.ask(
        "the quorum's version, only tried", _update([("kraft.version", 1, UPGRADE)], 2, tried=True), 2
    )
    session.ask("metadata down", _update([("metadata.version", 29, SAFE_DOWNGRADE)], 2, tried=True), 2)
    session.ask("metadata far down", _update([("metadata.version", 8, SAFE_DOWNGRADE)], 2, tried=True), 2)
    session.ask("metadata unsafely", _update([("metadata.version", 8, UNSAFE_DOWNGRADE)], 2, tried=True), 2)


def _named_client() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="answers", client_software_version="1")


def _await_feature(session: Session, name: str, level: int) -> None:
    session.settle(
        _named_client(),
        4,
        lambda reply: (
            max([each.max_version_level for each in reply.finalized_features if each.name == name], default=0)
            == level
        ),
    )


def _update(updates: list[tuple[str, int, int]], version: int, tried: bool = False) -> UpdateFeaturesRequest:
    keys = [
        FeatureUpdateKey(feature=name, max_version_level=level, allow_downgrade=kind != UPGRADE)
        if version == 0
        else FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        for name, level, kind in updates
    ]
    return UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=keys, validate_only=tried)


def unknown_brokers(session: Session) -> None:
    """Brokers that are not registered cannot be unregistered."""
    for broker in (7, -1, 2**31 - 1):
        session.ask(f"broker {broker}", UnregisterBrokerRequest(broker_id=broker), 0)


def the_last_broker(session: Session) -> None:
    """A broker that runs is unregistered all the same."""
    session.ask("the broker itself", UnregisterBrokerRequest(broker_id=1), 0)


def log_directories(session: Session) -> None:
    """Sizes of chosen partitions, and of those that are not."""
    create_topic(session, "ld-topic", 2)
    append(session, "ld-topic", batch("a" * 100), batch("b"))
    for version in versions(DescribeLogDirsRequest):
        session.ask("two partitions", _describe_logs("ld-topic", 0, 1), version)
        session.ask("an unknown partition", _describe_logs("ld-topic", 7), version)
        session.ask("an unknown topic", _describe_logs("ld-nowhere", 0), version)
        session.ask("no topics", DescribeLogDirsRequest(topics=[]), version)
        session.ask("no partitions", _describe_logs("ld-topic"), version)


def _describe_logs(topic: str, *partitions: int) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=topic, partitions=list(partitions))])


def all_log_directories(session: Session) -> None:
    """No list means all partitions."""
    for version in versions(DescribeLogDirsRequest):
        session.ask("none there", DescribeLogDirsRequest(topics=None), version)
    create_topic(session, "la-one", 2)
    create_topic(session, "la-two")
    append(session, "la-one", batch("a" * 10), partition=1)
    for version in versions(DescribeLogDirsRequest):
        session.ask("all", DescribeLogDirsRequest(topics=None), version)


def moved_replicas(session: Session) -> None:
    """Replicas can only move to directories that are there."""
    create_topic(session, "mv-topic", 2)
    data = session.target.data_dir
    for version in versions(AlterReplicaLogDirsRequest):
        session.ask("where it is", _move(data, "mv-topic", 0), version)
        session.ask("to nowhere", _move(data + "-nowhere", "mv-topic", 0, 1), version)
        session.ask("a relative path", _move("nowhere", "mv-topic", 0), version)
        session.ask("an empty path", _move("", "mv-topic", 0), version)
        session.ask("an unknown partition", _move(data, "mv-topic", 9), version)
        session.ask("an unknown topic", _move(data, "mv-nowhere", 0), version)
        session.ask("an invalid topic", _move(data, "a b", 0), version)
        session.ask("no directories", AlterReplicaLogDirsRequest(), version)


def _move(path: str, topic: str, *partitions: int) -> AlterReplicaLogDirsRequest:
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=list(partitions))]
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])


SCENARIOS = (quorum, refused_features, unknown_brokers, log_directories, moved_replicas)
ALONE = (changed_features, the_last_broker, all_log_directories)
