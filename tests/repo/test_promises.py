"""The page on testing names tests that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`((?:tests|compat)/[\w/]+\.py)::(\w+)`")
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")


def test_many_tests_are_named() -> None:
    assert len(NAMED.findall(PAGE)) > 60


@pytest.mark.parametrize(("path", "name"), sorted(set(NAMED.findall(PAGE))))
def test_a_named_test_is_there(path: str, name: str) -> None:
    assert re.search(rf"def {name}\(", (ROOT / path).read_text(encoding="utf-8"))
