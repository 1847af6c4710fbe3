"""`headrace produce`: lines of standard input into a topic."""

from enum import StrEnum
from typing import Annotated

import typer

from headrace.cli.client_options import Access, BootstrapServer, CommandConfig, OutputFormat, key_values
from headrace.cli.separators import KeySeparator, unescaped


class Acks(StrEnum):
    """Who has to have a record before it counts as written."""

    ALL = "all"
    LEADER = "1"
    NONE = "0"


class Codec(StrEnum):
    """How batches are compressed."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Where the records go.")],
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    input_format: Annotated[
        OutputFormat,
        typer.Option(
            "--format",
            help="What lines are: text is a value, json an object with key, value, headers, partition and "
            "timestamp.",
        ),
    ] = OutputFormat.TEXT,
    key_separator: KeySeparator = None,
    acks: Annotated[
        Acks | None,
        typer.Option("--acks", help="Who has to have a record.  [default: all]", show_default=False),
    ] = None,
    compression: Annotated[
        Codec | None,
        typer.Option("--compression", help="How to compress.  [default: none]", show_default=False),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--config", "--property", metavar="KEY=VALUE", help="A key of Kafka's producer; may be repeated."
        ),
    ] = None,
) -> None:
    """Write lines of standard input to a topic, until it ends or Ctrl-C.

    Lines are sent as they come. At the first line that can't be a record, what came before it is written, and
    the command ends with an error that names the line. The exit code is 0 only if every record was written.
    """
    if key_separator is not None and input_format is OutputFormat.JSON:
        raise typer.BadParameter("--key-separator is for text; with --format json the key is a field")
    separator = unescaped(key_separator)
    settings = key_values(properties, "--config")
    if acks is not None:
        settings["acks"] = acks.value
    if compression is not None:
        settings["compression.type"] = compression.value
    from headrace.cli.client_session import require_arrow, require_stream, run_on_cluster

    require_arrow("produce")
    from headrace.cli.producing.run import STANDARD_INPUT, Produce

    require_stream(STANDARD_INPUT, "input")

    wish = Produce(topic, is_json=input_format is OutputFormat.JSON, key_separator=separator)
    run_on_cluster(Access(bootstrap_server, command_config, settings), wish)
