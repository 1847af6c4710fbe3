"""metadata.version and the other features: their levels, what each brings, and which belong to a release.

Facts only: which record versions a level allows, which features a release turns on, and what a feature
depends on."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from headrace.errors import HeadraceError

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"


class UnknownVersion(HeadraceError):
    """A release or feature level that nobody knows."""


class MetadataVersion(IntEnum):
    """The levels of metadata.version that a node of 4.3 can run with."""

    V3_3_IV3 = 7
    V3_4_IV0 = 8
    V3_5_IV0 = 9
    V3_5_IV1 = 10
    V3_5_IV2 = 11
    V3_6_IV0 = 12
    V3_6_IV1 = 13
    V3_6_IV2 = 14
    V3_7_IV0 = 15
    V3_7_IV1 = 16
    V3_7_IV2 = 17
    V3_7_IV3 = 18
    V3_7_IV4 = 19
    V3_8_IV0 = 20
    V3_9_IV0 = 21
    V4_0_IV0 = 22
    V4_0_IV1 = 23
    V4_0_IV2 = 24
    V4_0_IV3 = 25
    V4_1_IV0 = 26
    V4_1_IV1 = 27
    V4_2_IV0 = 28
    V4_2_IV1 = 29
    V4_3_IV0 = 30

    @property
    def release(self) -> str:
        """The release it belongs to, such as 4.3."""
        major, minor, _ = self.name[1:].split("_")
        return f"{major}.{minor}"

    def __str__(self) -> str:
        return f"{self.release}-{self.name.rpartition('_')[2]}"

    @property
    def changes_metadata(self) -> bool:
        """Whether this level brought records that an older node would not understand."""
        return self in _CHANGES_METADATA

    @property
    def has_scram(self) -> bool:
        return self >= MetadataVersion.V3_5_IV2

    @property
    def bumps_epoch_on_isr_shrink(self) -> bool:
        return self < MetadataVersion.V3_6_IV0

    @property
    def has_transactions(self) -> bool:
        """Whether records may be bundled between begin and end."""
        return self >= MetadataVersion.V3_6_IV1

    @property
    def has_delegation_tokens(self) -> bool:
        return self >= MetadataVersion.V3_6_IV2

    @property
    def has_controller_registration(self) -> bool:
        return self >= MetadataVersion.V3_7_IV0

    @property
    def has_directories(self) -> bool:
        """Whether partitions say in which directory each replica lies."""
        return self >= MetadataVersion.V3_7_IV2

    @property
    def has_elr(self) -> bool:
        return self >= MetadataVersion.V4_0_IV1

    @property
    def has_cordoned_log_dirs(self) -> bool:
        return self >= MetadataVersion.V4_3_IV0

    @property
    def register_broker_record(self) -> int:
        """The version of RegisterBrokerRecord to write."""
        if self.has_cordoned_log_dirs:
            return 4
        if self.has_directories:
            return 3
        return 2 if self >= MetadataVersion.V3_4_IV0 else 1

    @property
    def partition_record(self) -> int:
        """The version of PartitionRecord and PartitionChangeRecord to write."""
        if self.has_elr:
            return 2
        return 1 if self.has_directories else 0


_CHANGES_METADATA: Final = frozenset(
    {
        MetadataVersion.V3_3_IV3,
        MetadataVersion.V3_4_IV0,
        MetadataVersion.V3_5_IV2,
        MetadataVersion.V3_6_IV1,
        MetadataVersion.V3_6_IV2,
        MetadataVersion.V3_7_IV0,
        MetadataVersion.V3_7_IV2,
        MetadataVersion.V4_0_IV1,
        MetadataVersion.V4_3_IV0,
    }
)
MINIMUM: Final = MetadataVersion.V3_3_IV3
LATEST: Final = MetadataVersion.V4_3_IV0
#: The highest level that 4.3.1 knows, stable or not; its messages name it.
LATEST_KNOWN_LEVEL: Final = 31


def metadata_version(level: int) -> MetadataVersion:
    """The version with this level."""
    try:
        return MetadataVersion(level)
    except ValueError:
        raise UnknownVersion(
            f"No MetadataVersion with feature level {level}. Valid feature levels are from {MINIMUM:d} to "
            f"{LATEST_KNOWN_LEVEL}."
        ) from None


def release_version(text: str) -> MetadataVersion:
    """The version that a release such as 4.0, 4.0.1 or 4.0-IV3 stands for."""
    parts = text.split(".")
    key = text if len(parts) <= 2 else ".".join(parts[:2])
    for version in reversed(MetadataVersion):
        if key in (str(version), version.release):
            return version
    supported = ", ".join(map(str, MetadataVersion))
    raise UnknownVersion(f"Unknown metadata.version '{text}'. Supported metadata.version are: {supported}")


def metadata_changes_between(one: MetadataVersion, other: MetadataVersion) -> bool:
    """Whether a step between two versions may lose records."""
    low, high = min(one, other), max(one, other)
    return any(version.changes_metadata for version in MetadataVersion if low < version <= high)


@dataclass(slots=True, frozen=True)
class FeatureLevel:
    """One level of a feature: since which release new clusters have it, and what else it needs."""

    level: int
    since: MetadataVersion
    needs: dict[str, int] = field(default_factory=dict)


_OFF: Final = FeatureLevel(0, MINIMUM)
#: Every feature besides metadata.version, in Kafka's order, with its levels.
FEATURES: Final[dict[str, tuple[FeatureLevel, ...]]] = {
    KRAFT_VERSION: (_OFF, FeatureLevel(1, MetadataVersion.V3_9_IV0)),
    "transaction.version": (
        _OFF,
        FeatureLevel(1, MetadataVersion.V4_0_IV2),
        FeatureLevel(2, MetadataVersion.V4_0_IV2),
    ),
    "group.version": (_OFF, FeatureLevel(1, MetadataVersion.V4_0_IV0)),
    ELR_VERSION: (
        _OFF,
        FeatureLevel(1, MetadataVersion.V4_1_IV0, {METADATA_VERSION: int(MetadataVersion.V4_0_IV1)}),
    ),
    "share.version": (_OFF, FeatureLevel(1, MetadataVersion.V4_2_IV0)),
    "streams.version": (_OFF, FeatureLevel(1, MetadataVersion.V4_2_IV1)),
}


def supported_features() -> dict[str, tuple[int, int]]:
    """The range of levels this software supports of every feature, metadata.version included."""
    ranges = {METADATA_VERSION: (int(MINIMUM), int(LATEST))}
    for name, levels in FEATURES.items():
        ranges[name] = (levels[0].level, levels[-1].level)
    return ranges


def default_level(name: str, version: MetadataVersion) -> int:
    """The level that a new cluster of this version gets."""
    return max(each.level for each in FEATURES[name] if each.since <= version)


def feature_level(name: str, level: int) -> FeatureLevel:
    """One level of a feature."""
    if name not in FEATURES:
        raise UnknownVersion(f"Feature {name} not found.")
    for each in FEATURES[name]:
        if each.level == level:
            return each
    raise UnknownVersion(f"No feature:{name} with feature level {level}")


def check_dependencies(name: str, level: int, levels: dict[str, int]) -> None:
    """Refuse a level whose needs are not met by the other levels."""
    chosen = feature_level(name, level)
    if level >= 1 and levels.get(METADATA_VERSION, 0) < MINIMUM:
        raise UnknownVersion(
            f"{name} could not be set to {level} because it depends on metadata.version={MINIMUM:d} "
            f"({MINIMUM})"
        )
    for needed, least in chosen.needs.items():
        if levels.get(needed, 0) < least:
            raise UnknownVersion(
                f"{name} could not be set to {level} because it depends on {needed} level {least}"
            )
