"""Changing levels of features."""

import pytest

from headrace.errors import ErrorCode
from headrace.protocol.disk_records.cluster_metadata import ConfigRecord, FeatureLevelRecord
from headrace.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.support_metadata import MetadataNode, on_loop, started

UPGRADE, SAFE, UNSAFE = 1, 2, 3
FAILED = "The update failed for all features since the following feature had an error: "


async def update(
    node: MetadataNode, *updates: tuple[str, int, int], validate_only: bool = False, version: int = 2
) -> UpdateFeaturesResponse:
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in updates
        ],
        validate_only=validate_only,
    )
    return await node.metadata.controller.update_features(request, version)


async def of_release(release: str) -> MetadataNode:
    node = MetadataNode()
    node.format(release)
    await node.start()
    return node


@on_loop
async def test_metadata_version_and_features_are_raised_together() -> None:
    node = await of_release("4.0")
    response = await update(node, ("metadata.version", 30, UPGRADE), ("share.version", 1, UPGRADE))
    assert (response.error_code, response.error_message, response.results) == (0, None, [])
    assert node.image.features["metadata.version"] == 30
    assert node.image.features["share.version"] == 1
    await node.create("t")
    assert node.image.topics["t"].partitions[0].directories


@on_loop
async def test_versions_up_to_1_answer_for_each_feature() -> None:
    node = await of_release("4.0")
    response = await update(node, ("group.version", 1, UPGRADE), version=1)
    assert [(each.feature, each.error_code, each.error_message) for each in response.results] == [
        ("group.version", 0, "NONE")
    ]


@on_loop
async def test_validate_only_changes_nothing() -> None:
    node = await of_release("4.0")
    before = node.metadata.quorum.next_offset
    response = await update(
        node, ("metadata.version", 30, UPGRADE), ("kraft.version", 1, UPGRADE), validate_only=True
    )
    assert response.error_code == ErrorCode.NONE
    assert node.metadata.quorum.next_offset == before


@pytest.mark.parametrize(
    ("update_of", "reason"),
    [
        (
            ("group.version", 0, 0),
            "Invalid update version 0 for feature group.version. The controller does not support the given "
            "upgrade type.",
        ),
        (
            ("no.such.feature", 0, UPGRADE),
            "Invalid update version 0 for feature no.such.feature. Feature no.such.feature not found.",
        ),
        (
            ("group.version", -1, UPGRADE),
            "Invalid update version -1 for feature group.version. A feature version cannot be less than 0.",
        ),
        (
            ("group.version", 5, UPGRADE),
            "Invalid update version 5 for feature group.version. Local controller 1 only supports versions "
            "0-1",
        ),
        (
            ("colour.version", 1, UPGRADE),
            "Invalid update version 1 for feature colour.version. Local controller 1 does not support this "
            "feature.",
        ),
        (
            ("group.version", 0, UPGRADE),
            "Invalid update version 0 for feature group.version. Can't downgrade the version of this feature "
            "without setting the upgrade type to either safe or unsafe downgrade.",
        ),
        (
            ("share.version", 1, SAFE),
            "Invalid update version 1 for feature share.version. Can't downgrade to a newer version.",
        ),
        (
            ("metadata.version", 31, UPGRADE),
            "Invalid update version 31 for feature metadata.version. Local controller 1 only supports "
            "versions 7-30",
        ),
        (
            ("metadata.version", 22, SAFE),
            "Unsupported metadata.version downgrade from 25 to 22. Refusing to perform the requested "
            "downgrade because it might delete metadata information.",
        ),
        (
            ("metadata.version", 22, UNSAFE),
            "Unsupported metadata.version downgrade from 25 to 22. Unsafe metadata downgrade is not "
            "supported in this version.",
        ),
    ],
)
@on_loop
async def test_a_step_that_cannot_be_taken_stops_the_whole_request(
    update_of: tuple[str, int, int], reason: str
) -> None:
    node = await of_release("4.0")
    before = dict(node.image.features)
    response = await update(node, ("transaction.version", 1, SAFE), update_of)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert response.error_message == FAILED + reason
    assert node.image.features == before


@on_loop
async def test_a_safe_downgrade_is_made() -> None:
    node = await of_release("4.0")
    response = await update(node, ("metadata.version", 23, SAFE), ("group.version", 0, SAFE))
    assert response.error_code == ErrorCode.NONE
    assert node.image.features == {"metadata.version": 23, "transaction.version": 2}


@on_loop
async def test_a_feature_needs_what_it_depends_on_after_the_request() -> None:
    node = await of_release("3.9")
    response = await update(node, ("eligible.leader.replicas.version", 1, UPGRADE))
    assert response.error_message == (
        FAILED + "Invalid update version 1 for feature eligible.leader.replicas.version. "
        "eligible.leader.replicas.version could not be set to 1 because it depends on metadata.version "
        "level 23"
    )
    response = await update(
        node, ("metadata.version", 25, UPGRADE), ("eligible.leader.replicas.version", 1, UPGRADE)
    )
    assert response.error_code == ErrorCode.NONE


@on_loop
async def test_eligible_leaders_come_with_a_min_isr_for_the_cluster() -> None:
    node = await of_release("4.0")
    before = node.metadata.quorum.next_offset
    await update(node, ("eligible.leader.replicas.version", 1, UPGRADE))
    config, feature = node.records(before)
    assert isinstance(config, ConfigRecord)
    assert (config.resource_name, config.name, config.value) == ("", "min.insync.replicas", "1")
    assert isinstance(feature, FeatureLevelRecord)
    assert node.image.elr_enabled


@on_loop
async def test_kraft_version_is_raised_in_the_quorums_own_records() -> None:
    node = await started()
    assert node.metadata.controller.kraft_version == 0
    response = await update(node, ("kraft.version", 1, UPGRADE))
    assert response.error_code == ErrorCode.NONE
    assert node.metadata.controller.kraft_version == 1
    response = await update(node, ("kraft.version", 0, SAFE))
    assert response.error_message == (
        FAILED + "Invalid update version 0 for feature kraft.version. Can't downgrade the version of this "
        "feature."
    )
    again = node.restarted()
    await again.start()
    assert again.metadata.controller.kraft_version == 1
    assert "kraft.version" not in again.image.features


@on_loop
async def test_a_raised_version_is_filled_with_what_it_has_room_for() -> None:
    node = await of_release("3.3")
    await node.create("t")
    assert node.image.controllers == {}
    assert node.image.brokers[1].log_dirs == ()
    epoch = node.metadata.broker_epoch
    await update(node, ("metadata.version", 30, UPGRADE))
    await node.metadata.tick()
    broker = node.image.brokers[1]
    assert list(node.image.controllers) == [1]
    assert broker.log_dirs == tuple(node.metadata.directories.ids.values())
    assert (broker.epoch, broker.fenced, broker.cordoned_log_dirs) == (epoch, False, ())
    before = node.metadata.quorum.next_offset
    await node.metadata.tick()
    assert node.metadata.quorum.next_offset == before
    assert node.image.topics["t"].partitions[0].leader == 1
