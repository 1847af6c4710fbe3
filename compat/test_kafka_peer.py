"""The running peer: it starts, serves, stops, comes back, and still answers as the recordings say."""

from collections.abc import Iterator
from pathlib import Path

import pytest

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
