"""The node's directories and their `meta.properties`: read, checked against each other, and named."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from headrace.config.node import NodeConfig
from headrace.errors import HeadraceError
from headrace.log.checkpoints import read_clean_shutdown
from headrace.log.meta_properties import (
    FILE_NAME,
    VERSION,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from headrace.metadata.ids import decode_id, encode_id, is_reserved_directory, random_id
from headrace.ports import Clock, Disk, Entropy
from headrace.raft.settings import METADATA_PARTITION

NO_EPOCH: Final = -1


class UnusableDirectories(HeadraceError):
    """Directories that this node cannot run on, with the file and what to do."""


@dataclass(slots=True, frozen=True)
class NodeDirectories:
    """The formatted directories of a node: which cluster they belong to, and the id of each by its path."""

    cluster_id: str
    metadata_log_dir: str
    ids: dict[str, UUID]

    @property
    def metadata_directory_id(self) -> UUID:
        return self.ids[self.metadata_log_dir]


def node_directories(config: NodeConfig) -> list[str]:
    """Every directory a node keeps data in, the metadata's included."""
    return sorted({*config.log_dirs, config.metadata_log_dir})


def load_directories(disk: Disk, clock: Clock, entropy: Entropy, config: NodeConfig) -> NodeDirectories:
    """What the directories say, checked. Those from before Kafka 3.7 have no id and get one."""
    found: dict[str, MetaProperties] = {}
    for directory in node_directories(config):
        properties = read_meta_properties(disk, directory)
        if properties is None:
            raise UnusableDirectories(
                f"No `{FILE_NAME}` found in {directory} (have you run `headrace storage format` to format "
                "the directory?)"
            )
        found[directory] = properties
    cluster_id = verify_directories(found, None, config.node_id)
    ids = {}
    for directory, properties in found.items():
        misplaced = f"{directory}/{METADATA_PARTITION}"
        if directory != config.metadata_log_dir and disk.exists(misplaced):
            raise UnusableDirectories(
                f"Found unexpected metadata location in data directory `{misplaced}` (the configured "
                f"metadata directory is {config.metadata_log_dir})."
            )
        if properties.directory_id is None:
            ids[directory] = random_id(entropy)
            named = MetaProperties(
                properties.cluster_id, properties.node_id, encode_id(ids[directory]), VERSION
            )
            write_meta_properties(disk, directory, named, clock.now_ms())
        else:
            ids[directory] = decode_id(properties.directory_id)
    return NodeDirectories(cluster_id, config.metadata_log_dir, ids)


def previous_broker_epoch(disk: Disk, config: NodeConfig) -> int:
    """The epoch of the broker that stopped cleanly on these directories; -1 if it did not on all of them.

    Ask before the directories are opened: that removes the files which say so."""
    epochs = {read_clean_shutdown(disk, directory) for directory in config.log_dirs}
    found = epochs.pop() if len(epochs) == 1 else None
    return NO_EPOCH if found is None else found


def verify_directories(found: dict[str, MetaProperties], cluster_id: str | None, node_id: int) -> str:
    """Refuse directories of different clusters or nodes, or with one id; returns their cluster's id."""
    seen: dict[str, str] = {}
    for directory, properties in found.items():
        path = f"{directory}/{FILE_NAME}"
        if cluster_id is None:
            cluster_id = properties.cluster_id
        elif properties.cluster_id != cluster_id:
            raise UnusableDirectories(
                f"Invalid cluster.id in: {path}. Expected {cluster_id}, but read {properties.cluster_id}"
            )
        if properties.node_id != node_id:
            raise UnusableDirectories(
                f"Stored node id {properties.node_id} doesn't match previous node id {node_id} in {path}. If "
                "you moved your data, make sure your configured node id matches. If you intend to create a "
                "new node, you should remove all data in your data directories."
            )
        if properties.directory_id is not None:
            _check_directory_id(directory, properties.directory_id, seen)
    return cluster_id or ""


def _check_directory_id(directory: str, directory_id: str, seen: dict[str, str]) -> None:
    try:
        decoded = decode_id(directory_id)
    except ValueError as problem:
        raise UnusableDirectories(f"Invalid directory.id in {directory}/{FILE_NAME}: {problem}") from None
    if is_reserved_directory(decoded):
        raise UnusableDirectories(f"Invalid reserved directory ID {directory_id} found in {directory}")
    if directory_id in seen:
        raise UnusableDirectories(
            f"Duplicate directory ID {directory_id} found. It was the ID of {seen[directory_id]}, but also "
            f"of {directory}"
        )
    seen[directory_id] = directory
