"""The records a cluster begins with: `bootstrap.checkpoint`, and what a new leader writes first."""

from collections.abc import Sequence
from typing import Final

from headrace.config.alteration import ResourceType
from headrace.errors import HeadraceError
from headrace.metadata.image import MetadataImage
from headrace.metadata.store import NO_TRANSACTION, decode_all
from headrace.metadata.versions import (
    ELR_VERSION,
    KRAFT_VERSION,
    LATEST,
    METADATA_VERSION,
    MetadataVersion,
    metadata_version,
)
from headrace.ports import Disk
from headrace.protocol.disk_records.cluster_metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    UserScramCredentialRecord,
)
from headrace.protocol.message import Message
from headrace.protocol.prefixed import encode_metadata_record
from headrace.raft.batches import DataBatch
from headrace.raft.snapshots import SnapshotBuilder, read_snapshot

FILE_NAME: Final = "bootstrap.checkpoint"
_TRANSACTION_NAME: Final = "Bootstrap records"


class UnusableBootstrap(HeadraceError):
    """Bootstrap records that no cluster can begin with."""


def bootstrap_records(version: MetadataVersion, levels: dict[str, int]) -> list[Message]:
    """The records of a cluster that begins with this version and these levels of features."""
    records: list[Message] = [FeatureLevelRecord(name=METADATA_VERSION, feature_level=version)]
    records.extend(
        FeatureLevelRecord(name=name, feature_level=levels[name])
        for name in sorted(levels)
        if name not in (METADATA_VERSION, KRAFT_VERSION) and levels[name] > 0
    )
    return records


def encode_bootstrap(records: Sequence[Message], now_ms: int) -> bytes:
    """The content of a bootstrap file."""
    builder = SnapshotBuilder(now_ms, 0)
    builder.add(encode_metadata_record(record, 0) for record in records)
    return builder.finish()


def describe_bootstrap(records: Sequence[Message], version: MetadataVersion) -> str:
    """The records in the words of Kafka's storage tool, but for what is secret about credentials."""
    told = ", ".join(f"ApiMessageAndVersion({_described(record)} at version 0)" for record in records)
    level = f"metadataVersionLevel={version:d}"
    return f"BootstrapMetadata(records=[{told}], {level}, source=format command)"


def _described(record: Message) -> str:
    match record:
        case FeatureLevelRecord():
            return f"FeatureLevelRecord(name='{record.name}', featureLevel={record.feature_level:d})"
        case UserScramCredentialRecord():
            return (
                f"UserScramCredentialRecord(name='{record.name}', mechanism={record.mechanism}, "
                f"salt=[hidden], storedKey=[hidden], serverKey=[hidden], iterations={record.iterations})"
            )
        case _:
            return repr(record)


def read_bootstrap(disk: Disk, directory: str) -> list[Message]:
    """The records in a directory's bootstrap file; without one, the latest version alone."""
    path = f"{directory}/{FILE_NAME}"
    if not disk.exists(path):
        return bootstrap_records(LATEST, {})
    records: list[Message] = []
    for batch in read_snapshot(disk, path):
        if isinstance(batch, DataBatch):
            records += decode_all(batch.values)
    return records


def activation_records(
    image: MetadataImage,
    bootstrap: Sequence[Message],
    transaction_offset: int,
    min_insync_replicas: int,
) -> list[Message]:
    """What a leader writes before it takes requests: the bootstrap records if there are none yet, and the end
    of a transaction that a former leader has left open."""
    aborted: list[Message] = []
    if transaction_offset != NO_TRANSACTION:
        aborted.append(AbortTransactionRecord(reason="Controller failover"))
    if image.has_metadata_version:
        return aborted
    levels = {each.name: each.feature_level for each in bootstrap if isinstance(each, FeatureLevelRecord)}
    if METADATA_VERSION not in levels:
        raise UnusableBootstrap(
            f"No FeatureLevelRecord for {METADATA_VERSION} is among the bootstrap records"
        )
    records = list(bootstrap)
    if levels.get(ELR_VERSION, 0) > 0:
        records.append(
            ConfigRecord(
                resource_type=ResourceType.BROKER,
                resource_name="",
                name="min.insync.replicas",
                value=str(min_insync_replicas),
            )
        )
    if metadata_version(levels[METADATA_VERSION]).has_transactions:
        records = [BeginTransactionRecord(name=_TRANSACTION_NAME), *records, EndTransactionRecord()]
    return aborted + records
