"""Records how a running Apache Kafka describes and alters configuration, for tests/fixtures/facts.

    python -m tools.check_config_facts            compare the recording with a fresh one
    python -m tools.check_config_facts --write    replace it

Starts one broker on two local ports, needs Java and Kafka's jars as `make compat` does, takes about half a
minute.
"""

import json
import sys
import tempfile
from pathlib import Path

from compat.kafka_libs import run_java
from compat.kafka_peer import running_kafka

RECORDING = Path(__file__).parent.parent / "tests" / "fixtures" / "facts" / "config_answers.json"
PORT = 39092
STATIC = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": f"PLAINTEXT://localhost:{PORT},CONTROLLER://localhost:{PORT + 1}",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": f"1@localhost:{PORT + 1}",
    "log.dirs": "DATA",
    "log.retention.hours": "1",
    "log.roll.ms": "100000000",
    "offsets.topic.replication.factor": "1",
    "ssl.truststore.password": "hunter2",
    "my.own.key": "hello",
    "log.initial.task.delay.ms": "40000",
    "listener.name.plaintext.max.connections": "500",
    "background.threads": "12",
}
TOPIC_STEPS = """
SET cleanup.policy compact
SET retention.ms -5
SET tea 1
APPEND retention.ms 1
APPEND cleanup.policy delete
SUBTRACT cleanup.policy compact
SET remote.storage.enable true
SET segment.bytes 2000000|SET flush.ms 7
APPEND leader.replication.throttled.replicas 0:1
SET min.compaction.lag.ms 10|SET max.compaction.lag.ms 5
SET cleanup.policy
APPEND cleanup.policy bad
DELETE flush.ms
SET local.retention.ms 5
"""
BROKER_STEPS = """
SET node.id 4
SET num.io.threads 100
SET num.io.threads 16
SET num.io.threads 33
SET log.retention.ms 0
SET log.retention.ms 5000
SET log.retention.ms x
SET ssl.keystore.password p
APPEND log.cleanup.policy compact
SUBTRACT log.cleanup.policy delete
APPEND num.io.threads 1
APPEND tea 1
SET tea 1
SET max.connections 77
SET leader.replication.throttled.rate 55
SET log.local.retention.ms -1
SET principal.builder.class com.x.Y
SET background.threads 24
SET background.threads 99
SET background.threads 11
SET log.cleaner.threads 4
SET listener.name.plaintext.max.connections 0
SET listener.name.plaintext.max.connections 9
SET listener.security.protocol.map PLAINTEXT:SSL,CONTROLLER:PLAINTEXT
SET listeners CONTROLLER://localhost:39093
SET metric.reporters com.x.Y
SET log.roll.ms 0
DELETE tea
SET max.connections.per.ip 0
SET compression.type zip
SET group.consumer.assignment.interval.ms 20000
"""
CLUSTER_STEPS = """
SET listeners PLAINTEXT://:1
SET log.retention.ms 6000
SET message.max.bytes 123456
SET log.roll.ms 5000000
SET my.default 1
SET log.roll.hours 5
SET listener.name.plaintext.ssl.keystore.type PEM
SET group.share.assignment.interval.ms 99999
SET num.network.threads 30
SET num.network.threads 6
"""
GROUP_STEPS = """
SET consumer.session.timeout.ms 1
SET consumer.session.timeout.ms 50000
SET tea 1
SET share.auto.offset.reset tea
APPEND share.isolation.level x
SET consumer.assignment.interval.ms 99999
"""
METRICS_STEPS = """
SET interval.ms 1
SET interval.ms x
SET metrics a,b
APPEND metrics c
SET match client_id=x
SET match tea=x
SET tea 1
"""
RESOURCES = (
    ("TOPIC", "t", TOPIC_STEPS),
    ("BROKER", "1", BROKER_STEPS),
    ("BROKER", "", CLUSTER_STEPS),
    ("GROUP", "g", GROUP_STEPS),
    ("CLIENT_METRICS", "m", METRICS_STEPS),
)


def steps() -> str:
    """The requests in order: everything described, everything altered, everything described again."""
    describing = [f"describe\t{kind}\t{name}" for kind, name, _ in RESOURCES]
    altering = [
        f"alter\t{kind}\t{name}\t{operations}"
        for kind, name, changes in RESOURCES
        for operations in changes.strip().split("\n")
    ]
    return "\n".join(["create\tt", *describing, *altering, *describing])


def record() -> dict[str, object]:
    """The answers of a fresh Kafka, without the paths of this machine."""
    given = {name: text for name, text in STATIC.items() if name != "log.dirs"}
    with (
        tempfile.TemporaryDirectory() as scratch,
        running_kafka(Path(scratch), given, port=PORT, controller_port=PORT + 1),
    ):
        done = run_java("ConfigAnswers.java", f"localhost:{PORT}", stdin=steps())
        if done.returncode:
            raise SystemExit(done.stderr)
        lines = done.stdout.replace(f"{scratch}/data", STATIC["log.dirs"]).splitlines()
    return {"static": STATIC, "answers": [json.loads(line) for line in lines]}


def main() -> None:
    text = json.dumps(record(), separators=(",", ":")).replace('{"resource"', '\n{"resource"') + "\n"
    if "--write" in sys.argv:
        RECORDING.write_text(text)
    elif RECORDING.read_text() != text:
        raise SystemExit(f"{RECORDING.name} is not what this Kafka answers")


if __name__ == "__main__":
    main()
