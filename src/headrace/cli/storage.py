"""`headrace storage`: formatting a node's directories, with the flags and exit codes of Kafka's own tool."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from headrace.config.node import NodeConfig


_MISUSE = typer.BadParameter.exit_code


class _Group(TyperGroup):
    """Commands whose misuse ends with 1, as that of Kafka's tool does."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            # The command-line library takes the exit code from the error that it reports.
            if getattr(error, "exit_code", None) == _MISUSE:
                vars(error)["exit_code"] = 1
            raise


storage_app = typer.Typer(cls=_Group, no_args_is_help=True, pretty_exceptions_enable=False)

Config = Annotated[str, typer.Option("--config", "-c", metavar="FILE", help="The node's server.properties.")]
Release = Annotated[
    str | None,
    typer.Option(
        "--release-version",
        "-r",
        metavar="VERSION",
        help="The release, from 3.3-IV3 to 4.3-IV0 (the default).",
    ),
]


@storage_app.callback()
def storage() -> None:
    """Format a node's directories and look at them."""


@storage_app.command("format")
def format_storage(
    config: Config,
    cluster_id: Annotated[str, typer.Option("--cluster-id", "-t", metavar="ID", help="The cluster's id.")],
    add_scram: Annotated[
        list[str] | None,
        typer.Option(
            "--add-scram",
            "-S",
            metavar="CREDENTIAL",
            help="A SCRAM credential that the cluster begins with; may be repeated. "
            "For example SCRAM-SHA-256=[name=alice,password=alice-secret]",
        ),
    ] = None,
    ignore_formatted: Annotated[
        bool, typer.Option("--ignore-formatted", "-g", help="Leave alone what is formatted already.")
    ] = False,
    release_version: Release = None,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            "--feature", "-f", metavar="NAME=LEVEL", help="The level of one feature; may be repeated."
        ),
    ] = None,
    standalone: Annotated[
        bool, typer.Option("--standalone", "-s", help="This controller is a quorum of its own.")
    ] = False,
    no_initial_controllers: Annotated[
        bool, typer.Option("--no-initial-controllers", "-N", help="The quorum's controllers are found later.")
    ] = False,
    initial_controllers: Annotated[
        str | None,
        typer.Option(
            "--initial-controllers",
            "-I",
            metavar="LIST",
            help="The quorum's first controllers: id@host:port:directory-id, separated by commas.",
        ),
    ] = None,
) -> None:
    """Format the directories of a node."""
    from headrace.metadata.format import format_directories, format_plan
    from headrace.system.clock import SystemClock
    from headrace.system.disk import RealDisk
    from headrace.system.entropy import SystemEntropy

    quorum = {
        "--standalone": standalone,
        "--no-initial-controllers": no_initial_controllers,
        "--initial-controllers": initial_controllers is not None,
    }
    named = [option for option, is_given in quorum.items() if is_given]
    if len(named) > 1:
        raise typer.BadParameter(f"{' and '.join(named)} exclude each other")
    with _terse_failures(config):
        entropy = SystemEntropy()
        plan = format_plan(
            _load(config),
            cluster_id,
            entropy,
            release=release_version,
            features=feature or (),
            standalone=standalone,
            initial_controllers=initial_controllers,
            no_initial_controllers=no_initial_controllers,
            ignore_formatted=ignore_formatted,
            scram_arguments=add_scram or (),
        )
        for line in format_directories(RealDisk(), SystemClock(), entropy, plan):
            typer.echo(line)


@storage_app.command("info")
def info(config: Config) -> None:
    """Say which directories a node has, and whether they are fit for use."""
    from headrace.metadata.format import storage_info
    from headrace.system.disk import RealDisk

    with _terse_failures(config):
        lines, code = storage_info(RealDisk(), _load(config))
    for line in lines:
        typer.echo(line)
    raise typer.Exit(code)


@storage_app.command("random-uuid")
def random_uuid() -> None:
    """Print a random id, fit for a cluster or a directory."""
    from headrace.metadata.ids import encode_id, random_id
    from headrace.system.entropy import SystemEntropy

    typer.echo(encode_id(random_id(SystemEntropy())))


@storage_app.command("version-mapping")
def version_mapping(release_version: Release = None) -> None:
    """Print the levels of all features that belong to a release."""
    from headrace.metadata import versions

    with _terse_failures():
        shown = release_version or str(versions.LATEST)
        version = versions.release_version(shown)
    typer.echo(f"{versions.METADATA_VERSION}={version:d} ({shown})")
    for name in versions.FEATURES:
        typer.echo(f"{name}={versions.default_level(name, version)}")


@storage_app.command("feature-dependencies")
def feature_dependencies(
    feature: Annotated[
        list[str],
        typer.Option("--feature", "-f", metavar="NAME=LEVEL", help="A level to look up; may be repeated."),
    ],
) -> None:
    """Print what levels of features depend on."""
    for text in feature:
        for line in _dependencies(text):
            typer.echo(line)


def _dependencies(text: str) -> list[str]:
    from headrace.metadata import versions

    name, equals, level_text = (part.strip() for part in text.partition("="))
    if not equals:
        _fail(f"Invalid feature format: {text}. Expected format: 'feature=version' (e.g. 'group.version=1')")
    try:
        level = int(level_text)
    except ValueError:
        _fail(f"Invalid version format: {level_text} for feature {name}")
    try:
        if name == versions.METADATA_VERSION:
            return [f"{name}={level} ({versions.metadata_version(level)}) has no dependencies."]
        if name not in versions.FEATURES:
            _fail(f"Unknown feature: {name}")
        needs = versions.feature_level(name, level).needs
    except versions.UnknownVersion:
        if name == versions.METADATA_VERSION:
            _fail(f"Unknown {name} {level}")
        _fail(f"Feature level {level} is not supported for feature {name}")
    if not needs:
        return [f"{name}={level} has no dependencies."]
    lines = [f"{name}={level} requires:"]
    for needed, least in needs.items():
        shown = f" ({versions.metadata_version(least)})" if needed == versions.METADATA_VERSION else ""
        lines.append(f"    {needed}={least}{shown}")
    return lines


def _load(path: str) -> "NodeConfig":
    from headrace.config.server_properties import load_server_properties
    from headrace.system.disk import RealDisk

    return load_server_properties(os.path.abspath(path), (), RealDisk(), os.environ)


@contextmanager
def _terse_failures(path: str | None = None) -> Iterator[None]:
    """Turn what is wrong with a wish or a file into one line."""
    from headrace.errors import HeadraceError

    try:
        yield
    except HeadraceError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or path}: {error.strerror or error}")


def _fail(message: str) -> NoReturn:
    sys.stdout.flush()
    typer.echo(message, err=True)
    raise typer.Exit(1)
