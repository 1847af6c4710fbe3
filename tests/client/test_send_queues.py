"""What a broker's answer means for the batches that wait: request → answer → what is sent next."""

from collections.abc import Iterable

import pytest

from headrace.client.config import ClientConfig
from headrace.client.delivery import Failure
from headrace.client.metadata import Leader
from headrace.client.pending_batch import Identity, Payload, PendingBatch, new_batch
from headrace.client.send_queues import EPOCH_MAX, Answer, SendQueues
from headrace.errors import ErrorCode
from headrace.records.batch import Batch
from headrace.records.compression import Compression
from headrace.testing.entropy import SeededEntropy
from headrace.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
OK = Answer(offset_base=0)


class Context:
    """Queues with a clock and a leader; `sent` is what the last `drain` let go, by name."""

    def __init__(self, **settings: object) -> None:
        config = ClientConfig(**{"linger_ms": 5, **settings})  # type: ignore[arg-type]
        self.queues = SendQueues(config, SeededEntropy(1), self, self.split)
        if config.enable_idempotence:
            self.queues.identity = Identity(7, 0)
        self.leader: Leader | None = Leader(1, 0)
        self.now_ms = 0.0
        self.batches: dict[str, PendingBatch] = {}
        self.acknowledged: list[str] = []
        self.failures: dict[str, Failure] = {}
        self.again_at_ms: float | None = None

    def add(self, *names: str, partition: TopicPartition = T0, count: int = 10) -> None:
        for name in names:
            payload = Payload(count, 0, 0, name.encode() * 10)
            self.batches[name] = new_batch(partition, payload, Compression.NONE, self.now_ms)
        self.queues.add([self.batches[name] for name in names])

    def drain(self) -> list[str]:
        drained = self.queues.drain(lambda topic, partition: self.leader, lambda node: True, self.now_ms)
        self.again_at_ms = drained.again_at_ms
        return self.names(batch for request in drained.requests.values() for batch in request)

    def drain_all(self) -> list[str]:
        """Until nothing more may be sent."""
        sent: list[str] = []
        while found := self.drain():
            sent += found
        return sent

    def answer(self, name: str, code: int = 0, **fields: object) -> None:
        answer = Answer(code, offset_base=0, **fields) if not code else Answer(code, **fields)  # type: ignore[arg-type]
        self.queues.on_answer(self.batches[name], answer, self.now_ms)

    def introduce(self) -> None:
        """A first batch is acknowledged, so that several may be under way."""
        self.add("first", count=1)
        assert self.drain() == ["first"]
        self.answer("first")

    def names(self, found: Iterable[PendingBatch]) -> list[str]:
        return [next(name for name, batch in self.batches.items() if batch is each) for each in found]

    def sequences(self, *names: str) -> list[tuple[int, int]]:
        """Epoch and first sequence, as they are on the wire."""
        headers = [Batch(memoryview(self.batches[name].data)) for name in names]
        assert all(header.crc_is_valid() for header in headers)
        return [(header.producer_epoch, header.base_sequence) for header in headers]

    # What the queues call

    def split(self, batch: PendingBatch) -> list[PendingBatch]:
        (name,) = self.names([batch])
        halves = (batch.count // 2, batch.count - batch.count // 2)
        for half, count in zip("ab", halves, strict=True):
            payload = Payload(count, 0, 0, name.encode())
            self.batches[name + half] = new_batch(batch.partition, payload, Compression.NONE, 0)
        return [self.batches[name + "a"], self.batches[name + "b"]]

    def on_acknowledged(self, batch: PendingBatch, offset_base: int) -> None:
        self.acknowledged += self.names([batch])

    def on_failed(self, batch: PendingBatch, failure: Failure) -> None:
        (name,) = self.names([batch])
        assert name not in self.failures
        self.failures[name] = failure

    def on_split(self, batch: PendingBatch, parts: list[PendingBatch]) -> None:
        pass


def test_sequences_count_records_over_batches() -> None:
    context = Context()
    context.introduce()
    context.add("a", "b", "c")
    assert context.drain_all() == ["a", "b", "c"]
    assert context.sequences("first", "a", "b", "c") == [(0, 0), (0, 1), (0, 11), (0, 21)]


def test_one_batch_introduces_a_producer_to_a_partition() -> None:
    context = Context()
    context.add("a", "b", "c")
    assert context.drain_all() == ["a"]
    context.answer("a")
    assert context.drain_all() == ["b", "c"]


def test_no_more_are_under_way_than_allowed() -> None:
    context = Context(max_in_flight_requests_per_connection=3)
    context.introduce()
    context.add("a", "b", "c", "d", "e")
    assert context.drain_all() == ["a", "b", "c"]
    context.answer("a")
    assert context.drain_all() == ["d"]


def test_after_an_error_only_the_first_in_line_is_sent_until_its_fate_is_known() -> None:
    context = Context()
    context.introduce()
    context.add("a", "b", "c", "d")
    context.drain_all()
    context.answer("b", ErrorCode.NOT_ENOUGH_REPLICAS)
    context.answer("a", ErrorCode.NOT_ENOUGH_REPLICAS)
    context.now_ms += 500
    assert context.drain_all() == ["a"]
    context.answer("c", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    context.answer("a")
    assert context.drain_all() == ["b"]
    context.answer("d", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    context.answer("b")
    context.now_ms += 500
    assert context.drain_all() == ["c"]
    context.answer("c")
    context.now_ms += 500
    assert context.drain_all() == ["d"]
    context.answer("d")
    assert context.acknowledged == ["first", "a", "b", "c", "d"]
    assert context.sequences("a", "b", "c", "d") == [(0, 1), (0, 11), (0, 21), (0, 31)]


def test_a_retry_waits_unless_the_leader_has_changed() -> None:
    context = Context(retry_backoff_ms=100)
    context.add("a")
    context.drain()
    context.answer("a", ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert context.drain() == []
    assert context.again_at_ms is not None
    assert 80 <= context.again_at_ms <= 120
    context.leader = Leader(2, 1)
    assert context.drain() == ["a"]


def test_batches_wait_for_what_is_under_way_to_the_former_leader() -> None:
    context = Context()
    context.introduce()
    context.add("a", "b")
    assert context.drain() == ["a"]
    context.leader = Leader(2, 1)
    assert context.drain() == []
    context.answer("a")
    assert context.drain() == ["b"]


def test_a_duplicate_counts_as_written() -> None:
    context = Context()
    context.add("a")
    context.drain()
    context.answer("a", ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    assert context.acknowledged == ["a"]


@pytest.mark.parametrize("code", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID])
def test_a_gap_before_the_first_in_line_is_closed_under_the_next_epoch(code: int) -> None:
    context = Context()
    context.introduce()
    context.add("a", "b", "c")
    context.drain_all()
    context.answer("a", code, offset_log_start=0)
    assert context.drain_all() == []
    context.answer("b", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    context.answer("c", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    context.now_ms += 500
    assert context.drain_all() == ["a"]
    assert context.sequences("a", "b", "c") == [(1, 0), (1, 10), (1, 20)]


def test_a_batch_that_may_be_written_keeps_its_sequence_until_that_is_known() -> None:
    context = Context()
    context.introduce()
    context.add("a", "b")
    context.drain_all()
    context.answer("b", ErrorCode.NETWORK_EXCEPTION)
    context.answer("a", ErrorCode.INVALID_RECORD)
    context.now_ms += 500
    assert context.drain_all() == ["b"]
    assert context.sequences("b") == [(0, 11)]
    context.answer("b", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    context.now_ms += 500
    assert context.drain_all() == ["b"]
    assert context.sequences("b") == [(1, 0)]


def test_a_refused_batch_fails_and_those_behind_it_go_on_under_the_next_epoch() -> None:
    context = Context()
    context.introduce()
    context.add("a", "b")
    context.drain_all()
    context.answer("a", ErrorCode.INVALID_PRODUCER_EPOCH)
    context.answer("b", ErrorCode.INVALID_PRODUCER_EPOCH)
    assert list(context.failures) == ["a", "b"]
    context.add("c")
    assert context.drain_all() == ["c"]
    assert context.sequences("c") == [(1, 0)]


def test_other_partitions_keep_the_epoch_of_what_is_under_way() -> None:
    context = Context()
    context.introduce()
    context.add("other", partition=T1)
    context.add("a")
    context.drain_all()
    context.add("other-2", partition=T1)
    context.answer("a", ErrorCode.INVALID_RECORD)
    assert context.drain_all() == []
    assert context.queues.identity == Identity(7, 1)
    context.answer("other")
    assert context.drain_all() == ["other-2"]
    assert context.sequences("other", "other-2") == [(0, 0), (1, 0)]


def test_when_epochs_are_used_up_another_identity_is_needed() -> None:
    context = Context()
    context.queues.identity = Identity(7, EPOCH_MAX)
    context.introduce()
    context.add("a", "b")
    context.drain()
    context.answer("a", ErrorCode.INVALID_RECORD)
    assert context.drain_all() == []
    assert context.queues.needs_identity
    context.queues.identity = Identity(8, 0)
    assert context.drain_all() == ["b"]
    assert Batch(memoryview(context.batches["b"].data)).producer_id == 8


def test_without_an_identity_nothing_is_sent() -> None:
    context = Context()
    context.queues.identity = None
    context.add("a")
    assert context.drain() == []
    assert context.queues.needs_identity


def test_a_batch_that_is_too_large_is_replaced_by_parts_under_its_sequences() -> None:
    context = Context()
    context.introduce()
    context.add("a", "b")
    context.drain_all()
    context.answer("a", ErrorCode.MESSAGE_TOO_LARGE)
    context.answer("b", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    sent = []
    for _ in range(3):
        context.now_ms += 500
        sent += context.drain_all()
        context.answer(sent[-1])
    assert sent == ["aa", "ab", "b"]
    assert context.sequences("aa", "ab", "b") == [(0, 1), (0, 6), (0, 11)]


def test_an_old_batch_is_given_up_and_a_late_answer_changes_nothing() -> None:
    context = Context(delivery_timeout_ms=1_000, request_timeout_ms=500)
    context.add("a")
    context.drain()
    context.now_ms = 999
    assert context.queues.expire(context.now_ms) == 1_000
    context.now_ms = 1_000
    assert context.queues.expire(context.now_ms) is None
    assert context.failures["a"].may_be_written
    context.answer("a")
    assert context.acknowledged == []
    assert not context.queues


def test_after_a_batch_was_given_up_new_ones_wait_until_its_sequence_is_resolved() -> None:
    context = Context(delivery_timeout_ms=1_000, request_timeout_ms=500)
    context.introduce()
    context.add("a")
    context.drain()
    context.now_ms = 600
    context.add("b")
    context.drain()
    context.now_ms = 1_000
    context.queues.expire(context.now_ms)
    context.add("c")
    assert context.drain_all() == []
    context.answer("b")
    assert context.drain_all() == ["c"]
    assert context.sequences("b", "c") == [(0, 11), (0, 21)]


def test_if_the_sequence_is_lost_new_ones_begin_under_the_next_epoch() -> None:
    context = Context(delivery_timeout_ms=1_000, request_timeout_ms=500)
    context.introduce()
    context.add("a")
    context.drain()
    context.now_ms = 1_000
    context.queues.expire(context.now_ms)
    context.add("b")
    assert context.drain_all() == ["b"]
    assert context.sequences("b") == [(1, 0)]


def test_retries_are_counted() -> None:
    context = Context(retries=2)
    context.add("a")
    for _ in range(2):
        assert context.drain() == ["a"]
        context.answer("a", ErrorCode.NOT_ENOUGH_REPLICAS, message="2 of 3")
        context.now_ms += 2_000
    assert context.drain() == ["a"]
    context.answer("a", ErrorCode.NOT_ENOUGH_REPLICAS, message="2 of 3")
    assert context.failures["a"].reason == "NOT_ENOUGH_REPLICAS: 2 of 3"
    assert not context.failures["a"].may_be_written


def test_what_was_never_sent_is_certainly_not_written() -> None:
    context = Context()
    context.add("a")
    context.drain()
    context.answer("a", ErrorCode.NETWORK_EXCEPTION, never_left=True)
    context.queues.fail_all("closed")
    assert not context.failures["a"].may_be_written


def test_topics_without_a_leader_are_told() -> None:
    context = Context()
    context.add("a")
    drained = context.queues.drain(lambda topic, partition: None, lambda node: True, 0)
    assert (drained.requests, drained.leaderless) == ({}, {"t"})


def test_partitions_take_turns_when_requests_are_full() -> None:
    context = Context(max_request_size=150)
    context.introduce()
    for number in range(3):
        context.add(f"p{number}", f"q{number}", partition=TopicPartition("u", number))
    sent = [context.drain() for _ in range(3)]
    assert sent == [["p0"], ["p1"], ["p2"]]


def test_without_idempotence_batches_carry_no_sequence() -> None:
    context = Context(enable_idempotence=False, acks=1, max_in_flight_requests_per_connection=2)
    context.add("a", "b", "c")
    assert context.drain_all() == ["a", "b"]
    assert context.sequences("a", "b") == [(-1, -1), (-1, -1)]
    context.answer("a", ErrorCode.NOT_LEADER_OR_FOLLOWER)
    context.answer("b")
    assert context.drain_all() == []
    context.now_ms += 500
    assert context.drain_all() == ["a", "c"]
