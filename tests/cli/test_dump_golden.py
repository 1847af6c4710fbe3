"""`headrace log dump` prints what Kafka's own tool printed for the same files.

The golden files are Kafka's output, recorded by `python -m tools.record_dump`.
"""

from pathlib import Path

import pytest

from tests.support_cli import (
    CLEAN,
    GOLDEN,
    GOLDEN_CASES,
    KILLED,
    GoldenCase,
    headrace_dump,
    kafka_lines_of_errors,
    unpack_fixture,
)


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: unpack_fixture(name, tmp_path_factory.mktemp(name)) for name in (CLEAN, KILLED)}


def _golden(case: GoldenCase, stream: str) -> list[str]:
    file = GOLDEN / f"{case.name}.{stream}"
    return file.read_text(encoding="utf-8").split("\n") if file.exists() else [""]


@pytest.mark.parametrize("case", GOLDEN_CASES, ids=lambda case: case.name)
def test_a_dump_is_line_for_line_what_kafka_prints(case: GoldenCase, roots: dict[str, Path]) -> None:
    root = roots[case.fixture]
    printed = headrace_dump(case.arguments(root), root)
    assert printed.out.split("\n") == _golden(case, "out")
    assert kafka_lines_of_errors(printed) == _golden(case, "err")[:-1]
    assert not printed.failed


def test_every_golden_file_belongs_to_a_case() -> None:
    names = {case.name for case in GOLDEN_CASES}
    assert {file.stem for file in GOLDEN.iterdir()} == names
