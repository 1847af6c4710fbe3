"""The running peer: it starts, serves, stops, comes back, and still answers as the recordings say."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat import kafka_peer
from compat.kafka_peer import CLUSTER_ID, KafkaFailed, KafkaPeer, running_kafka, serves_clients
from tests.answers.catalogue import PROPERTIES, Scenario, all_scenarios
from tests.answers.recording import differences, load_family, play
from tests.answers.session import Target

SHARING = [each for each in all_scenarios() if not each.alone]


@pytest.fixture(scope="module")
def shared_kafka(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaPeer]:
    with running_kafka(tmp_path_factory.mktemp("kafka"), PROPERTIES) as peer:
        yield peer


def test_a_stopped_and_a_killed_peer_come_back_on_their_directory(kafka_libs: Path, tmp_path: Path) -> None:
    peer = KafkaPeer(tmp_path)
    peer.format()
    for end in (peer.stop, peer.kill):
        peer.start()
        assert serves_clients(peer.host, peer.port)
        end()
        assert not serves_clients(peer.host, peer.port)


def test_a_directory_that_was_not_formatted_is_reported(kafka_libs: Path, tmp_path: Path) -> None:
    peer = KafkaPeer(tmp_path)
    with pytest.raises(KafkaFailed, match="before it served"):
        peer.start()


def test_a_port_that_somebody_else_has_is_reported(shared_kafka: KafkaPeer, tmp_path: Path) -> None:
    with pytest.raises(KafkaFailed, match="somebody else listens"):
        KafkaPeer(tmp_path, port=shared_kafka.port).start()


def test_the_answers_of_somebody_else_are_not_taken_for_its_own(
    shared_kafka: KafkaPeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_peer, "is_listened_on", lambda host, port: False)
    peer = KafkaPeer(tmp_path, port=shared_kafka.port)
    peer.launch()
    process = peer._process
    assert process is not None
    process.wait(60)
    with pytest.raises(KafkaFailed, match="ended with 1 before it served"):
        peer.wait_until_ready()


@pytest.mark.parametrize("scenario", SHARING, ids=str)
def test_the_peer_answers_as_recorded(scenario: Scenario, shared_kafka: KafkaPeer) -> None:
    target = Target(
        shared_kafka.host,
        shared_kafka.port,
        shared_kafka.controller_port,
        str(shared_kafka.data_dir),
        CLUSTER_ID,
    )
    exchanges, failure = play(scenario, target)
    assert differences(load_family(scenario.family)[scenario.name], exchanges) == []
    assert failure is None
