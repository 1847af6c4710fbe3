"""The rules of `tests/repo/test_tidy.py`: each takes one committed file and says what is wrong with it.

Rules are plain functions over a path and its text, so that each can be shown a bad sample.
"""

import ast
import re
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 100
LONG_FUNCTION_REASON = "# long because "

_CODE_FOLDERS = ("src", "tests", "tools", "bench", "compat")
_CODE_SUFFIXES = (".py", ".java", ".sh")
_GENERATED = ("src/headrace/protocol/messages/", "src/headrace/protocol/disk_records/")
_CATCH_ALL_NAMES = frozenset({"utils", "util", "common", "helpers", "helper", "misc"})
_IGNORED_FOLDERS = frozenset({".git", ".venv", ".cache", "__pycache__", "build", "dist", ".hypothesis"})

# Spelled in halves so that this file does not break its own rules.
_UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
_SLEEP = re.compile(r"\btime\.sl" + r"eep\(|\bfrom time import .*\bsl" + r"eep\b")
# Kafka's own default log directories are under the temporary directory, and configuration names them.
_MACHINE_PATH = re.compile(r"(?<![\w.*~])/(?:work|root)/|(?<![\w.*~])/t" + r"mp/(?!kafka-|kraft-)")
_REGISTRY = re.compile(
    r"pypi\.o" + r"rg|pythonhosted\.o" + r"rg|repo1?\.maven\.|maven\.google|registry\.npm|ghcr\.i" + r"o"
    r"|docker\.i" + r"o|crates\.i" + r"o|artifact" + r"ory",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Committed:
    """One file of the repository: its path from the root, its text, and whether it may be executed."""

    path: str
    text: str
    executable: bool = False

    @property
    def is_python(self) -> bool:
        return self.path.endswith(".py")

    @property
    def is_generated(self) -> bool:
        return self.path.startswith(_GENERATED)

    @property
    def is_code(self) -> bool:
        return self.path.startswith(tuple(f"{folder}/" for folder in _CODE_FOLDERS)) and self.path.endswith(
            _CODE_SUFFIXES
        )


def committed_files() -> list[Committed]:
    """Every text file git knows of; of a source archive without git, every text file."""
    found = []
    for path in _paths():
        full = ROOT / path
        if not full.is_file():
            continue
        try:
            text = full.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found.append(Committed(path, text, bool(full.stat().st_mode & stat.S_IXUSR)))
    return found


def _paths() -> list[str]:
    try:
        listed = subprocess.run(
            ["git", "-c", "core.quotepath=off", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
        ).stdout.decode()
        return [path for path in listed.split("\0") if path]
    except (FileNotFoundError, subprocess.CalledProcessError):
        walked = (path.relative_to(ROOT) for path in sorted(ROOT.rglob("*")))
        return [path.as_posix() for path in walked if not _IGNORED_FOLDERS & set(path.parts)]


def long_file(file: Committed) -> Iterator[str]:
    if file.is_code and not file.is_generated:
        lines = len(file.text.splitlines())
        if lines > MAX_FILE_LINES:
            yield f"{file.path}: {lines} lines, more than {MAX_FILE_LINES}; split it by concern"


def long_function(file: Committed) -> Iterator[str]:
    if not file.is_python or file.is_generated:
        return
    source = file.text.splitlines()
    for node in ast.walk(ast.parse(file.text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION_LINES and LONG_FUNCTION_REASON not in source[node.lineno - 1]:
                yield f"{file.path}:{node.lineno}: {node.name} has {lines} lines, over {MAX_FUNCTION_LINES}"


def code_in_init(file: Committed) -> Iterator[str]:
    if PurePosixPath(file.path).name != "__init__.py":
        return
    for node in ast.parse(file.text).body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        targets = (
            [t.id for t in node.targets if isinstance(t, ast.Name)] if isinstance(node, ast.Assign) else []
        )
        is_export_list = bool(targets) and set(targets) <= {"__version__", "__all__"}
        if not (is_docstring or is_import or is_export_list):
            yield f"{file.path}:{node.lineno}: only a docstring and re-exports belong here"


def catch_all_name(file: Committed) -> Iterator[str]:
    path = PurePosixPath(file.path)
    names = {*path.parent.parts, path.stem} if file.is_code else set(path.parent.parts)
    for name in sorted(names & _CATCH_ALL_NAMES):
        yield f"{file.path}: {name!r} says nothing; name it for what it is for"


def unfinished_work(file: Committed) -> Iterator[str]:
    yield from _matches(file, _UNFINISHED, "unfinished work is an issue, not a comment")


def sleep_in_test(file: Committed) -> Iterator[str]:
    if file.is_python and file.path.startswith(("tests/", "compat/")):
        yield from _matches(file, _SLEEP, "wait for the event, not for time to pass")


def missing_docstring(file: Committed) -> Iterator[str]:
    if file.is_python and file.path.startswith("src/") and ast.get_docstring(ast.parse(file.text)) is None:
        yield f"{file.path}: a module says in its docstring what it is for"


def machine_path(file: Committed) -> Iterator[str]:
    yield from _matches(file, _MACHINE_PATH, "a path of one machine")


def registry_host(file: Committed) -> Iterator[str]:
    yield from _matches(file, _REGISTRY, "a registry is the user's choice")


def script_not_executable(file: Committed) -> Iterator[str]:
    first_line = file.text.split("\n", 1)[0]
    is_script = file.path.endswith(".sh") or (first_line.startswith("#!") and "sh" in first_line)
    if is_script and not file.executable:
        yield f"{file.path}: a shell script must be executable (git update-index --chmod=+x)"


def api_not_in_table(files: list[Committed]) -> Iterator[str]:
    """Every `api/kNN_name.py` is named in `api/table.py`; there is nothing to say before that room exists."""
    room = "src/headrace/api/"
    modules = [
        PurePosixPath(file.path).stem
        for file in files
        if file.path.startswith(room) and re.fullmatch(r"k\d+_\w+\.py", file.path.removeprefix(room))
    ]
    table = next((file.text for file in files if file.path == room + "table.py"), "")
    for module in modules:
        if not re.search(rf"\b{module}\b", table):
            yield f"{room}{module}.py is not in {room}table.py"


def _matches(file: Committed, pattern: re.Pattern[str], why: str) -> Iterator[str]:
    for number, line in enumerate(file.text.splitlines(), start=1):
        found = pattern.search(line)
        if found:
            yield f"{file.path}:{number}: {found[0]!r}: {why}"
