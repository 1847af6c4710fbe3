"""`headrace server` refuses what it can't run with in one line, and tells what it passes over."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.cli.start_server import ServerCommand, plain_server_command
from tests.support_node import RunningNode, format_data, headrace, node_properties, write_properties


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[..., str]:
    """Starts a node that must not start, with overrides of its configuration; what it says."""

    def start(formatted: bool = True, **overrides: str) -> str:
        path = tmp_path / "server.properties"
        write_properties(path, node_properties(tmp_path / "data"))
        if formatted:
            format_data(path)
        options = [
            word
            for key, value in overrides.items()
            for word in ("--override", f"{key.replace('_', '.')}={value}")
        ]
        result = headrace("server", str(path), *options)
        assert result.returncode == 1
        assert result.stderr.startswith("headrace: ")
        assert len(result.stderr.splitlines()) == 1, result.stderr
        return result.stderr

    return start


def test_command_lines_are_read_without_the_command_line_library() -> None:
    words = ["a.properties", "--override", "a=1", "--override=b=2=3"]
    assert plain_server_command(words) == ServerCommand("a.properties", ("a=1", "b=2=3"))


@pytest.mark.parametrize("words", [[], ["--help"], ["a", "b"], ["a", "--override"], ["a", "--nonsense"]])
def test_what_is_not_plain_is_left_to_the_command_line_library(words: list[str]) -> None:
    assert plain_server_command(words) is None


def test_help_is_there(tmp_path: Path) -> None:
    result = headrace("server", "--help")
    assert result.returncode == 0
    assert "--override" in result.stdout


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    result = headrace("server", str(tmp_path / "none.properties"))
    assert result.returncode == 1
    assert (
        result.stderr
        == f"headrace: {tmp_path / 'none.properties'} can't be read: No such file or directory\n"
    )


def test_a_wrong_value_is_refused_with_key_value_and_reason(refusal: Callable[..., str]) -> None:
    assert "Invalid value many for configuration num.partitions: Not a number" in refusal(
        num_partitions="many"
    )


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ({"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}, "authoriser"),
        ({"super.users": "User:admin"}, "authoriser"),
        ({"listeners": "SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0"}, "SSL"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "SASL"),
        ({"ssl.keystore.location": "/keys"}, "TLS"),
    ],
)
def test_protection_that_is_not_there_stops_the_start(
    refusal: Callable[..., str], override: dict[str, str], reason: str
) -> None:
    assert reason in refusal(**override)


def test_other_roles_than_both_are_refused(refusal: Callable[..., str]) -> None:
    said = refusal(
        process_roles="broker",
        listeners="PLAINTEXT://127.0.0.1:0",
        **{"controller.quorum.voters": "2@localhost:9093"},
    )
    assert "has to be broker,controller" in said


def test_a_directory_that_is_not_formatted_comes_with_the_command_for_it(
    refusal: Callable[..., str], tmp_path: Path
) -> None:
    said = refusal(formatted=False)
    assert f"{tmp_path / 'data'} is not formatted" in said
    assert f'headrace storage format -t "$(headrace storage random-uuid)" -c {tmp_path}' in said


def test_directories_of_another_node_are_refused(refusal: Callable[..., str]) -> None:
    said = refusal(node_id="2", **{"controller.quorum.voters": "2@localhost:9093"})
    assert "Stored node id 1 doesn't match previous node id 2" in said


def test_directories_of_two_clusters_are_refused(refusal: Callable[..., str], tmp_path: Path) -> None:
    other = tmp_path / "other.properties"
    write_properties(other, node_properties(tmp_path / "other"))
    format_data(other, "b3RoZXItY2x1c3Rlci0xMQ")
    said = refusal(log_dirs=f"{tmp_path / 'data'},{tmp_path / 'other'}")
    assert "Invalid cluster.id" in said


def test_an_unknown_event_loop_is_refused(refusal: Callable[..., str]) -> None:
    assert "headrace.event.loop" in refusal(headrace_event_loop="trio")


def test_misspelt_and_ineffective_keys_are_told_and_passed_over(
    start_node: Callable[..., RunningNode],
) -> None:
    node = start_node(num_partition="3", num_io_threads="4")
    assert "unknown configuration key num.partition; did you mean num.partitions?" in node.output
    assert "configuration key num.io.threads has no effect in Headrace" in node.output
    assert node.stop() == 0


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_a_node_runs_on_either_event_loop(start_node: Callable[..., RunningNode], loop: str) -> None:
    node = start_node(headrace_event_loop=loop)
    assert node.stop() == 0


def test_each_step_of_a_start_is_one_line_with_its_time(headrace_node: RunningNode) -> None:
    for step in ("metadata log replayed", "broker 1 registered", "partitions opened", "broker unfenced"):
        headrace_node.wait_for(rf"INFO .*{step}.*\(\d+\.\d+ s\)")
    headrace_node.wait_for(r"INFO Headrace [\d.]+ ready: PLAINTEXT://127.0.0.1:\d+, 0 partitions, \d+\.\d+ s")
