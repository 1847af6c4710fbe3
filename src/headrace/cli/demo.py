"""`headrace demo`: a node, events and a windowed aggregation on Spark, live in the terminal."""

from typing import Annotated

import typer


def demo(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The node's port.")] = 9092,
    rate: Annotated[
        int, typer.Option("--rate", min=1, max=1_000_000, help="Events per second to produce.")
    ] = 5_000,
) -> None:
    """Show a stream live until Ctrl-C: a node, made-up readings, a windowed aggregation on local Spark.

    Without Java 17 it says how to get it and runs the node alone. Data is scratch and removed at the end.
    """
    from headrace.cli.stream_demo.run import run_demo

    run_demo(port, rate)
