"""`headrace log`: looking into a log directory's files. Commands import what they do when they are run."""

import io
import os
import sys

import typer

from headrace.cli.dump.arguments import (
    BytesMax,
    ClusterMetadata,
    CommaSeparated,
    Deep,
    Files,
    IndexSanityCheck,
    KeyDecoder,
    MessageSizeMax,
    Offsets,
    Output,
    Records,
    RemoteLogMetadata,
    ShareGroups,
    SkipRecordMetadata,
    Transactions,
    ValueDecoder,
    VerifyIndexOnly,
)
from headrace.cli.dump.options import (
    INT_MAX,
    MESSAGE_SIZE_MAX_DEFAULT,
    Contents,
    DumpOptions,
    OutputFormat,
    Scalar,
)

log_app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

# Kafka's tool names its decoders by their Java classes.
_JAVA_DECODERS = {
    "org.apache.kafka.tools.api.StringDecoder": Scalar.STRING,
    "org.apache.kafka.tools.api.IntegerDecoder": Scalar.INTEGER,
    "org.apache.kafka.tools.api.LongDecoder": Scalar.LONG,
}


@log_app.callback()
def log() -> None:
    """Look into log files."""


@log_app.command("dump")
def dump(
    files: Files = None,
    comma_separated: CommaSeparated = None,
    records: Records = False,
    deep: Deep = False,
    skip_record_metadata: SkipRecordMetadata = False,
    output: Output = OutputFormat.TEXT,
    bytes_max: BytesMax = INT_MAX,
    offsets: Offsets = False,
    transactions: Transactions = False,
    cluster_metadata: ClusterMetadata = False,
    share_groups: ShareGroups = False,
    remote_log_metadata: RemoteLogMetadata = False,
    key_decoder: KeyDecoder = None,
    value_decoder: ValueDecoder = None,
    verify_index_only: VerifyIndexOnly = False,
    index_sanity_check: IndexSanityCheck = False,
    message_size_max: MessageSizeMax = MESSAGE_SIZE_MAX_DEFAULT,
) -> None:
    """Print what segments, snapshots, indexes and checkpoint files hold.

    The text is that of Kafka's own kafka-dump-log.sh, whose options are understood too. The exit code is 1
    if a file could not be read or does not hold together, 2 if the command was not understood.
    """
    chosen = {
        Contents.OFFSETS: offsets,
        Contents.TRANSACTIONS: transactions,
        Contents.CLUSTER_METADATA: cluster_metadata,
        Contents.REMOTE_LOG_METADATA: remote_log_metadata,
        Contents.SHARE_GROUPS: share_groups,
    }
    contents = [kind for kind, wanted in chosen.items() if wanted]
    if len(contents) > 1:
        named = " and ".join(f"--{kind}" for kind in contents)
        raise typer.BadParameter(f"{named} exclude each other: a log holds records of one kind")
    options = DumpOptions(
        show_records=records or bool(contents or key_decoder or value_decoder),
        deep=deep,
        skip_record_metadata=skip_record_metadata,
        contents=contents[0] if contents else Contents.TEXT,
        key_scalar=_scalar("--key-decoder-class", key_decoder),
        value_scalar=_scalar("--value-decoder-class", value_decoder),
        verify_index_only=verify_index_only,
        index_sanity_only=index_sanity_check,
        message_size_max=message_size_max,
        bytes_max=bytes_max,
    )
    paths = [*(files or ()), *(comma_separated or "").split(",")]
    _dump_to_console([path for path in paths if path], options, output)


def _scalar(option: str, name: str | None) -> Scalar:
    if name is None:
        return Scalar.STRING
    if name in _JAVA_DECODERS:
        return _JAVA_DECODERS[name]
    try:
        return Scalar(name)
    except ValueError:
        raise typer.BadParameter(
            f"{name!r} can't be used here: Headrace runs no Java classes. Say {', '.join(Scalar)}, or let "
            "--format json show the bytes and decode those",
            param_hint=option,
        ) from None


def _dump_to_console(paths: list[str], options: DumpOptions, output: OutputFormat) -> None:
    from headrace.cli.dump.run import Printer, dump_files
    from headrace.system.disk import RealDisk

    if not paths:
        raise typer.BadParameter("name at least one file to dump", param_hint="FILE")
    # Records may hold any text: what is printed is UTF-8, whatever the terminal's locale.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    printer = Printer(sys.stdout, sys.stderr, output)
    try:
        is_clean = dump_files(paths, os.getcwd(), RealDisk(), options, printer)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, `head` say, has seen enough. Nothing may be written to the pipe at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    if not is_clean:
        raise typer.Exit(1)
