"""`headrace storage` formats and tells as Kafka's own tool does."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from headrace.cli.app import app
from tests.support_node import CLUSTER_ID, node_properties, write_properties

VOTERS = "controller.quorum.voters"


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    write_properties(path, node_properties(tmp_path / "data"))
    return path


@pytest.fixture
def dynamic_properties(tmp_path: Path) -> Path:
    """A configuration that leaves the voters to the metadata log."""
    path = tmp_path / "server.properties"
    wanted = node_properties(tmp_path / "data")
    del wanted[VOTERS]
    wanted["controller.quorum.bootstrap.servers"] = "localhost:9093"
    write_properties(path, wanted)
    return path


def storage(*arguments: str) -> Result:
    result = CliRunner().invoke(app, ["storage", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_directory_is_formatted_for_its_node(properties: Path, tmp_path: Path) -> None:
    result = storage("format", "-t", CLUSTER_ID, "-c", str(properties))
    assert result.exit_code == 0
    bootstrap, formatting = result.stdout.splitlines()
    assert bootstrap.startswith("Bootstrap metadata: BootstrapMetadata(records=[ApiMessageAndVersion(")
    assert "FeatureLevelRecord(name='metadata.version', featureLevel=30) at version 0)" in bootstrap
    assert bootstrap.endswith("], metadataVersionLevel=30, source=format command)")
    assert formatting == f"Formatting metadata directory {tmp_path / 'data'} with metadata.version 4.3-IV0."
    meta = (tmp_path / "data" / "meta.properties").read_text()
    assert f"cluster.id={CLUSTER_ID}\n" in meta
    assert "node.id=1\n" in meta
    assert "version=1\n" in meta
    assert re.search(r"directory\.id=[\w-]{22}\n", meta)
    assert (tmp_path / "data" / "bootstrap.checkpoint").exists()


def test_secrets_of_credentials_are_not_printed(properties: Path) -> None:
    credential = "SCRAM-SHA-256=[name=alice,password=alice-secret]"
    result = storage("format", "-t", CLUSTER_ID, "-c", str(properties), "-S", credential)
    assert "UserScramCredentialRecord(name='alice', mechanism=1, salt=[hidden]" in result.stdout
    assert "alice-secret" not in result.stdout


def test_what_is_formatted_already_is_refused_unless_it_may_be_passed_over(properties: Path) -> None:
    storage("format", "-t", CLUSTER_ID, "-c", str(properties))
    again = storage("format", "-t", CLUSTER_ID, "-c", str(properties))
    assert again.exit_code == 1
    assert "is already formatted. Use --ignore-formatted" in again.stderr
    passed = storage("format", "-t", CLUSTER_ID, "-c", str(properties), "-g")
    assert (passed.exit_code, passed.stdout) == (0, "All of the log directories are already formatted.\n")


def test_a_directory_of_another_cluster_is_refused(properties: Path) -> None:
    storage("format", "-t", CLUSTER_ID, "-c", str(properties))
    other = storage("format", "-t", "b3RoZXItY2x1c3Rlci0xMQ", "-c", str(properties), "-g")
    assert other.exit_code == 1
    assert "Invalid cluster.id in" in other.stderr


def test_voters_in_the_log_need_one_of_three_flags(dynamic_properties: Path, tmp_path: Path) -> None:
    without = storage("format", "-t", CLUSTER_ID, "-c", str(dynamic_properties))
    assert without.exit_code == 1
    assert "--standalone, --initial-controllers, or --no-initial-controllers." in without.stderr
    result = storage("format", "-t", CLUSTER_ID, "-c", str(dynamic_properties), "--standalone")
    assert result.exit_code == 0
    assert "Formatting dynamic metadata voter directory" in result.stdout
    snapshot = tmp_path / "data" / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint"
    assert snapshot.exists()


def test_the_flags_about_voters_exclude_each_other(dynamic_properties: Path) -> None:
    result = storage("format", "-t", CLUSTER_ID, "-c", str(dynamic_properties), "-s", "-N")
    assert result.exit_code == 1
    assert "exclude each other" in result.stderr


def test_voters_in_the_configuration_go_without_flags(properties: Path) -> None:
    result = storage("format", "-t", CLUSTER_ID, "-c", str(properties), "--standalone")
    assert result.exit_code == 1
    assert "You cannot specify controller.quorum.voters" in result.stderr


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["-r", "9.9"], "Unknown metadata.version '9.9'"),
        (["-f", "group.version"], "equals sign not found"),
        (["-f", "nonsense=1"], "Unsupported feature: nonsense"),
        (["-S", "SCRAM-SHA-256"], "Failed to find equals sign"),
        (["-S", "SCRAM-SHA-256=[name=alice]"], "password"),
    ],
)
def test_wishes_that_can_not_be_met_end_with_one_line(
    properties: Path, tmp_path: Path, options: list[str], complaint: str
) -> None:
    result = storage("format", "-t", CLUSTER_ID, "-c", str(properties), *options)
    assert result.exit_code == 1
    assert complaint in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "data" / "meta.properties").exists()


@pytest.mark.parametrize(
    "arguments", [["format"], ["format", "-t", "x"], ["info"], ["nonsense"], ["format", "--nonsense"]]
)
def test_misuse_ends_with_1_as_kafkas_tool_does(arguments: list[str]) -> None:
    assert storage(*arguments).exit_code == 1


def test_a_missing_or_wrong_configuration_is_named(tmp_path: Path) -> None:
    missing = storage("info", "-c", str(tmp_path / "none.properties"))
    assert missing.exit_code == 1
    assert "none.properties: No such file or directory" in missing.stderr
    wrong = tmp_path / "wrong.properties"
    write_properties(wrong, node_properties(tmp_path, overrides={"num.partitions": "many"}))
    result = storage("info", "-c", str(wrong))
    assert result.exit_code == 1
    assert result.stderr == (
        "Invalid value many for configuration num.partitions: Not a number of type INT\n"
    )


def test_info_tells_what_is_there_and_what_is_wrong(properties: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    absent = storage("info", "-c", str(properties))
    assert (absent.exit_code, absent.stdout) == (1, f"Found problem:\n  {data} does not exist\n\n")
    data.mkdir()
    empty = storage("info", "-c", str(properties))
    assert empty.stdout == (
        f"Found log directory:\n  {data}\n\nFound problem:\n  {data} is not formatted.\n\n"
    )
    storage("format", "-t", CLUSTER_ID, "-c", str(properties))
    formatted = storage("info", "-c", str(properties))
    assert formatted.exit_code == 0
    assert re.fullmatch(
        rf"Found log directory:\n  {re.escape(str(data))}\n\nFound metadata: \{{cluster\.id={CLUSTER_ID}, "
        r"directory\.id=[\w-]{22}, node\.id=1, version=1\}\n\n",
        formatted.stdout,
    )


def test_random_ids_are_fit_for_clusters() -> None:
    first, second = storage("random-uuid").stdout, storage("random-uuid").stdout
    assert re.fullmatch(r"\w[\w-]{21}\n", first)
    assert first != second


def test_a_release_maps_to_the_levels_of_its_features() -> None:
    assert storage("version-mapping").stdout == (
        "metadata.version=30 (4.3-IV0)\nkraft.version=1\ntransaction.version=2\ngroup.version=1\n"
        "eligible.leader.replicas.version=1\nshare.version=1\nstreams.version=1\n"
    )
    assert storage("version-mapping", "-r", "4.0").stdout == (
        "metadata.version=25 (4.0)\nkraft.version=1\ntransaction.version=2\ngroup.version=1\n"
        "eligible.leader.replicas.version=0\nshare.version=0\nstreams.version=0\n"
    )


def test_dependencies_of_features_are_told() -> None:
    features = ("eligible.leader.replicas.version=1", "metadata.version=25", "group.version=1")
    arguments = [word for feature in features for word in ("-f", feature)]
    assert storage("feature-dependencies", *arguments).stdout == (
        "eligible.leader.replicas.version=1 requires:\n    metadata.version=23 (4.0-IV1)\n"
        "metadata.version=25 (4.0-IV3) has no dependencies.\n"
        "group.version=1 has no dependencies.\n"
    )


@pytest.mark.parametrize(
    ("feature", "complaint"),
    [
        ("nonsense=1", "Unknown feature: nonsense"),
        ("group.version=9", "Feature level 9 is not supported for feature group.version"),
        ("metadata.version=99", "Unknown metadata.version 99"),
        ("group.version=x", "Invalid version format: x for feature group.version"),
        (
            "group.version",
            "Invalid feature format: group.version. Expected format: 'feature=version' "
            "(e.g. 'group.version=1')",
        ),
    ],
)
def test_dependencies_of_what_is_not_known_are_refused(feature: str, complaint: str) -> None:
    result = storage("feature-dependencies", "-f", feature)
    assert (result.exit_code, result.stderr) == (1, f"{complaint}\n")
