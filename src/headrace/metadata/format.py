"""Formatting a node's directories, and telling what is in them: what `headrace storage` does.

    plan = format_plan(config, cluster_id, standalone=True, ...)
    for line in format_directories(disk, clock, entropy, plan): print(line)
    lines, exit_code = storage_info(disk, config)

The files are those of Kafka's own storage tool: `meta.properties`, `bootstrap.checkpoint`, and for a quorum
that keeps its voters in the log the snapshot `00000000000000000000-0000000000.checkpoint`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from headrace.config.endpoints import Address
from headrace.config.node import NodeConfig
from headrace.errors import HeadraceError
from headrace.log.checkpoints import CorruptCheckpoint
from headrace.log.meta_properties import (
    FILE_NAME,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from headrace.metadata.bootstrap import FILE_NAME as BOOTSTRAP_FILE
from headrace.metadata.bootstrap import bootstrap_records, describe_bootstrap, encode_bootstrap
from headrace.metadata.directories import node_directories, verify_directories
from headrace.metadata.ids import encode_id, random_id
from headrace.metadata.scram_arguments import scram_record
from headrace.metadata.versions import (
    FEATURES,
    KRAFT_VERSION,
    LATEST,
    METADATA_VERSION,
    MetadataVersion,
    check_dependencies,
    default_level,
    feature_level,
    metadata_version,
    release_version,
)
from headrace.ports import Clock, Disk, Entropy
from headrace.protocol.message import Message
from headrace.raft.settings import METADATA_PARTITION
from headrace.raft.snapshots import BOOTSTRAP_ID, SnapshotBuilder, write_snapshot
from headrace.raft.voters import Voter, parse_initial_controllers

_VOTERS_KEY: Final = "controller.quorum.voters"


class FormatRefused(HeadraceError):
    """A wish that cannot be met; nothing was written."""


@dataclass(slots=True, frozen=True)
class FormatPlan:
    """What to write where."""

    cluster_id: str
    node_id: int
    directories: tuple[str, ...]
    metadata_log_dir: str
    version: MetadataVersion
    levels: dict[str, int]
    initial_voters: tuple[Voter, ...] | None = None
    ignore_formatted: bool = False
    scram_arguments: tuple[str, ...] = ()


def format_plan(
    config: NodeConfig,
    cluster_id: str,
    entropy: Entropy,
    *,
    release: str | None = None,
    features: Sequence[str] = (),
    standalone: bool = False,
    initial_controllers: str | None = None,
    no_initial_controllers: bool = False,
    ignore_formatted: bool = False,
    scram_arguments: Sequence[str] = (),
) -> FormatPlan:
    """The plan that follows from a configuration and the flags of the command; FormatRefused with the reason
    where they do not go together."""
    if not config.roles:
        raise FormatRefused("process.roles is not set: only nodes of a metadata quorum are formatted")
    static = bool(config.voters)
    if static and (initial_controllers is not None or standalone):
        raise FormatRefused(
            f"You cannot specify {_VOTERS_KEY} and format the node with --initial-controllers or "
            f"--standalone. If you want to use dynamic quorum, please remove {_VOTERS_KEY} and specify "
            "controller.quorum.bootstrap.servers instead."
        )
    voters = _initial_voters(config, entropy, standalone, initial_controllers)
    if config.is_controller and not static and voters is None and not no_initial_controllers:
        raise FormatRefused(
            f"Because {_VOTERS_KEY} is not set on this controller, you must specify one of the following: "
            "--standalone, --initial-controllers, or --no-initial-controllers."
        )
    asked = dict(_parse_feature(text) for text in features)
    version = _release(release, asked)
    levels = _levels(version, asked, dynamic_quorum=not static)
    if scram_arguments and not version.has_scram:
        least = MetadataVersion.V3_5_IV2
        raise FormatRefused(f"SCRAM is only supported in {METADATA_VERSION} {least} or later.")
    return FormatPlan(
        cluster_id,
        config.node_id,
        tuple(node_directories(config)),
        config.metadata_log_dir,
        version,
        levels,
        voters,
        ignore_formatted,
        tuple(scram_arguments),
    )


def _initial_voters(
    config: NodeConfig, entropy: Entropy, standalone: bool, initial_controllers: str | None
) -> tuple[Voter, ...] | None:
    listener = config.controller_listener_names[0] if config.controller_listener_names else ""
    if initial_controllers is not None:
        return parse_initial_controllers(initial_controllers, listener)
    if not standalone:
        return None
    if not config.is_controller:
        raise FormatRefused("You can only use --standalone on a controller.")
    if not config.advertised_controller_listeners:
        raise FormatRefused("No controller listeners found.")
    endpoint = config.advertised_controller_listeners[0]
    address = Address(endpoint.host or "localhost", endpoint.port)
    return (Voter(config.node_id, random_id(entropy), ((listener, address),)),)


def _parse_feature(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not equals:
        raise FormatRefused(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        return name.strip(), int(level.strip())
    except ValueError:
        shown = level.strip()
        raise FormatRefused(
            f"Can't parse feature=level string {text}: unable to parse {shown} as a short."
        ) from None


def _release(release: str | None, asked: dict[str, int]) -> MetadataVersion:
    if METADATA_VERSION not in asked:
        return LATEST if release is None else release_version(release)
    if release is not None:
        raise FormatRefused(
            f"Use --release-version instead of --feature {METADATA_VERSION}=X to avoid ambiguity."
        )
    return metadata_version(asked[METADATA_VERSION])


def _levels(version: MetadataVersion, asked: dict[str, int], *, dynamic_quorum: bool) -> dict[str, int]:
    levels = {METADATA_VERSION: int(version)}
    for name, level in asked.items():
        if name != METADATA_VERSION and name not in FEATURES:
            known = ", ".join(sorted(FEATURES))
            raise FormatRefused(f"Unsupported feature: {name}. Supported features are: {known}")
        levels[name] = level
    levels[KRAFT_VERSION] = _kraft_level(asked.get(KRAFT_VERSION), dynamic_quorum=dynamic_quorum)
    for name in FEATURES:
        levels.setdefault(name, default_level(name, version))
    for name in FEATURES:
        feature_level(name, levels[name])
        check_dependencies(name, levels[name], levels)
    return levels


def _kraft_level(asked: int | None, *, dynamic_quorum: bool) -> int:
    if asked is None:
        return 1 if dynamic_quorum else 0
    flags = "--standalone, --initial-controllers, or --no-initial-controllers"
    if asked == 0 and dynamic_quorum:
        raise FormatRefused(
            f"Cannot set kraft.version to 0 if {_VOTERS_KEY} is empty and one of the flags {flags} is used. "
            "For dynamic controllers support, try removing the --feature flag for kraft.version."
        )
    if asked > 0 and not dynamic_quorum:
        raise FormatRefused(
            f"Cannot set kraft.version to {asked} unless {_VOTERS_KEY} is empty and one of the flags {flags} "
            f"is used. For dynamic controllers support, try using one of {flags} and removing {_VOTERS_KEY}."
        )
    return asked


def format_directories(disk: Disk, clock: Clock, entropy: Entropy, plan: FormatPlan) -> Iterator[str]:
    """Format the directories that are not yet; yields a line about each.

    The properties file comes last: a directory is formatted once it is there, and may be formatted again
    after a crash before that."""
    formatted: dict[str, MetaProperties] = {}
    for directory in plan.directories:
        found = read_meta_properties(disk, directory)
        if found is not None:
            formatted[directory] = found
    verify_directories(formatted, plan.cluster_id, plan.node_id)
    if formatted and not plan.ignore_formatted:
        raise FormatRefused(
            f"Log directory {next(iter(formatted))} is already formatted. Use --ignore-formatted to ignore "
            "this directory and format the others."
        )
    new = [directory for directory in plan.directories if directory not in formatted]
    if not new:
        yield "All of the log directories are already formatted."
        return
    records: list[Message] = bootstrap_records(plan.version, plan.levels)
    records += [scram_record(argument, entropy) for argument in plan.scram_arguments]
    yield f"Bootstrap metadata: {describe_bootstrap(records, plan.version)}"
    content = encode_bootstrap(records, clock.now_ms())
    for directory in new:
        yield _format_directory(disk, clock, entropy, plan, directory, content)


def _format_directory(
    disk: Disk, clock: Clock, entropy: Entropy, plan: FormatPlan, directory: str, bootstrap: bytes
) -> str:
    now_ms = clock.now_ms()
    directory_id = random_id(entropy)
    kind = "data directory"
    disk.make_directory(directory)
    disk.replace(f"{directory}/{BOOTSTRAP_FILE}", bootstrap)
    if directory == plan.metadata_log_dir:
        kind = "metadata directory"
        if plan.initial_voters is not None:
            kind = "dynamic metadata directory"
            for voter in plan.initial_voters:
                if voter.id == plan.node_id:
                    kind, directory_id = "dynamic metadata voter directory", voter.directory_id
            _write_voters(disk, plan, directory, now_ms)
    properties = MetaProperties(plan.cluster_id, plan.node_id, encode_id(directory_id))
    write_meta_properties(disk, directory, properties, now_ms)
    return f"Formatting {kind} {directory} with {METADATA_VERSION} {plan.version}."


def _write_voters(disk: Disk, plan: FormatPlan, directory: str, now_ms: int) -> None:
    log_directory = f"{directory}/{METADATA_PARTITION}"
    disk.make_directory(log_directory)
    builder = SnapshotBuilder(
        now_ms, now_ms, kraft_version=plan.levels[KRAFT_VERSION], voters=plan.initial_voters
    )
    write_snapshot(disk, log_directory, BOOTSTRAP_ID, builder.finish())


def storage_info(disk: Disk, config: NodeConfig) -> tuple[list[str], int]:
    """What `storage info` prints about a node's directories, and its exit code."""
    problems: list[str] = []
    present: list[str] = []
    first: MetaProperties | None = None
    for directory in node_directories(config):
        if not disk.is_directory(directory):
            problems.append(
                f"{directory} {'is not a directory' if disk.exists(directory) else 'does not exist'}"
            )
            continue
        present.append(directory)
        try:
            properties = read_meta_properties(disk, directory)
        except CorruptCheckpoint as problem:
            problems.append(f"Error loading {directory}/{FILE_NAME}: {problem.reason}")
            continue
        if properties is None:
            problems.append(f"{directory} is not formatted.")
        elif first is None:
            first = properties
        elif properties.cluster_id != first.cluster_id:
            problems.append("Mismatched cluster IDs between storage directories.")
        elif properties.node_id != first.node_id:
            problems.append("Mismatched node IDs between storage directories.")
    if first is not None and first.version == 0:
        problems.append(
            "The kafka configuration file appears to be for a cluster in KRaft mode, but the directories are "
            "formatted for legacy mode."
        )
    return _info_lines(present, first, problems), 1 if problems else 0


def _info_lines(present: list[str], found: MetaProperties | None, problems: list[str]) -> list[str]:
    lines = []
    if present:
        lines.append("Found log directory:" if len(present) == 1 else "Found log directories:")
        lines += [*(f"  {directory}" for directory in present), ""]
    if found is not None:
        fields = {"cluster.id": found.cluster_id}
        if found.directory_id is not None:
            fields["directory.id"] = found.directory_id
        fields |= {"node.id": str(found.node_id), "version": str(found.version)}
        shown = ", ".join(f"{name}={value}" for name, value in fields.items())
        lines += [f"Found metadata: {{{shown}}}", ""]
    if problems:
        lines.append("Found problem:" if len(problems) == 1 else "Found problems:")
        lines += [*(f"  {problem}" for problem in problems), ""]
    return lines
