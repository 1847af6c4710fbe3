"""The house style as a test: every committed file keeps every rule, and every rule catches a bad file."""

from collections.abc import Callable, Iterator

import pytest

from tests import support_repo as tidy
from tests.support_repo import Committed

Rule = Callable[[Committed], Iterator[str]]

_LONG_BODY = "    pass\n" * 100

BAD_SAMPLES: list[tuple[Rule, Committed]] = [
    (tidy.long_file, Committed("src/headrace/a.py", "x = 1\n" * 601)),
    (tidy.long_file, Committed("tests/log/test_a.py", "x = 1\n" * 601)),
    (tidy.long_file, Committed("compat/java/A.java", "int x;\n" * 601)),
    (tidy.long_function, Committed("tools/a.py", "def a():\n" + _LONG_BODY)),
    (tidy.long_function, Committed("src/headrace/a.py", "class A:\n  async def a():\n" + _LONG_BODY)),
    (tidy.code_in_init, Committed("src/headrace/a/__init__.py", '"""A."""\ndef a(): ...\n')),
    (tidy.code_in_init, Committed("src/headrace/a/__init__.py", "state = {}\n")),
    (tidy.catch_all_name, Committed("src/headrace/utils/a.py", "")),
    (tidy.catch_all_name, Committed("src/headrace/common.py", "")),
    (tidy.catch_all_name, Committed("tests/helpers/data.json", "")),
    (tidy.unfinished_work, Committed("docs/a.md", "TO" + "DO: later")),
    (tidy.unfinished_work, Committed("Makefile", "# FIX" + "ME")),
    (tidy.unfinished_work, Committed("src/headrace/a.py", "# XX" + "X")),
    (tidy.sleep_in_test, Committed("tests/log/test_a.py", "time.sl" + "eep(1)")),
    (tidy.sleep_in_test, Committed("compat/test_a.py", "from time import sl" + "eep")),
    (tidy.missing_docstring, Committed("src/headrace/a.py", "x = 1\n")),
    (tidy.machine_path, Committed("docs/a.md", "see /wo" + "rk/main")),
    (tidy.machine_path, Committed("tools/a.py", 'open("/t' + 'mp/x")')),
    (tidy.machine_path, Committed("compat/a.xml", "/ro" + "ot/.m2")),
    (tidy.registry_host, Committed("Makefile", "pip install -i https://pypi.o" + "rg/simple")),
    (tidy.registry_host, Committed("compat/pom.xml", "https://repo.ma" + "ven.apache.org")),
    (tidy.script_not_executable, Committed(".ci/run", "#!/bin/sh\nmake check\n")),
    (tidy.script_not_executable, Committed("tools/a.sh", "make check\n")),
]

GOOD_SAMPLES: list[tuple[Rule, Committed]] = [
    (tidy.long_file, Committed("src/headrace/a.py", "x = 1\n" * 600)),
    (tidy.long_file, Committed("src/headrace/protocol/messages/a.py", "x = 1\n" * 2000)),
    (tidy.long_file, Committed("docs/a.md", "x\n" * 2000)),
    (tidy.long_function, Committed("tools/a.py", "def a():  # long because a table\n" + _LONG_BODY)),
    (tidy.code_in_init, Committed("src/a/__init__.py", '"""A."""\nfrom a.b import c\n__all__ = ["c"]\n')),
    (tidy.catch_all_name, Committed("src/headrace/records/compression.py", "")),
    (tidy.sleep_in_test, Committed("bench/bench_a.py", "time.sl" + "eep(1)")),
    (tidy.missing_docstring, Committed("src/headrace/a.py", '"""What it is for."""\n')),
    (tidy.machine_path, Committed("docs/a.md", "log.dirs=/t" + "mp/kafka-logs or src/work/x")),
    (tidy.script_not_executable, Committed(".ci/run", "#!/bin/sh\nmake check\n", executable=True)),
    (tidy.script_not_executable, Committed("tools/a.py", "#!/usr/bin/env python3\n")),
]

RULES = list(dict.fromkeys(rule for rule, _ in BAD_SAMPLES))


def _label(value: object) -> str:
    return str(getattr(value, "__name__", None) or getattr(value, "path", ""))


@pytest.fixture(scope="module")
def files() -> list[Committed]:
    return tidy.committed_files()


@pytest.mark.parametrize("rule", RULES, ids=_label)
def test_every_committed_file_keeps_the_rule(rule: Rule, files: list[Committed]) -> None:
    assert [complaint for file in files for complaint in rule(file)] == []


@pytest.mark.parametrize(("rule", "sample"), BAD_SAMPLES, ids=_label)
def test_the_rule_catches_a_bad_file(rule: Rule, sample: Committed) -> None:
    assert len(list(rule(sample))) == 1


@pytest.mark.parametrize(("rule", "sample"), GOOD_SAMPLES, ids=_label)
def test_the_rule_leaves_a_good_file_alone(rule: Rule, sample: Committed) -> None:
    assert list(rule(sample)) == []


def test_every_rule_of_the_support_module_is_applied() -> None:
    defined = {
        name
        for name, value in vars(tidy).items()
        if callable(value) and getattr(value, "__annotations__", {}).get("file") is Committed
    }
    assert defined - {"_matches"} == {rule.__name__ for rule in RULES}


def test_the_files_looked_at_are_the_repositorys(files: list[Committed]) -> None:
    assert {"Makefile", "pyproject.toml", "src/headrace/errors.py"} <= {file.path for file in files}


def test_every_api_module_is_in_the_table(files: list[Committed]) -> None:
    assert list(tidy.api_not_in_table(files)) == []


def test_an_api_module_missing_from_the_table_is_caught() -> None:
    room = "src/headrace/api/"
    table = Committed(room + "table.py", "from headrace.api import k00_produce\n")
    produce, fetch = Committed(room + "k00_produce.py", ""), Committed(room + "k01_fetch.py", "")
    assert list(tidy.api_not_in_table([table, produce])) == []
    assert list(tidy.api_not_in_table([table, produce, fetch])) == [
        f"{room}k01_fetch.py is not in {room}table.py"
    ]
    assert len(list(tidy.api_not_in_table([produce, fetch]))) == 2
