"""The arguments of `headrace log dump`, with the names of Kafka's tool beside ours."""

from typing import Annotated

import typer

from headrace.cli.dump.options import OutputFormat

_CONTENTS = "What the records are"
_INDEXES = "Indexes"

Files = Annotated[
    list[str] | None, typer.Argument(metavar="FILE...", help="Files of a log directory.", show_default=False)
]
CommaSeparated = Annotated[
    str | None, typer.Option("--files", metavar="FILE,FILE", help="More files, separated by commas.")
]
Records = Annotated[
    bool, typer.Option("--records", "--print-data-log", help="Show keys and values of records.")
]
Deep = Annotated[bool, typer.Option("--deep-iteration", help="Show records, without keys and values.")]
SkipRecordMetadata = Annotated[
    bool, typer.Option("--skip-record-metadata", help="Show of each record nothing but key and value.")
]
Output = Annotated[
    OutputFormat, typer.Option("--format", help="Text as Kafka's tool prints it, or a JSON object per line.")
]
BytesMax = Annotated[
    int,
    typer.Option("--max-bytes", metavar="BYTES", min=0, help="Read no more of each log.", show_default=False),
]
Offsets = Annotated[
    bool,
    typer.Option(
        "--offsets", "--offsets-decoder", rich_help_panel=_CONTENTS, help="Records of __consumer_offsets."
    ),
]
Transactions = Annotated[
    bool,
    typer.Option(
        "--transactions",
        "--transaction-log-decoder",
        rich_help_panel=_CONTENTS,
        help="Records of __transaction_state.",
    ),
]
ClusterMetadata = Annotated[
    bool,
    typer.Option(
        "--cluster-metadata",
        "--cluster-metadata-decoder",
        rich_help_panel=_CONTENTS,
        help="Records of __cluster_metadata.",
    ),
]
ShareGroups = Annotated[
    bool,
    typer.Option(
        "--share-groups",
        "--share-group-state-decoder",
        rich_help_panel=_CONTENTS,
        help="Records of __share_group_state.",
    ),
]
RemoteLogMetadata = Annotated[
    bool,
    typer.Option(
        "--remote-log-metadata",
        "--remote-log-metadata-decoder",
        rich_help_panel=_CONTENTS,
        help="Records of __remote_log_metadata.",
    ),
]
KeyDecoder = Annotated[
    str | None,
    typer.Option(
        "--key-decoder-class",
        metavar="NAME",
        rich_help_panel=_CONTENTS,
        help="Keys are string (the default), integer or long.",
    ),
]
ValueDecoder = Annotated[
    str | None,
    typer.Option(
        "--value-decoder-class", metavar="NAME", rich_help_panel=_CONTENTS, help="The same for values."
    ),
]
VerifyIndexOnly = Annotated[
    bool,
    typer.Option(
        "--verify-index-only",
        rich_help_panel=_INDEXES,
        help="Check indexes against their log without printing them.",
    ),
]
IndexSanityCheck = Annotated[
    bool,
    typer.Option(
        "--index-sanity-check",
        rich_help_panel=_INDEXES,
        help="Do the checks by which a broker decides to rebuild an index.",
    ),
]
MessageSizeMax = Annotated[
    int,
    typer.Option(
        "--max-message-size",
        metavar="BYTES",
        min=0,
        rich_help_panel=_INDEXES,
        help="The largest batch that an index may point at.",
    ),
]
