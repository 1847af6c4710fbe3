"""Workers of a local session run the Python that the driver runs, unless another is asked for."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.spark.registration import register


class Session:
    """As much of a session as registering touches."""

    def __init__(self, **settings: str) -> None:
        self.settings = settings
        self.conf = self
        self.sparkContext = SimpleNamespace(pythonExec="python3")
        self.registered: list[type] = []
        self.dataSource = SimpleNamespace(register=self.registered.append)

    def get(self, name: str, default: str | None) -> str | None:
        return self.settings.get(name.replace(".", "_"), default)


def registered(session: Any) -> str:
    register(session)
    assert [source.name() for source in session.registered] == ["headrace"]
    return str(session.sparkContext.pythonExec)


def test_workers_of_a_local_session_run_the_drivers_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert registered(Session(spark_master="local[2]")) == sys.executable


def test_a_python_that_was_asked_for_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    assert registered(Session(spark_master="local[2]")) == "python3"
    monkeypatch.delenv("PYSPARK_PYTHON")
    assert registered(Session(spark_master="local[2]", spark_pyspark_python="pypy")) == "python3"


def test_workers_of_a_cluster_run_their_own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert registered(Session(spark_master="spark://host:7077")) == "python3"
