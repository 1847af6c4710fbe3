"""Which Java there is for Spark, and what to tell a user who has none."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from typing import Final

MAJOR_MIN: Final = 17
_VERSION: Final = re.compile(r'version "(\d+)(?:\.(\d+))?')
_ANSWER_SECONDS_MAX: Final = 30

HOW_TO_GET_JAVA: Final = (
    f"Spark needs Java {MAJOR_MIN} or newer:",
    "  Debian, Ubuntu   sudo apt install openjdk-17-jre-headless",
    "  Fedora           sudo dnf install java-17-openjdk-headless",
    "  macOS            brew install openjdk@17",
    "or set JAVA_HOME to where it is.",
)


def why_no_spark(environment: Mapping[str, str]) -> str | None:
    """What stands in the way of Spark on this machine, in one line; None if nothing does."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "PySpark is not installed: pip install 'headrace[spark]'"
    java = _java(environment)
    if java is None:
        return "There is no Java on this machine."
    major = _major_version(java)
    if major is None:
        return f"{java} did not say which version it is."
    if major < MAJOR_MIN:
        return f"{java} is Java {major}, which is too old."
    return None


def _java(environment: Mapping[str, str]) -> str | None:
    home = environment.get("JAVA_HOME")
    if home:
        candidate = os.path.join(home, "bin", "java")
        return candidate if os.access(candidate, os.X_OK) else None
    return shutil.which("java", path=environment.get("PATH"))


def _major_version(java: str) -> int | None:
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_ANSWER_SECONDS_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return version_in(answer.stderr + answer.stdout)


def version_in(text: str) -> int | None:
    """The major version in what `java -version` prints."""
    found = _VERSION.search(text)
    if found is None:
        return None
    major, minor = int(found[1]), int(found[2] or 0)
    return minor if major == 1 else major
