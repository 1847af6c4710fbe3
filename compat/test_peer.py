"""The peer itself: that what the other tests compare with is the Kafka they mean."""

from pathlib import Path

from compat.kafka_libs import RunJava, kafka_version


def test_the_jars_are_of_the_version_asked_for(kafka_libs: Path) -> None:
    names = {path.name for path in kafka_libs.glob("*.jar")}
    assert {f"kafka-tools-{kafka_version()}.jar", f"kafka_2.13-{kafka_version()}.jar"} <= names


def test_a_class_of_the_jars_runs_quietly(run_java: RunJava) -> None:
    done = run_java("org.apache.kafka.tools.DumpLogSegments", "--version")
    assert done.returncode == 0
    assert done.stdout.startswith(kafka_version())
    assert done.stderr == ""
