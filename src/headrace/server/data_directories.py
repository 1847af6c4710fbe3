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
from headrace.log.meta_properties import VERSION, MetaProperties, read_meta_properties, write_meta_properties
from headrace.metadata.directories import NodeDirectories, node_directories, verify_directories
from headrace.metadata.ids import decode_id, encode_id, random_id
from headrace.ports import Clock, Disk, Entropy
from headrace.raft.settings import METADATA_PARTITION
from headrace.server.refusals import StartRefused
from headrace.system.directory_lock import DirectoryInUse, DirectoryLock

logger: Final = logging.getLogger("headrace.server")


@dataclass(slots=True)
class DataDirectories:
    """The directories that can be used, and why others can't."""

    usable: NodeDirectories
    offline: dict[str, str] = field(default_factory=dict)


def find_directories(
    config: NodeConfig, disk: Disk, entropy: Entropy, clock: Clock, properties_path: str = "server.properties"
) -> DataDirectories:
    """What the directories' `meta.properties` say; HeadraceError if the node must not use them."""
    found, offline = _read(disk, node_directories(config))
    if config.metadata_log_dir in offline:
        raise StartRefused(
            f"the metadata log directory {config.metadata_log_dir} can't be read: "
            f"{offline[config.metadata_log_dir]}"
        )
    formatted = {path: properties for path, properties in found.items() if properties is not None}
    for path in found:
        if path not in formatted:
            raise StartRefused(_not_formatted(path, config, properties_path, formatted.values()))
        _check_metadata_place(config, disk, path)
    cluster_id = verify_directories(formatted, None, config.node_id)
    ids = {path: _directory_id(disk, entropy, clock, path, each) for path, each in formatted.items()}
    for path, reason in offline.items():
        logger.error("log directory %s is offline: %s", path, reason)
    return DataDirectories(NodeDirectories(cluster_id, config.metadata_log_dir, ids), offline)


def lock_directories(directories: DataDirectories, stack: ExitStack) -> None:
    """Take every directory for this process until the stack is left; StartRefused if another one has it."""
    for path in list(directories.usable.ids):
        try:
            stack.enter_context(DirectoryLock(path))
        except DirectoryInUse as error:
            raise StartRefused(str(error)) from None
        except OSError as error:
            # What can't be locked can't be written either.
            del directories.usable.ids[path]
            directories.offline[path] = f"its lock can't be taken: {error}"
            logger.error("log directory %s is offline: %s", path, directories.offline[path])


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


def _check_metadata_place(config: NodeConfig, disk: Disk, path: str) -> None:
    if path != config.metadata_log_dir and disk.exists(f"{path}/{METADATA_PARTITION}"):
        raise StartRefused(
            f"{path} has a metadata log, but metadata.log.dir is {config.metadata_log_dir}; one of them "
            "is wrong"
        )


def _directory_id(disk: Disk, entropy: Entropy, clock: Clock, path: str, found: MetaProperties) -> UUID:
    """The id of a directory, which gets one if it was formatted before there were any."""
    if found.directory_id is not None:
        return decode_id(found.directory_id)
    fresh = random_id(entropy)
    logger.info("log directory %s had no id and gets %s", path, encode_id(fresh))
    named = replace(found, directory_id=encode_id(fresh), version=VERSION)
    write_meta_properties(disk, path, named, clock.now_ms())
    return fresh
