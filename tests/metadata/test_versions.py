"""Levels of metadata.version and of features."""

import pytest

from headrace.metadata.versions import (
    LATEST,
    METADATA_VERSION,
    MINIMUM,
    MetadataVersion,
    UnknownVersion,
    check_dependencies,
    default_level,
    feature_level,
    metadata_changes_between,
    metadata_version,
    release_version,
    supported_features,
)


@pytest.mark.parametrize(
    ("text", "level"),
    [("3.3", 7), ("3.9", 21), ("4.0", 25), ("4.0.1", 25), ("4.0-IV1", 23), ("4.2.x", 29), ("4.3-IV0", 30)],
)
def test_a_release_stands_for_its_last_version(text: str, level: int) -> None:
    assert release_version(text) == level


@pytest.mark.parametrize("text", ["", "3.2", "4.4", "4.4-IV0", "latest", "3"])
def test_an_unknown_release_is_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(UnknownVersion, match=r"3\.3-IV3, .*, 4\.3-IV0"):
        release_version(text)


def test_versions_are_spelt_as_kafka_spells_them() -> None:
    assert str(LATEST) == "4.3-IV0"
    assert str(MINIMUM) == "3.3-IV3"
    assert LATEST.release == "4.3"


def test_an_unknown_level_names_the_bounds() -> None:
    with pytest.raises(UnknownVersion, match="from 7 to 31"):
        metadata_version(6)


@pytest.mark.parametrize(
    ("level", "register", "partition"),
    [(7, 1, 0), (8, 2, 0), (16, 2, 0), (17, 3, 1), (22, 3, 1), (23, 3, 2), (29, 3, 2), (30, 4, 2)],
)
def test_records_are_written_in_the_version_that_the_level_allows(
    level: int, register: int, partition: int
) -> None:
    version = MetadataVersion(level)
    assert (version.register_broker_record, version.partition_record) == (register, partition)


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("3.9", {"transaction.version": 0, "group.version": 0, "kraft.version": 1}),
        ("4.0", {"transaction.version": 2, "group.version": 1, "eligible.leader.replicas.version": 0}),
        ("4.1", {"eligible.leader.replicas.version": 1, "share.version": 0, "streams.version": 0}),
        ("4.3", {"eligible.leader.replicas.version": 1, "share.version": 1, "streams.version": 1}),
    ],
)
def test_a_new_cluster_gets_the_features_of_its_release(release: str, expected: dict[str, int]) -> None:
    version = release_version(release)
    assert {name: default_level(name, version) for name in expected} == expected


def test_only_steps_over_new_records_change_metadata() -> None:
    assert not metadata_changes_between(MetadataVersion.V4_2_IV1, MetadataVersion.V4_0_IV1)
    assert metadata_changes_between(MetadataVersion.V4_2_IV1, MetadataVersion.V4_0_IV0)
    assert metadata_changes_between(MetadataVersion.V4_3_IV0, MetadataVersion.V4_2_IV1)
    assert not metadata_changes_between(LATEST, LATEST)


def test_a_feature_needs_what_it_depends_on() -> None:
    check_dependencies("eligible.leader.replicas.version", 1, {METADATA_VERSION: 23})
    with pytest.raises(UnknownVersion, match=r"depends on metadata\.version level 23"):
        check_dependencies("eligible.leader.replicas.version", 1, {METADATA_VERSION: 22})
    with pytest.raises(UnknownVersion, match=r"depends on metadata\.version=7"):
        check_dependencies("group.version", 1, {})
    with pytest.raises(UnknownVersion, match="feature level 9"):
        feature_level("group.version", 9)


def test_supported_ranges_are_those_of_4_3_1() -> None:
    assert supported_features() == {
        "metadata.version": (7, 30),
        "kraft.version": (0, 1),
        "transaction.version": (0, 2),
        "group.version": (0, 1),
        "eligible.leader.replicas.version": (0, 1),
        "share.version": (0, 1),
        "streams.version": (0, 1),
    }
