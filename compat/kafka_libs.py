"""Gets Apache Kafka's jars and runs Java against them, for the tests and the recorders of golden files.

Nothing here knows pytest: what cannot be had is an `Unavailable` whose message says what is missing and
how to get it. Everything fetched or compiled lives in the git-ignored `.cache` of the checkout.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

COMPAT = Path(__file__).resolve().parent
POM = COMPAT / "pom.xml"
JAVA_SOURCES = COMPAT / "java"
MINIMUM_JAVA = 17
_DOWNLOAD_TIMEOUT_S = 1800
_JAVA_TIMEOUT_S = 240
# Short-lived processes: start fast rather than run fast, and speak UTF-8 whatever the machine's locale.
_JVM_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Dfile.encoding=UTF-8",
    "-Dstdout.encoding=UTF-8",
    "-Dstderr.encoding=UTF-8",
    "-Dsun.stdout.encoding=UTF-8",
    "-Dsun.stderr.encoding=UTF-8",
)


class RunJava(Protocol):
    """What the fixture `run_java` hands out: the function of that name below."""

    def __call__(
        self, main: str, *arguments: str, stdin: str | bytes | None = None, timeout_s: int = _JAVA_TIMEOUT_S
    ) -> subprocess.CompletedProcess[str]: ...


class Unavailable(Exception):
    """A peer that could not be had; the message says which and why."""


def kafka_version() -> str:
    """The version that compat/pom.xml asks for."""
    found = re.search(r"<kafka\.version>([^<]+)</kafka\.version>", POM.read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{POM} names no kafka.version")
    return found[1]


def cache_directory() -> Path:
    """Where this version's jars and compiled classes are kept."""
    return COMPAT.parent / ".cache" / f"kafka-{kafka_version()}"


def java_command() -> str:
    """The `java` to run, at least the version Kafka needs."""
    java = _from_java_home("java") or shutil.which("java")
    if java is None:
        raise Unavailable(f"Java {MINIMUM_JAVA} or newer is not installed (no `java` on the PATH)")
    banner = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', banner)
    if found is None or int(found[1]) < MINIMUM_JAVA:
        seen = banner.strip().splitlines()[:1]
        raise Unavailable(f"Java {MINIMUM_JAVA} or newer is needed; {java} is {seen}")
    return java


def kafka_libs() -> Path:
    """The directory with Kafka's jars, fetched by Maven the first time anyone asks."""
    java_command()
    cache = cache_directory()
    libs, complete = cache / "libs", cache / "complete"
    if complete.exists():
        return libs
    with locked(cache / "lock"):
        if not complete.exists():
            _fetch(libs)
            complete.write_text(f"{len(list(libs.glob('*.jar')))} jars\n", encoding="utf-8")
    return libs


def run_java(
    main: str, *arguments: str, stdin: str | bytes | None = None, timeout_s: int = _JAVA_TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """Run a class of Kafka's jars, or a source of compat/java when `main` ends with `.java`.

    Standard output and error are UTF-8 text; the caller looks at the return code.
    """
    given = stdin if isinstance(stdin, bytes) else (stdin or "").encode()
    done = subprocess.run(
        java_launch(main, *arguments),
        input=given,
        capture_output=True,
        check=False,
        timeout=timeout_s,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")
    )


def java_launch(main: str, *arguments: str) -> list[str]:
    """The command line behind `run_java`, for those who talk to the process while it runs."""
    class_path = f"{kafka_libs()}/*"
    if main.endswith(".java"):
        launch = _source_launch(JAVA_SOURCES / main, class_path)
    else:
        launch = ["-cp", class_path, main]
    return [java_command(), *_JVM_OPTIONS, *launch, *arguments]


def _fetch(libs: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable(f"Apache Kafka {kafka_version()} needs Maven to be fetched (no `mvn` on the PATH)")
    # Jars are moved into place only when all are there, so that an interrupted download leaves nothing.
    with tempfile.TemporaryDirectory(dir=libs.parent) as scratch:
        target = Path(scratch) / "libs"
        command = [maven, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={target}"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_DOWNLOAD_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(
                f"Maven took over {_DOWNLOAD_TIMEOUT_S} s to fetch Kafka {kafka_version()}"
            ) from None
        if done.returncode != 0:
            raise Unavailable(f"Maven could not fetch Kafka {kafka_version()}: {_first_error(done.stdout)}")
        if libs.exists():
            shutil.rmtree(libs)
        target.rename(libs)


def _first_error(output: str) -> str:
    errors = [line for line in output.splitlines() if "ERROR" in line]
    return (errors or output.splitlines() or ["it said nothing"])[0].strip()


def _source_launch(source: Path, class_path: str) -> list[str]:
    """Arguments that run one source file: compiled once where there is a compiler, else from source."""
    if not source.exists():
        raise FileNotFoundError(f"no such Java source: {source}")
    compiler = _from_java_home("javac") or shutil.which("javac")
    if compiler is None:
        return ["-cp", class_path, str(source)]
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    classes = cache_directory() / "classes" / f"{source.stem}-{digest}"
    if not classes.exists():
        with locked(cache_directory() / "lock"):
            if not classes.exists():
                _compile(compiler, source, class_path, classes)
    return ["-cp", f"{classes}{os.pathsep}{class_path}", source.stem]


def _compile(compiler: str, source: Path, class_path: str, classes: Path) -> None:
    classes.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=classes.parent) as scratch:
        target = Path(scratch) / "classes"
        command = [compiler, "-encoding", "UTF-8", "-nowarn", "-proc:none", "-cp", class_path]
        done = subprocess.run(
            [*command, "-d", str(target), str(source)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{source} does not compile:\n{done.stdout}{done.stderr}")
        target.rename(classes)


def _from_java_home(tool: str) -> str | None:
    home = os.environ.get("JAVA_HOME")
    candidate = Path(home) / "bin" / tool if home else None
    return str(candidate) if candidate and candidate.exists() else None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time: several test workers may ask for the same download or compilation."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
