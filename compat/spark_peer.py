"""Gets Spark's own connector and the PySpark it belongs to, and runs jobs with both beside ours.

The connector exists for PySpark 4.2.0. Its jars are fetched one by one, without their parents.
PySpark lives in a directory of its own, in front of the one that is installed. Everything is kept in the
git-ignored `.cache` of the checkout.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from compat.kafka_libs import COMPAT, Unavailable, java_command, locked

PYSPARK_VERSION: Final = "4.2.0"
JARS: Final = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_DOWNLOAD_TIMEOUT_S: Final = 1800
_JOB_TIMEOUT_S: Final = 1500


def cache_directory() -> Path:
    """Where PySpark and the jars are kept."""
    return COMPAT.parent / ".cache" / f"pyspark-{PYSPARK_VERSION}"


def spark_peer() -> Path:
    """The directory with PySpark (`python`) and the connector's jars (`jars`), fetched the first time."""
    java_command()
    cache = cache_directory()
    complete = cache / "complete"
    if complete.exists():
        return cache
    with locked(cache / "lock"):
        if not complete.exists():
            _fetch_jars(cache / "jars")
            _install_pyspark(cache / "python")
            complete.write_text("\n".join([f"pyspark {PYSPARK_VERSION}", *JARS, ""]), encoding="utf-8")
    return cache


def connector_jars() -> str:
    """The jars, as Spark's configuration lists them."""
    return ",".join(str(path) for path in sorted((spark_peer() / "jars").glob("*.jar")))


def peer_environment() -> dict[str, str]:
    """The environment in which Python finds PySpark of the connector's version first."""
    peer = spark_peer() / "python"
    path = os.pathsep.join([str(peer), str(COMPAT.parent)])
    return os.environ | {"PYTHONPATH": path, "SPARK_HOME": str(peer / "pyspark")}


def run_job(module: str, arguments: Mapping[str, Any], *, timeout_s: int = _JOB_TIMEOUT_S) -> Any:
    """Run a module's `main` with the connector at hand: arguments and result are JSON, in files."""
    with tempfile.TemporaryDirectory() as scratch:
        given, result = Path(scratch) / "arguments.json", Path(scratch) / "result.json"
        given.write_text(
            json.dumps({**arguments, "jars": connector_jars(), "scratch": scratch}), encoding="utf-8"
        )
        done = subprocess.run(
            [sys.executable, "-m", module, str(given), str(result)],
            env=peer_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )
        if done.returncode:
            raise RuntimeError(f"{module} failed:\n{done.stdout[-4000:]}\n{done.stderr[-8000:]}")
        return json.loads(result.read_text(encoding="utf-8"))


def _fetch_jars(target: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable("Spark's connector needs Maven to be fetched (no `mvn` on the PATH)")
    for artifact in JARS:
        _run([maven, "-q", "-B", _COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={target}"], artifact)


def _install_pyspark(target: Path) -> None:
    wanted = ["--target", str(target), "--upgrade", f"pyspark=={PYSPARK_VERSION}"]
    if importlib.util.find_spec("pip") is not None:
        installer = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    elif (uv := shutil.which("uv")) is not None:
        installer = [uv, "pip", "install", "--quiet", "--python", sys.executable]
    else:
        raise Unavailable(f"PySpark {PYSPARK_VERSION} needs pip or uv to be fetched")
    _run([*installer, *wanted], f"PySpark {PYSPARK_VERSION}")


def _run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_DOWNLOAD_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"it took over {_DOWNLOAD_TIMEOUT_S} s to fetch {what}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise Unavailable(f"{what} could not be fetched: {said[-1]}")
