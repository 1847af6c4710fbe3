"""How commands find their cluster, and what they say when they do not."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.cli.app import app
from headrace.cli.client_options import BOOTSTRAP_VARIABLE, Access
from headrace.cli.client_session import client_config
from headrace.client.errors import ConfigRefused
from tests.support_answers import free_ports


def test_a_cluster_is_looked_for_on_this_machine_unless_told_otherwise() -> None:
    assert client_config(Access(), {}).bootstrap_servers == ("localhost:9092",)


def test_options_go_before_the_file_and_the_file_before_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=filed:1\nclient.id=filed\nrequest.timeout.ms=7000\n")
    environment = {BOOTSTRAP_VARIABLE: "environ:1,other:2"}
    assert client_config(Access(), environment).bootstrap_servers == ("environ:1", "other:2")
    filed = client_config(Access(None, str(file)), environment)
    assert (filed.bootstrap_servers, filed.client_id) == (("filed:1",), "filed")
    given = client_config(Access("given:1", str(file), {"request.timeout.ms": "8000"}), environment)
    assert (given.bootstrap_servers, given.request_timeout_ms) == (("given:1",), 8000)


def test_keys_that_are_not_known_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("reqest.timeout.ms=1\n")
    with pytest.raises(ConfigRefused, match=r"did you mean request\.timeout\.ms"):
        client_config(Access(None, str(file)), {})
    file.write_text("sasl.mechanism=PLAIN\n")
    result = CliRunner().invoke(app, ["topic", "list", "--command-config", str(file)])
    assert result.exit_code == 1
    assert result.stderr.startswith("headrace: sasl.mechanism: ")


def test_a_properties_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none.properties"
    result = CliRunner().invoke(app, ["topic", "list", "--command-config", str(missing)])
    assert result.exit_code == 1
    assert result.stderr == f"headrace: {missing}: No such file or directory\n"


def test_an_unreachable_cluster_is_told_with_every_address_in_bounded_time(tmp_path: Path) -> None:
    first, second = (f"127.0.0.1:{port}" for port in free_ports(2))
    file = tmp_path / "client.properties"
    file.write_text("default.api.timeout.ms=300\n")
    words = ["topic", "list", "-b", f"{first},{second}", "--command-config", str(file)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert first in result.stderr
    assert second in result.stderr
    assert "--bootstrap-server" in result.stderr


@pytest.mark.parametrize("command", ["produce", "consume"])
def test_a_plain_install_is_told_how_to_get_columns(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = CliRunner().invoke(app, [command, "t", "-b", "localhost:1"])
    assert result.exit_code == 1
    assert result.stderr == (
        f"headrace: `headrace {command}` needs pyarrow; install it with: pip install 'headrace[arrow]'\n"
    )
