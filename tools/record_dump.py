"""Records what Kafka's own dump tool prints for the fixtures, as the golden files of tests/cli.

Run it as `python -m tools.record_dump`; it needs Java and, the first time, Maven.
"""

import json
import shutil
import tempfile
from pathlib import Path

from compat.kafka_libs import run_java
from tests.support_cli import GOLDEN, GOLDEN_CASES, unpack_fixture, without_root


def main() -> None:
    """Replace the golden files."""
    shutil.rmtree(GOLDEN, ignore_errors=True)
    GOLDEN.mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        roots = {case.fixture: Path(scratch) / case.fixture for case in GOLDEN_CASES}
        data = {fixture: unpack_fixture(fixture, target) for fixture, target in roots.items()}
        lines = ["\t".join(case.arguments(data[case.fixture])) + "\n" for case in GOLDEN_CASES]
        done = run_java("DumpRuns.java", stdin="".join(lines))
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        answers = [json.loads(line) for line in done.stdout.split("\n") if line]
        for case, answer in zip(GOLDEN_CASES, answers, strict=True):
            if answer["failure"] is not None:
                raise SystemExit(f"{case.name}: {answer['failure']}")
            root = data[case.fixture]
            golden = {"out": without_root(answer["out"], root), "err": without_root(answer["err"], root)}
            for stream, text in golden.items():
                if text:
                    (GOLDEN / f"{case.name}.{stream}").write_text(text, encoding="utf-8", newline="")
    print(f"{len(GOLDEN_CASES)} dumps recorded in {GOLDEN}")


if __name__ == "__main__":
    main()
