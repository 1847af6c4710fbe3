"""The node's data directories: formatted, for this node and this cluster, and used by nobody else.

A directory that can't be read is left out, and the node goes on with the others; but not without the one that
has the metadata log."""

import logging
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from headrace.config.node import NodeConfig
from headrace.errors import HeadraceError
from headrace.log.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from headrace.metadata.ids import decode_id, encode_id, is_reserved_directory, random_id
from headrace.ports import Clock, Disk, Entropy
from headrace.raft.settings import METADATA_PARTITION
from headrace.server.refusals import StartRefused
from headrace.system.directory_lock import DirectoryInUse, DirectoryLock

logger: Final = logging.getLogger("headrace.server")


@dataclass(slots=True)
class DataDirectories:
    """Which cluster they belong to, the id of each one that can be used, and why others can't."""

    cluster_id: str
    ids: dict[str, UUID]
    offline: dict[str, str] = field(default_factory=dict)


def find_directories(
    config: NodeConfig, disk: Disk, entropy: Entropy, clock: Clock, properties_path: str = "server.properties"
) -> DataDirectories:
    """What the directories' `meta.properties` say; StartRefused if the node must not use them."""
    paths = sorted({*config.log_dirs, config.metadata_log_dir})
    found, offline = _read(disk, paths)
    if config.metadata_log_dir in offline:
        raise StartRefused(
            f"the metadata log directory {config.metadata_log_dir} can't be read: "
            f"{offline[config.metadata_log_dir]}"
        )
    formatted = {path: properties for path, properties in found.items() if properties is not None}
    for path in found:
        if path not in formatted:
            raise StartRefused(_not_formatted(path, config, properties_path, formatted.values()))
    if not formatted:
        raise StartRefused(f"none of the log directories can be read: {'; '.join(offline.values())}")
    cluster_id = _common_cluster(formatted)
    for path, properties in formatted.items():
        _check_node(config, path, properties)
        _check_metadata_place(config, disk, path)
    ids = {
        path: _directory_id(disk, entropy, clock, path, properties) for path, properties in formatted.items()
    }
    _check_ids(ids)
    for path, reason in offline.items():
        logger.error("log directory %s is offline: %s", path, reason)
    return DataDirectories(cluster_id, ids, offline)


def lock_directories(directories: DataDirectories, stack: ExitStack) -> None:
    """Take every directory for this process until the stack is left; StartRefused if another one has it."""
    for path in list(directories.ids):
        try:
            stack.enter_context(DirectoryLock(path))
        except DirectoryInUse as error:
            raise StartRefused(str(error)) from None
        except OSError as error:
            # What can't be locked can't be written either.
            del directories.ids[path]
            directories.offline[path] = f"its lock can't be taken: {error}"
            logger.error("log directory %s is offline: %s", path, directories.offline[path])
    if not directories.ids:
        raise StartRefused("none of the log directories can be written")


def _read(disk: Disk, paths: Iterable[str]) -> tuple[dict[str, MetaProperties | None], dict[str, str]]:
    found: dict[str, MetaProperties | None] = {}
    offline: dict[str, str] = {}
    for path in paths:
        try:
            found[path] = read_meta_properties(disk, path)
        except (OSError, HeadraceError) as error:
            offline[path] = str(error)
    return found, offline


def _not_formatted(
    path: str, config: NodeConfig, properties_path: str, others: Iterable[MetaProperties]
) -> str:
    """What to type, with the options that this configuration needs."""
    known = next(iter(others), None)
    cluster = known.cluster_id if known is not None else '"$(headrace storage random-uuid)"'
    options = " --ignore-formatted" if known is not None else ""
    if not config.voters:
        options += " --standalone"
    command = f"headrace storage format -t {cluster} -c {properties_path}{options}"
    return f"{path} is not formatted (it has no meta.properties); this does it: {command}"


def _common_cluster(formatted: dict[str, MetaProperties]) -> str:
    first, *others = formatted.items()
    for path, properties in others:
        if properties.cluster_id != first[1].cluster_id:
            raise StartRefused(
                f"{path} belongs to cluster {properties.cluster_id}, but {first[0]} to "
                f"{first[1].cluster_id}; log.dirs may only name directories of one cluster"
            )
    return first[1].cluster_id


def _check_node(config: NodeConfig, path: str, properties: MetaProperties) -> None:
    if properties.node_id != config.node_id:
        raise StartRefused(
            f"{path} belongs to node {properties.node_id}, but node.id is {config.node_id}; set node.id to "
            f"{properties.node_id} if the data was moved here, or name an empty directory"
        )


def _check_metadata_place(config: NodeConfig, disk: Disk, path: str) -> None:
    if path != config.metadata_log_dir and disk.exists(f"{path}/{METADATA_PARTITION}"):
        raise StartRefused(
            f"{path} has a metadata log, but metadata.log.dir is {config.metadata_log_dir}; one of them "
            "is wrong"
        )


def _directory_id(disk: Disk, entropy: Entropy, clock: Clock, path: str, properties: MetaProperties) -> UUID:
    """The id of a directory, which gets one if it was formatted before there were any."""
    if properties.directory_id is None:
        fresh = random_id(entropy)
        logger.info("giving log directory %s the id %s", path, encode_id(fresh))
        named = replace(properties, directory_id=encode_id(fresh))
        write_meta_properties(disk, path, named, clock.now_ms())
        return fresh
    try:
        return decode_id(properties.directory_id)
    except ValueError:
        raise StartRefused(
            f"{path}/meta.properties has the directory.id {properties.directory_id!r}"
        ) from None


def _check_ids(ids: dict[str, UUID]) -> None:
    seen: dict[UUID, str] = {}
    for path, directory_id in ids.items():
        if is_reserved_directory(directory_id):
            raise StartRefused(f"{path} has the reserved directory.id {encode_id(directory_id)}")
        if directory_id in seen:
            raise StartRefused(
                f"{path} and {seen[directory_id]} have the same directory.id {encode_id(directory_id)}: "
                "one is a copy of the other"
            )
        seen[directory_id] = path
