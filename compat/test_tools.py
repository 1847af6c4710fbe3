"""Kafka's own command-line tools, unmodified, against a node: they do their work and say what they should."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from compat import support_tools as tools
from compat.support_seat import Seat, chosen_target
from compat.support_tools import KafkaTools
from tests.support_e2e import ConfluentClient

FACTS = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "facts"
LOG_NAME = "00000000000000000000.log"
TRIALS = 100
#: Keys that Kafka keeps to itself: they may be set, but are not described.
INTERNAL_KEYS = {"log.initial.task.delay.ms"}


@pytest.fixture(scope="module")
def seat(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seat]:
    """The node that the tools work on; what a test creates there has a name of its own."""
    taken = Seat(tmp_path_factory.mktemp("tools"))
    taken.format(chosen_target())
    try:
        taken.start(chosen_target())
        yield taken
    finally:
        taken.kill()


@pytest.fixture(scope="module")
def java(kafka_libs: Path) -> Iterator[KafkaTools]:
    with KafkaTools() as running:
        yield running


class Bench:
    """The tools with the node's address filled in."""

    def __init__(self, java: KafkaTools, seat: Seat) -> None:
        self.java = java
        self.seat = seat
        self.name = f"t-{uuid4()}"

    def run(self, tool: str, *arguments: str, stdin: str = "") -> list[str]:
        """The lines that a tool prints when it succeeds."""
        return self.java.run(tool, "--bootstrap-server", self.seat.address, *arguments, stdin=stdin).lines

    def refused(self, tool: str, *arguments: str) -> str:
        """What a tool says when it fails."""
        done = self.java.attempt(tool, "--bootstrap-server", self.seat.address, *arguments)
        assert done.status == 1, done
        return done.out + done.err

    def create(self, *arguments: str) -> None:
        """Create the test's own topic."""
        created = self.run(tools.TOPICS, "--create", "--topic", self.name, *arguments)
        assert created == [f"Created topic {self.name}."]
        self.await_listed(True)

    def await_listed(self, is_listed: bool) -> None:
        """A change is answered when the controller has it; brokers learn of it a moment later."""
        for _ in range(TRIALS):
            if (self.name in self.run(tools.TOPICS, "--list")) is is_listed:
                return
        pytest.fail(f"{self.name} is {'not ' if is_listed else ''}listed")

    def offsets(self, *arguments: str) -> dict[int, int]:
        """What GetOffsetShell says of the test's own topic: offsets by partition."""
        lines = self.run(tools.GET_OFFSETS, "--topic", self.name, *arguments)
        found = [line.split(":") for line in lines]
        assert all(topic == self.name for topic, _, _ in found)
        return {int(partition): int(offset) for _, partition, offset in found}

    def await_config(self, entity: tuple[str, ...], name: str, value: str) -> None:
        """Brokers follow their configuration a moment after the reply."""
        for _ in range(TRIALS):
            described = self.configs("--all", *entity)[name]
            if described.startswith(f"{value} "):
                return
        pytest.fail(f"{name} is {described}")

    def configs(self, *arguments: str) -> dict[str, str]:
        """What ConfigCommand describes: the rest of the line by name."""
        lines = self.run(tools.CONFIGS, "--describe", *arguments)
        return dict(line.split("=", 1) for line in lines if " sensitive=" in line)


@pytest.fixture
def bench(java: KafkaTools, seat: Seat) -> Bench:
    return Bench(java, seat)


def test_topics_are_created_listed_described_grown_and_deleted(bench: Bench) -> None:
    bench.create("--partitions", "3", "--replication-factor", "1", "--config", "retention.ms=3600000")
    heading, *partitions = bench.run(tools.TOPICS, "--describe", "--topic", bench.name)
    assert re.fullmatch(
        rf"Topic: {bench.name}\tTopicId: [\w-]{{22}}\tPartitionCount: 3\tReplicationFactor: 1\t"
        r"Configs: min\.insync\.replicas=1,retention\.ms=3600000",
        heading,
    )
    assert partitions == [
        f"Topic: {bench.name}\tPartition: {index}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr:"
        for index in range(3)
    ]

    bench.run(tools.TOPICS, "--alter", "--topic", bench.name, "--partitions", "5")
    assert len(bench.run(tools.TOPICS, "--describe", "--topic", bench.name)) == 1 + 5

    bench.run(tools.TOPICS, "--delete", "--topic", bench.name)
    bench.await_listed(False)


def test_topics_are_described_by_what_is_special_about_them(bench: Bench) -> None:
    bench.create("--config", "cleanup.policy=compact")
    overridden = bench.run(tools.TOPICS, "--describe", "--topics-with-overrides")
    assert any(bench.name in line and "cleanup.policy=compact" in line for line in overridden)
    for troubled in (
        "--under-replicated-partitions",
        "--unavailable-partitions",
        "--under-min-isr-partitions",
    ):
        assert bench.run(tools.TOPICS, "--describe", troubled) == []
    assert bench.run(tools.TOPICS, "--create", "--topic", bench.name, "--if-not-exists") == []
    topic_id = bench.run(tools.TOPICS, "--describe", "--topic", bench.name)[0].split("TopicId: ")[1][:22]
    by_id = bench.run(tools.TOPICS, "--describe", "--topic-id", topic_id)
    assert bench.name in by_id[0]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--config", "retention.ms=x"], "Invalid value x for configuration retention.ms"),
        (["--config", "nonsense=1"], "Unknown topic config name: nonsense"),
        (["--replication-factor", "3"], "Unable to replicate the partition 3 time(s)"),
        (["--replica-assignment", "7"], "includes broker 7, but no such broker is registered"),
    ],
)
def test_a_topic_that_cannot_be_is_refused_in_the_words_of_kafka(
    bench: Bench, arguments: list[str], reason: str
) -> None:
    said = bench.refused(tools.TOPICS, "--create", "--topic", bench.name, *arguments)
    assert reason in said
    assert bench.name not in bench.run(tools.TOPICS, "--list")


def test_changes_of_topics_that_cannot_be_are_refused_in_the_words_of_kafka(bench: Bench) -> None:
    bench.create("--partitions", "2")
    assert "already exists." in bench.refused(tools.TOPICS, "--create", "--topic", bench.name)
    assert "1 would not be an increase." in bench.refused(
        tools.TOPICS, "--alter", "--topic", bench.name, "--partitions", "1"
    )
    assert "contains one or more characters other than ASCII alphanumerics" in bench.refused(
        tools.TOPICS, "--create", "--topic", "not a name"
    )
    assert "does not exist as expected" in bench.refused(tools.TOPICS, "--delete", "--topic", "absent")


def test_topic_configurations_are_added_deleted_and_described(bench: Bench) -> None:
    bench.create()
    about = ("--entity-type", "topics", "--entity-name", bench.name)
    changed = bench.run(
        tools.CONFIGS,
        "--alter",
        *about,
        "--add-config",
        "max.message.bytes=2000,cleanup.policy=[compact,delete]",
    )
    assert changed == [f"Completed updating config for topic {bench.name}."]
    assert bench.configs(*about) == {
        "cleanup.policy": "compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy="
        "compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "max.message.bytes": "2000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:max.message.bytes=2000, "
        "DEFAULT_CONFIG:message.max.bytes=1048588}",
    }
    every = bench.configs("--all", *about)
    assert set(every) == set(json.loads((FACTS / "topic_configs.json").read_text(encoding="utf-8")))
    assert every["min.insync.replicas"] == (
        "1 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=1, "
        "DEFAULT_CONFIG:min.insync.replicas=1}"
    )

    bench.run(tools.CONFIGS, "--alter", *about, "--delete-config", "max.message.bytes")
    assert list(bench.configs(*about)) == ["cleanup.policy"]
    assert "Unknown topic config name: nonsense" in bench.refused(
        tools.CONFIGS, "--alter", *about, "--add-config", "nonsense=1"
    )


def test_broker_configurations_are_added_deleted_and_described(bench: Bench) -> None:
    one = ("--entity-type", "brokers", "--entity-name", "1")
    default = ("--entity-type", "brokers", "--entity-default")
    assert bench.run(tools.CONFIGS, "--alter", *one, "--add-config", "log.segment.bytes=90000000") == [
        "Completed updating config for broker 1."
    ]
    assert bench.run(tools.CONFIGS, "--alter", *default, "--add-config", "log.segment.bytes=80000000") == [
        "Completed updating default config for brokers in the cluster."
    ]
    described = (
        "sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.segment.bytes=90000000, "
        "DYNAMIC_DEFAULT_BROKER_CONFIG:log.segment.bytes=80000000, "
        "DEFAULT_CONFIG:log.segment.bytes=1073741824}"
    )
    bench.await_config(one, "log.segment.bytes", "90000000")
    assert bench.configs(*one) == {"log.segment.bytes": f"90000000 {described}"}
    assert bench.configs("--all", *one)["log.segment.bytes"] == f"90000000 {described}"
    assert set(bench.configs(*default)) == {"log.segment.bytes", "min.insync.replicas"}

    bench.create()
    bench.await_config(("--entity-type", "topics", "--entity-name", bench.name), "segment.bytes", "90000000")
    bench.run(tools.CONFIGS, "--alter", *one, "--delete-config", "log.segment.bytes")
    bench.await_config(one, "log.segment.bytes", "80000000")
    bench.run(tools.CONFIGS, "--alter", *default, "--delete-config", "log.segment.bytes")
    bench.await_config(one, "log.segment.bytes", "1073741824")
    assert bench.configs(*one) == {}


def test_every_configuration_of_a_broker_is_described(bench: Bench) -> None:
    every = bench.configs("--all", "--entity-type", "brokers", "--entity-name", "1")
    known = set(json.loads((FACTS / "broker_configs.json").read_text(encoding="utf-8")))
    assert {name for name in every if not name.startswith("headrace.")} == known - INTERNAL_KEYS
    assert every["node.id"] == "1 sensitive=false synonyms={STATIC_BROKER_CONFIG:node.id=1}"


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_console_producer_writes_what_it_is_given(bench: Bench, codec: str) -> None:
    bench.create()
    properties = ("parse.key=true", "parse.headers=true")
    reader = [word for each in properties for word in ("--reader-property", each)]
    typed = "".join(f"h:{index}\tkey-{index}\tvalue {index}\n" for index in range(50))
    bench.run(
        tools.CONSOLE_PRODUCER, "--topic", bench.name, "--compression-codec", codec, *reader, stdin=typed
    )
    seen = ConfluentClient(bench.seat.address).consume(bench.name, 50)
    assert [(record.key, record.value) for record in seen] == [
        (b"key-%d" % index, b"value %d" % index) for index in range(50)
    ]
    assert seen[7].headers == (("h", b"7"),)
    assert [record.offset for record in seen] == list(range(50))


@pytest.mark.parametrize(
    "settings",
    [
        ("acks=all", "compression.type=lz4"),
        ("acks=1", "enable.idempotence=false"),
        ("acks=0", "enable.idempotence=false"),
    ],
)
def test_the_performance_tool_loses_nothing(bench: Bench, settings: tuple[str, ...]) -> None:
    bench.create("--partitions", "3")
    said = bench.run(
        tools.PRODUCER_PERFORMANCE,
        *("--topic", bench.name, "--num-records", "20000", "--record-size", "100", "--throughput", "-1"),
        *("--command-property", *settings),
    )
    assert any(line.startswith("20000 records sent, ") for line in said), said
    assert sum(bench.offsets().values()) == 20000


def test_offsets_are_found_by_time_and_by_place(bench: Bench) -> None:
    bench.create("--partitions", "2")
    bench.run(tools.CONSOLE_PRODUCER, "--topic", bench.name, "--sync", stdin="a\n" * 10)
    latest = bench.offsets()
    assert sum(latest.values()) == 10
    assert bench.offsets("--time", "latest") == latest
    assert bench.offsets("--time", "-2") == {0: 0, 1: 0}
    held = {partition for partition, offset in latest.items() if offset}
    assert set(bench.offsets("--time", "max-timestamp")) == held
    assert bench.offsets("--time", "1700000000000") == dict.fromkeys(held, 0)
    assert bench.offsets("--time", "4000000000000") == {}
    assert bench.run(tools.GET_OFFSETS, "--topic-partitions", f"{bench.name}:1") == [
        f"{bench.name}:1:{latest[1]}"
    ]


def test_records_are_deleted_up_to_an_offset(bench: Bench, tmp_path: Path) -> None:
    bench.create()
    bench.run(tools.CONSOLE_PRODUCER, "--topic", bench.name, "--sync", stdin="a\n" * 10)

    def delete_before(offset: int) -> list[str]:
        wanted = {"partitions": [{"topic": bench.name, "partition": 0, "offset": offset}], "version": 1}
        file = tmp_path / "delete.json"
        file.write_text(json.dumps(wanted), encoding="utf-8")
        return bench.run(tools.DELETE_RECORDS, "--offset-json-file", str(file))

    assert f"partition: {bench.name}-0\tlow_watermark: 4" in delete_before(4)
    assert bench.offsets("--time", "earliest") == {0: 4}
    assert any("OffsetOutOfRange" in line for line in delete_before(11))
    assert f"partition: {bench.name}-0\tlow_watermark: 10" in delete_before(-1)
    assert bench.offsets("--time", "earliest") == bench.offsets() == {0: 10}


def test_log_directories_are_described(bench: Bench) -> None:
    bench.create("--partitions", "2")
    bench.run(tools.CONSOLE_PRODUCER, "--topic", bench.name, stdin="a\n" * 10)
    said = bench.run(tools.LOG_DIRS, "--describe", "--topic-list", bench.name, "--broker-list", "1")
    assert said[:2] == [
        "Querying brokers for log directories information",
        "Received log directory information from brokers 1",
    ]
    (broker,) = json.loads(said[2])["brokers"]
    (directory,) = broker["logDirs"]
    assert (directory["logDir"], directory["error"]) == (str(bench.seat.data_dir), None)
    sizes = {
        f"{bench.name}-{index}": (bench.seat.data_dir / f"{bench.name}-{index}" / LOG_NAME).stat().st_size
        for index in range(2)
    }
    assert {each["partition"]: each["size"] for each in directory["partitions"]} == sizes
    assert all(each["offsetLag"] == 0 and not each["isFuture"] for each in directory["partitions"])


def test_the_dump_tool_reads_a_partition_and_finds_it_sound(bench: Bench) -> None:
    bench.create()
    bench.run(
        tools.CONSOLE_PRODUCER, "--topic", bench.name, stdin="".join(f"value-{i}\n" for i in range(100))
    )
    directory = bench.seat.data_dir / f"{bench.name}-0"
    log = bench.java.run(
        tools.DUMP_LOG, "--print-data-log", "--deep-iteration", "--files", str(directory / LOG_NAME)
    )
    batches = [line for line in log.lines if line.startswith("baseOffset: ")]
    assert batches
    assert all("isvalid: true" in line and "partitionLeaderEpoch: 0" in line for line in batches)
    assert [line.split("payload: ")[1] for line in log.lines if "payload: " in line] == [
        f"value-{index}" for index in range(100)
    ]
    for index in ("00000000000000000000.index", "00000000000000000000.timeindex"):
        sane = bench.java.run(tools.DUMP_LOG, "--index-sanity-check", "--files", str(directory / index))
        assert sane.lines[-1].endswith("passed sanity check."), sane


def test_the_dump_tool_decodes_the_metadata_log(bench: Bench) -> None:
    bench.create("--partitions", "2", "--config", "retention.ms=77000")
    segments = sorted(bench.seat.metadata_dir.glob("*.log"))
    dumped = bench.java.run(
        tools.DUMP_LOG, "--cluster-metadata-decoder", "--files", ",".join(map(str, segments))
    )
    assert "LeaderChange: " in dumped.out
    assert all("isvalid: true" in line for line in dumped.lines if line.startswith("baseOffset: "))
    payloads = [json.loads(line.split("payload: ")[1]) for line in dumped.lines if "payload: " in line]
    kinds = {record["type"] for record in payloads}
    assert {"FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD"} <= kinds
    (topic,) = [each["data"] for each in payloads if each["data"].get("name") == bench.name]
    partitions = [each["data"] for each in payloads if each["type"] == "PARTITION_RECORD"]
    own = [each for each in partitions if each["topicId"] == topic["topicId"]]
    assert [(each["partitionId"], each["isr"], each["leader"]) for each in own] == [(0, [1], 1), (1, [1], 1)]
    configs = [each["data"] for each in payloads if each["type"] == "CONFIG_RECORD"]
    assert {
        "resourceType": 2,
        "resourceName": bench.name,
        "name": "retention.ms",
        "value": "77000",
    } in configs


def test_the_advertised_versions_are_those_of_kafka(bench: Bench) -> None:
    facts = json.loads((FACTS / "api_versions_broker.json").read_text(encoding="utf-8"))["api_versions"]
    heading, *lines = bench.run(tools.API_VERSIONS)
    assert heading == f"{bench.seat.address} (id: 1 rack: null isFenced: false) -> ("
    pattern = re.compile(r"\w+\((\d+)\): (\d+)(?: to (\d+))? \[usable: (\d+)\],?")
    found = [match for line in lines if (match := pattern.fullmatch(line))]
    assert len(found) > 20
    for key, first, last, usable in (match.groups() for match in found):
        assert [int(first), int(last or first)] == facts[key], key
        assert usable == (last or first)


def test_the_metadata_quorum_is_described(bench: Bench) -> None:
    status = dict(line.split(":", 1) for line in bench.run(tools.METADATA_QUORUM, "describe", "--status"))
    assert status["LeaderId"].strip() == "1"
    assert int(status["HighWatermark"]) > 0
    assert status["MaxFollowerLag"].strip() == "0"
    (voter,) = json.loads(status["CurrentVoters"])
    assert voter["id"] == 1
    assert voter["endpoints"] == ["CONTROLLER://" + bench.seat.properties["controller.quorum.voters"][2:]]
    assert status["CurrentObservers"].strip() == "[]"

    heading, replica = bench.run(tools.METADATA_QUORUM, "describe", "--replication")
    columns = dict(zip(heading.split(), replica.split(), strict=True))
    assert (columns["NodeId"], columns["Lag"], columns["Status"]) == ("1", "0", "Leader")
    human = bench.run(tools.METADATA_QUORUM, "describe", "--replication", "--human-readable")
    assert "ms ago" in human[1]


def test_features_are_described(bench: Bench) -> None:
    lines = bench.run(tools.FEATURES, "describe")
    found = {}
    for line in lines:
        fields = dict(re.findall(r"(\w+): (\S+)", line))
        found[fields["Feature"]] = (fields["SupportedMaxVersion"], fields["FinalizedVersionLevel"])
    assert found == {
        "eligible.leader.replicas.version": ("1", "1"),
        "group.version": ("1", "1"),
        "kraft.version": ("1", "0"),
        "metadata.version": ("4.3-IV0", "4.3-IV0"),
        "share.version": ("1", "1"),
        "streams.version": ("1", "1"),
        "transaction.version": ("2", "2"),
    }


def test_the_storage_tool_knows_the_directory(bench: Bench) -> None:
    lines = bench.java.run(tools.STORAGE, "info", "-c", str(bench.seat.properties_file)).lines
    assert lines[:2] == ["Found log directory:", str(bench.seat.data_dir)]
    shown = r"cluster\.id=c2VhdC1vZi1ib3RoLWtpbg, directory\.id=[\w-]{22}, node\.id=1, version=1"
    assert re.fullmatch(rf"Found metadata: \{{{shown}\}}", lines[2])
