"""Formatting a node's directories, and what `storage info` says of them."""

import pytest

from headrace.config.node import NodeConfig
from headrace.errors import HeadraceError
from headrace.log.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from headrace.metadata.bootstrap import (
    UnusableBootstrap,
    activation_records,
    bootstrap_records,
    read_bootstrap,
)
from headrace.metadata.directories import UnusableDirectories, load_directories, previous_broker_epoch
from headrace.metadata.format import FormatPlan, format_directories, format_plan, storage_info
from headrace.metadata.ids import decode_id
from headrace.metadata.image import MetadataImage
from headrace.metadata.scram_arguments import InvalidScramArgument, scram_record
from headrace.metadata.versions import MetadataVersion
from headrace.protocol.disk_records.cluster_metadata import (
    FeatureLevelRecord,
    UserScramCredentialRecord,
)
from headrace.protocol.disk_records.control_records import KRaftVersionRecord, VotersRecord
from headrace.raft.batches import ControlBatch
from headrace.raft.snapshots import read_snapshot
from headrace.testing.clock import ManualClock
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import Crashed, Loss, MemoryDisk
from tests.support_metadata import CLUSTER_ID, DATA, RECORDED, STANDALONE, STATIC, unpack

OTHER_ID = "MvDxzVmcRsaTz33bUuRU6A"


def plan(texts: dict[str, str] = STATIC, **flags: object) -> FormatPlan:
    return format_plan(NodeConfig(texts), CLUSTER_ID, SeededEntropy(), **flags)  # type: ignore[arg-type]


def run(wanted: FormatPlan, disk: MemoryDisk | None = None) -> tuple[MemoryDisk, list[str]]:
    target = disk or MemoryDisk()
    lines = format_directories(target, ManualClock(), SeededEntropy(7), wanted)
    return target, [line for line in lines if not line.startswith("Bootstrap metadata: ")]


def levels(disk: MemoryDisk) -> dict[str, int]:
    found = read_bootstrap(disk, DATA)
    return {each.name: each.feature_level for each in found if isinstance(each, FeatureLevelRecord)}


def test_a_static_quorum_gets_properties_and_bootstrap_records() -> None:
    disk, lines = run(plan())
    assert lines == [f"Formatting metadata directory {DATA} with metadata.version 4.3-IV0."]
    assert disk.list_directory(DATA) == ["bootstrap.checkpoint", "meta.properties"]
    found = read_meta_properties(disk, DATA)
    assert found is not None
    assert (found.cluster_id, found.node_id, found.version) == (CLUSTER_ID, 1, 1)
    assert found.directory_id is not None
    assert not found.directory_id.startswith("-")
    assert decode_id(found.directory_id).version == 4
    assert levels(disk) == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }


def test_the_bootstrap_file_holds_what_kafkas_holds() -> None:
    disk = MemoryDisk()
    unpack(RECORDED, disk)
    theirs = [each for each in read_bootstrap(disk, DATA) if isinstance(each, FeatureLevelRecord)]
    assert bootstrap_records(MetadataVersion.V4_3_IV0, plan().levels) == theirs


def test_standalone_writes_the_voter_into_the_first_snapshot() -> None:
    disk, lines = run(plan(STANDALONE, standalone=True))
    assert lines == [f"Formatting dynamic metadata voter directory {DATA} with metadata.version 4.3-IV0."]
    path = f"{DATA}/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
    first = next(read_snapshot(disk, path))
    assert isinstance(first, ControlBatch)
    version, voters = (record.message for record in first.records[1:])
    assert isinstance(version, KRaftVersionRecord)
    assert version.k_raft_version == 1
    assert isinstance(voters, VotersRecord)
    (voter,) = voters.voters
    found = read_meta_properties(disk, DATA)
    assert found is not None
    assert voter.voter_directory_id == decode_id(found.directory_id or "")
    assert [(each.name, each.host, each.port) for each in voter.endpoints] == [
        ("CONTROLLER", "127.0.0.1", 9093)
    ]


def test_initial_controllers_name_the_directory_of_this_node() -> None:
    disk, _ = run(plan(STANDALONE, initial_controllers=f"1@127.0.0.1:9093:{OTHER_ID}"))
    found = read_meta_properties(disk, DATA)
    assert found is not None
    assert found.directory_id == OTHER_ID
    _, lines = run(plan(STANDALONE, initial_controllers=f"2@host:9093:{OTHER_ID}"))
    assert lines[0].startswith("Formatting dynamic metadata directory ")


def test_without_initial_controllers_there_are_no_voters() -> None:
    disk, lines = run(plan(STANDALONE, no_initial_controllers=True))
    assert lines[0].startswith("Formatting metadata directory ")
    assert not disk.exists(f"{DATA}/__cluster_metadata-0")


def test_a_release_and_single_features_can_be_chosen() -> None:
    disk, _ = run(plan(release="4.0"))
    assert levels(disk) == {"metadata.version": 25, "group.version": 1, "transaction.version": 2}
    disk, _ = run(plan(release="4.0", features=["transaction.version=0", "group.version = 0"]))
    assert levels(disk) == {"metadata.version": 25}
    disk, _ = run(plan(features=["metadata.version=20"]))
    assert levels(disk) == {"metadata.version": 20}


@pytest.mark.parametrize(
    ("texts", "flags", "reason"),
    [
        (STATIC, {"standalone": True}, r"You cannot specify controller\.quorum\.voters"),
        (STATIC, {"initial_controllers": f"1@h:1:{OTHER_ID}"}, "You cannot specify"),
        (STANDALONE, {}, "you must specify one of the following: --standalone"),
        (STATIC, {"features": ["kraft.version=1"]}, r"Cannot set kraft\.version to 1 unless"),
        (
            STANDALONE,
            {"standalone": True, "features": ["kraft.version=0"]},
            r"Cannot set kraft\.version to 0",
        ),
        (STATIC, {"features": ["foo.version=1"]}, r"Unsupported feature: foo\.version"),
        (STATIC, {"features": ["group.version"]}, "equals sign not found"),
        (STATIC, {"features": ["group.version=x"]}, "unable to parse x as a short"),
        (STATIC, {"features": ["group.version=7"]}, r"No feature:group\.version with feature level 7"),
        (STATIC, {"features": ["metadata.version=30"], "release": "4.3"}, "to avoid ambiguity"),
        (STATIC, {"release": "2.8"}, r"Unknown metadata\.version '2\.8'"),
        (
            STATIC,
            {"release": "4.0-IV0", "features": ["eligible.leader.replicas.version=1"]},
            r"depends on metadata\.version level 23",
        ),
        (STATIC, {"release": "3.4", "scram_arguments": ["x"]}, r"SCRAM is only supported .* 3\.5-IV2"),
        ({"node.id": "1", "log.dirs": DATA}, {}, r"process\.roles"),
    ],
)
def test_what_does_not_go_together_is_refused_with_the_reason(
    texts: dict[str, str], flags: dict[str, object], reason: str
) -> None:
    with pytest.raises(HeadraceError, match=reason):
        plan(texts, **flags)


def test_a_formatted_directory_is_not_formatted_again() -> None:
    disk, _ = run(plan())
    before = disk.read(f"{DATA}/meta.properties")
    with pytest.raises(HeadraceError, match="is already formatted"):
        run(plan(), disk)
    assert run(plan(ignore_formatted=True), disk)[1] == ["All of the log directories are already formatted."]
    assert disk.read(f"{DATA}/meta.properties") == before


def test_other_directories_are_formatted_beside_a_formatted_one() -> None:
    disk, _ = run(plan())
    both = {**STATIC, "log.dirs": f"{DATA},/more"}
    assert run(plan(both, ignore_formatted=True), disk)[1] == [
        "Formatting data directory /more with metadata.version 4.3-IV0."
    ]


def test_directories_of_another_cluster_or_node_are_not_touched() -> None:
    disk, _ = run(plan())
    other = format_plan(NodeConfig(STATIC), OTHER_ID, SeededEntropy(), ignore_formatted=True)
    with pytest.raises(UnusableDirectories, match=r"Invalid cluster\.id in: /data/meta\.properties"):
        run(other, disk)
    texts = {**STATIC, "node.id": "2", "controller.quorum.voters": "2@h:1"}
    with pytest.raises(UnusableDirectories, match="Stored node id 1 doesn't match"):
        run(plan(texts, ignore_formatted=True), disk)


@pytest.mark.parametrize("loss", list(Loss))
def test_a_crash_leaves_a_directory_formatted_or_to_be_formatted(loss: Loss) -> None:
    for operations in range(25):
        disk = MemoryDisk()
        disk.crash_after(operations)
        try:
            run(plan(STANDALONE, standalone=True), disk)
        except Crashed:
            disk.crash(loss)
        else:
            disk.heal()
        if read_meta_properties(disk, DATA) is None:
            run(plan(STANDALONE, standalone=True), disk)
        assert levels(disk)["metadata.version"] == 30
        list(read_snapshot(disk, f"{DATA}/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"))


def test_scram_credentials_are_those_that_kafka_computes() -> None:
    theirs = [each for each in read_recorded_bootstrap() if isinstance(each, UserScramCredentialRecord)]
    bob = next(each for each in theirs if each.name == "bob")
    argument = (
        'SCRAM-SHA-512=[name=bob,iterations=8192,salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5Y3d4Z3U=",password=bob]'
    )
    assert scram_record(argument, SeededEntropy()) == bob


def read_recorded_bootstrap() -> list[object]:
    disk = MemoryDisk()
    unpack(RECORDED, disk)
    return list(read_bootstrap(disk, DATA))


def test_scram_credentials_are_added_to_the_bootstrap_records() -> None:
    disk, _ = run(plan(scram_arguments=["SCRAM-SHA-256=[name=alice,password=secret]"]))
    record = read_bootstrap(disk, DATA)[-1]
    assert isinstance(record, UserScramCredentialRecord)
    assert (record.name, record.mechanism, record.iterations) == ("alice", 1, 4096)
    assert 20 <= len(record.salt) <= 26


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("SCRAM-SHA-256", "equals sign"),
        ("SCRAM-MD5=[name=a,password=b]", "not supported"),
        ("SCRAM-SHA-256=name=a", r"start with \["),
        ("SCRAM-SHA-256=[name=a", "end with ]"),
        ("SCRAM-SHA-256=[password=b]", "'name'"),
        ("SCRAM-SHA-256=[name=a]", "'password' or 'saltedpassword'"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=YQ==]", "'salt' with"),
        ("SCRAM-SHA-256=[name=a,password=b,salt=!]", "decode given salt"),
        ("SCRAM-SHA-256=[name=a,password=b,iterations=x]", "parse iterations"),
        ("SCRAM-SHA-256=[name=a,password=b,iterations=100]", ">= 4096"),
        ("SCRAM-SHA-256=[name=a,password=b,iterations=20000]", "<= 16384"),
        ("SCRAM-SHA-256=[name=a,password=b,colour=red]", "Unknown SCRAM configurations: colour"),
        ("SCRAM-SHA-256=[name]", "No equals sign"),
    ],
)
def test_what_is_no_credential_is_refused(argument: str, reason: str) -> None:
    with pytest.raises(InvalidScramArgument, match=reason):
        scram_record(argument, SeededEntropy())


def test_info_tells_what_is_there() -> None:
    disk, _ = run(plan())
    lines, code = storage_info(disk, NodeConfig(STATIC))
    assert code == 0
    assert lines[:3] == ["Found log directory:", f"  {DATA}", ""]
    assert lines[3].startswith(f"Found metadata: {{cluster.id={CLUSTER_ID}, directory.id=")
    assert lines[3].endswith("node.id=1, version=1}")


def test_info_tells_what_is_wrong() -> None:
    disk, _ = run(plan())
    disk.make_directory("/empty")
    disk.replace("/file", b"")
    disk.make_directory("/other")
    write_meta_properties(disk, "/other", MetaProperties(OTHER_ID, 1, OTHER_ID), 0)
    texts = {**STATIC, "log.dirs": f"{DATA},/empty,/missing,/file,/other"}
    lines, code = storage_info(disk, NodeConfig(texts))
    assert code == 1
    assert lines[lines.index("Found problems:") + 1 :] == [
        "  /empty is not formatted.",
        "  /file is not a directory",
        "  /missing does not exist",
        "  Mismatched cluster IDs between storage directories.",
        "",
    ]


def test_a_node_does_not_start_on_directories_that_are_not_its_own() -> None:
    disk, _ = run(plan())

    def load(**texts: str) -> None:
        keys = {key.replace("_", "."): text for key, text in texts.items()}
        load_directories(disk, ManualClock(), SeededEntropy(), NodeConfig({**STATIC, **keys}))

    load()
    with pytest.raises(UnusableDirectories, match=r"No `meta\.properties` found in /more"):
        load(log_dirs=f"{DATA},/more")
    with pytest.raises(UnusableDirectories, match="Stored node id 1"):
        load(node_id="4", controller_quorum_voters="4@h:1")
    found = read_meta_properties(disk, DATA)
    assert found is not None
    disk.make_directory("/more")
    write_meta_properties(disk, "/more", found, 0)
    with pytest.raises(UnusableDirectories, match="Duplicate directory ID"):
        load(log_dirs=f"{DATA},/more")
    write_meta_properties(disk, "/more", MetaProperties(CLUSTER_ID, 1, OTHER_ID), 0)
    disk.make_directory("/more/__cluster_metadata-0")
    with pytest.raises(UnusableDirectories, match="unexpected metadata location"):
        load(log_dirs=f"{DATA},/more")


def test_directories_from_before_they_had_ids_get_one() -> None:
    disk = MemoryDisk()
    disk.make_directory(DATA)
    write_meta_properties(disk, DATA, MetaProperties(CLUSTER_ID, 1), 0)
    found = load_directories(disk, ManualClock(), SeededEntropy(), NodeConfig(STATIC))
    assert found == load_directories(disk, ManualClock(), SeededEntropy(9), NodeConfig(STATIC))


def test_the_previous_epoch_counts_only_if_all_directories_agree() -> None:
    disk = MemoryDisk()
    texts = {**STATIC, "log.dirs": "/a,/b", "metadata.log.dir": "/a"}
    for directory in ("/a", "/b"):
        disk.make_directory(directory)
    config = NodeConfig(texts)
    assert previous_broker_epoch(disk, config) == -1
    disk.replace("/a/.kafka_cleanshutdown", b'{"version":0,"brokerEpoch":391}')
    assert previous_broker_epoch(disk, config) == -1
    disk.replace("/b/.kafka_cleanshutdown", b'{"version":0,"brokerEpoch":390}')
    assert previous_broker_epoch(disk, config) == -1
    disk.replace("/b/.kafka_cleanshutdown", b'{"version":0,"brokerEpoch":391}')
    assert previous_broker_epoch(disk, config) == 391


def test_bootstrap_records_without_a_version_start_nothing() -> None:
    with pytest.raises(UnusableBootstrap, match=r"metadata\.version"):
        activation_records(MetadataImage(), [], -1, 1)
