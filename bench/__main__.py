"""`python -m bench [NAME…]`: every `bench/bench_*.py`, or the ones named; each has `run() -> list[Row]`."""

import importlib
import pathlib
import sys

from bench.harness import print_table


def main() -> None:
    found = sorted(
        path.stem.removeprefix("bench_") for path in pathlib.Path(__file__).parent.glob("bench_*.py")
    )
    wanted = sys.argv[1:] or found
    unknown = [name for name in wanted if name not in found]
    if unknown:
        sys.exit(f"no benchmark named {', '.join(unknown)}; there are: {', '.join(found)}")
    for name in wanted:
        module = importlib.import_module(f"bench.bench_{name}")
        print_table(name, module.run())


main()
