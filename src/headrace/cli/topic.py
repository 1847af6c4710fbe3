"""`headrace topic`: looking at topics and changing them. Commands import what they do when they are run."""

from typing import Annotated

import typer

from headrace.cli.client_options import (
    Access,
    BootstrapServer,
    CommandConfig,
    Output,
    OutputFormat,
    key_values,
)

topic_app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The topic.")]
Names = Annotated[list[str], typer.Argument(metavar="NAME…", help="One or more topics.")]


@topic_app.callback()
def topic() -> None:
    """List, describe, create, alter and delete topics."""


@topic_app.command("list")
def list_command(
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    internal: Annotated[bool, typer.Option("--internal", help="Include the brokers' own topics.")] = False,
    output: Output = OutputFormat.TEXT,
) -> None:
    """List topics by name."""
    from headrace.cli.client_session import run_on_cluster
    from headrace.cli.topics.looking import ListTopics

    run_on_cluster(Access(bootstrap_server, command_config), ListTopics(internal, output))


@topic_app.command("describe")
def describe(
    names: Names,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Show topics' ids, configurations that are not the default, and partitions with replicas and offsets."""
    from headrace.cli.client_session import run_on_cluster
    from headrace.cli.topics.looking import DescribeTopics

    run_on_cluster(Access(bootstrap_server, command_config), DescribeTopics(names, output))


@topic_app.command("create")
def create(
    name: Name,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", min=1, help="How many partitions.  [default: the cluster's]"),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor",
            "-r",
            min=1,
            max=32767,
            help="How many replicas.  [default: the cluster's]",
        ),
    ] = None,
    replica_assignment: Annotated[
        str | None,
        typer.Option(
            "--replica-assignment",
            metavar="LIST",
            help="The brokers of each partition, as 1:2,2:3 for two partitions with two replicas.",
        ),
    ] = None,
    configs: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="KEY=VALUE", help="A configuration; may be repeated."),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Do nothing if there is a topic of that name.")
    ] = False,
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Find out whether it would work, and create nothing.")
    ] = False,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Create a topic."""
    if replica_assignment is not None and (partitions is not None or replication_factor is not None):
        raise typer.BadParameter("--replica-assignment excludes --partitions and --replication-factor")
    assignments = _assignments(replica_assignment)
    settings = key_values(configs, "--config")
    from headrace.cli.client_session import run_on_cluster
    from headrace.cli.topics.changing import CreateTopic
    from headrace.client.admin.topics import CLUSTER_DEFAULT, NewTopic

    new = NewTopic(
        name,
        CLUSTER_DEFAULT if partitions is None else partitions,
        CLUSTER_DEFAULT if replication_factor is None else replication_factor,
        assignments,
        settings,
    )
    wish = CreateTopic(new, output, if_not_exists=if_not_exists, validate_only=validate_only)
    run_on_cluster(Access(bootstrap_server, command_config), wish)


@topic_app.command("alter")
def alter(
    name: Name,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", min=1, help="How many partitions there are to be; never fewer."),
    ] = None,
    changed: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a configuration; may be repeated."),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="KEY", help="Go back to a configuration's default; may be repeated."),
    ] = None,
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Find out whether it would work, and change nothing.")
    ] = False,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Change a topic's configurations, or give it more partitions."""
    settings: dict[str, str | None] = {**key_values(changed, "--set")}
    for key in unset or ():
        if key in settings:
            raise typer.BadParameter(f"{key} can't be set and unset at once")
        settings[key] = None
    if partitions is None and not settings:
        raise typer.BadParameter("say what to change: --partitions, --set or --unset")
    from headrace.cli.client_session import run_on_cluster
    from headrace.cli.topics.changing import AlterTopic

    wish = AlterTopic(name, partitions, settings, output, validate_only=validate_only)
    run_on_cluster(Access(bootstrap_server, command_config), wish)


@topic_app.command("delete")
def delete(
    names: Names,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Do nothing about topics that are not there.")
    ] = False,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Delete topics with all of their records."""
    from headrace.cli.client_session import run_on_cluster
    from headrace.cli.topics.changing import DeleteTopics

    run_on_cluster(Access(bootstrap_server, command_config), DeleteTopics(names, output, if_exists=if_exists))


def _assignments(text: str | None) -> dict[int, list[int]]:
    """The brokers of each partition, in the notation of Kafka's own script."""
    if text is None:
        return {}
    try:
        replicas = [[int(broker) for broker in partition.split(":")] for partition in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a list of brokers as 1:2,2:3", param_hint="--replica-assignment"
        ) from None
    return dict(enumerate(replicas))
