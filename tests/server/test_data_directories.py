"""A node uses its own directories only, and goes on without those that can't be read."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from headrace.config.node import NodeConfig
from headrace.config.server_properties import read_node_config
from headrace.log.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from headrace.metadata.directories import UnusableDirectories
from headrace.metadata.ids import encode_id
from headrace.server.data_directories import DataDirectories, find_directories, lock_directories
from headrace.server.refusals import StartRefused
from headrace.system.disk import RealDisk
from headrace.testing.clock import ManualClock
from headrace.testing.entropy import SeededEntropy
from tests.support_node import CLUSTER_ID, headrace, node_properties, write_properties

FIRST_ID = "AAAAAAAAAAAAAAAAAAABAA"
SECOND_ID = "AAAAAAAAAAAAAAAAAAACAA"


def config_for(*directories: Path, **overrides: str) -> NodeConfig:
    properties = node_properties(directories[0], overrides=overrides)
    properties["log.dirs"] = ",".join(map(str, directories))
    return read_node_config(properties)


def formatted(directory: Path, directory_id: str | None = FIRST_ID, cluster_id: str = CLUSTER_ID) -> Path:
    directory.mkdir()
    properties = MetaProperties(cluster_id, 1, directory_id)
    write_meta_properties(RealDisk(), str(directory), properties, 0)
    return directory


def find(config: NodeConfig) -> DataDirectories:
    return find_directories(config, RealDisk(), SeededEntropy(1), ManualClock(), "my.properties")


def test_the_ids_of_formatted_directories_are_found(tmp_path: Path) -> None:
    first, second = formatted(tmp_path / "a"), formatted(tmp_path / "b", SECOND_ID)
    found = find(config_for(first, second))
    assert found.usable.cluster_id == CLUSTER_ID
    assert {path: encode_id(each) for path, each in found.usable.ids.items()} == {
        str(first): FIRST_ID,
        str(second): SECOND_ID,
    }
    assert not found.offline


def test_a_directory_without_an_id_gets_one_for_good(tmp_path: Path) -> None:
    directory = formatted(tmp_path / "a", directory_id=None)
    given = find(config_for(directory)).usable.ids
    written = read_meta_properties(RealDisk(), str(directory))
    assert written is not None
    assert written.directory_id == encode_id(given[str(directory)])


def test_the_second_of_two_directories_can_be_formatted_with_the_command_told(tmp_path: Path) -> None:
    first = formatted(tmp_path / "a")
    with pytest.raises(StartRefused) as refusal:
        find(config_for(first, tmp_path / "b"))
    assert f"-t {CLUSTER_ID} -c my.properties --ignore-formatted" in str(refusal.value)


def test_two_directories_with_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableDirectories, match="Duplicate directory ID"):
        find(config_for(formatted(tmp_path / "a"), formatted(tmp_path / "b")))


def test_an_unreadable_directory_is_left_out_unless_it_has_the_metadata(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = formatted(tmp_path / "a"), formatted(tmp_path / "b", SECOND_ID)
    (second / "meta.properties").write_text("version=nonsense\n")
    found = find(config_for(first, second))
    assert list(found.usable.ids) == [str(first)]
    assert list(found.offline) == [str(second)]
    assert f"log directory {second} is offline" in caplog.text
    with pytest.raises(StartRefused, match="the metadata log directory"):
        find(config_for(second, first))


def test_a_metadata_log_in_the_wrong_directory_is_refused(tmp_path: Path) -> None:
    first, second = formatted(tmp_path / "a"), formatted(tmp_path / "b", SECOND_ID)
    (second / "__cluster_metadata-0").mkdir()
    with pytest.raises(StartRefused, match=r"metadata\.log\.dir"):
        find(config_for(first, second))


def test_a_directory_is_locked_against_other_processes(tmp_path: Path) -> None:
    directory = formatted(tmp_path / "a")
    path = tmp_path / "server.properties"
    write_properties(path, node_properties(directory))
    with ExitStack() as stack:
        lock_directories(find(config_for(directory)), stack)
        refused = headrace("server", str(path))
    assert refused.returncode == 1
    assert f"{directory} is in use by another process" in refused.stderr
