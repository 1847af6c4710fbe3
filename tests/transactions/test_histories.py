"""Any history of producers, late and repeated requests, restarts and time-outs keeps a few promises.

Whatever was ever sent may arrive again, at any time and in any order. Nobody is let into a session or a
transaction that is not theirs, and a coordinator that starts anew knows what the one before knew."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from headrace.coordinator.shard import Decision, ShardContext
from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.image import MetadataImage
from headrace.protocol.prefixed import TRANSACTION_LOG
from headrace.testing.clock import ManualClock
from headrace.transactions.add_partitions import Participation
from headrace.transactions.end_transaction import Ending
from headrace.transactions.init_producer_id import NewSession, ProducerIdAndEpoch
from headrace.transactions.metadata import EPOCH_MAX, TransactionMetadata
from headrace.transactions.producer_ids import ProducerIdNeeded
from headrace.transactions.shard import ProducerSession, TransactionShard
from headrace.transactions.states import TransactionState
from tests.support_transactions import ORDERS, PAYMENTS, NoTimers

T = TypeVar("T")

ID = "payments-1"
TIMEOUT_MS = 1_000


class SilentEvents:
    """Markers are sent when a rule says so."""

    def on_ending(
        self, shard: TransactionShard, metadata: TransactionMetadata, *, is_committed: bool
    ) -> None:
        pass

    def on_unloaded(self, shard: TransactionShard) -> None:
        pass


@dataclass
class Client:
    """A producer: what it was told last, and which of its transactions it is in."""

    number: int
    session: ProducerSession | None = None


@dataclass
class Request:
    """Something that was sent and may arrive again."""

    client: Client
    send: Callable[[], object]
    ends: ProducerSession | None = None


class Histories(RuleBasedStateMachine):
    version = 2
    first_epoch = -1

    clients = Bundle("clients")
    requests = Bundle("requests")

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.image = MetadataImage()
        self.image.features["transaction.version"] = self.version
        self.log: list[tuple[bytes, bytes | None]] = []
        self.shard = self._new_shard()
        self.next_id = 1_000
        self.next_client = 0
        self.transaction = 0
        self.owners: dict[ProducerSession, int] = {}
        self.highest: dict[int, int] = {}
        self.outcomes: dict[int, bool] = {}
        self.ended: set[ProducerSession] = set()
        if self.first_epoch >= 0:
            self._seed()

    def _new_shard(self) -> TransactionShard:
        return TransactionShard(ShardContext(0, NoTimers(), self.image), SilentEvents())

    def _seed(self) -> None:
        """Begin shortly before the epochs of a producer id are used up."""
        self.shard.transactions[ID] = TransactionMetadata(
            ID, 999, TIMEOUT_MS, self.clock.now_ms(), producer_epoch=self.first_epoch
        )
        decided = self.shard.transactions[ID].with_epoch_raised(TIMEOUT_MS, None, self.clock.now_ms())
        self._take(self.shard._write(decided, None))

    # The runtime in small

    def _take(self, decision: Decision[T]) -> T:
        for record in decision.records:
            key = TRANSACTION_LOG.encode_key(record.key)
            value = (
                None if record.value is None else TRANSACTION_LOG.encode_value(record.value, record.version)
            )
            self.log.append((key, value))
            self.shard.replay(len(self.log) - 1, -1, -1, record.key, record.value)
        if decision.on_done is not None:
            decision.on_done(None)
        return decision.reply

    def _run(self, decide: Callable[[int | None], Decision[T]]) -> T:
        try:
            return self._take(decide(None))
        except ProducerIdNeeded:
            self.next_id += 1
            return self._take(decide(self.next_id))

    @property
    def current(self) -> TransactionMetadata | None:
        return self.shard.transactions.get(ID)

    def _ask(self, request: Request) -> object:
        before = self.current
        try:
            reply = request.send()
        except KafkaError as error:
            assert self.current is before, "a refusal has left a trace"
            return error.code
        self._check_step(request, before)
        return reply

    def _check_step(self, request: Request, before: TransactionMetadata | None) -> None:
        after = self.current
        assert after is not None
        was_open = before is not None and before.state is TransactionState.ONGOING
        if after.state is TransactionState.ONGOING and not was_open:
            self.transaction += 1
        if after is not before and after.state.is_ending:
            assert self.transaction not in self.outcomes or not was_open, "an outcome was decided twice"
            if was_open:
                self.outcomes[self.transaction] = after.commits
            if before is not None and was_open and request.ends is not None and self.version == 2:
                epoch = ProducerSession(before.producer_id, before.producer_epoch)
                assert request.ends == epoch, "a late end entered another transaction"
                assert epoch not in self.ended, "two transactions had one epoch"
                self.ended.add(epoch)

    def _grant(self, client: Client, session: object) -> None:
        """A client hears which id and epoch it has; nobody else may have had them."""
        assert isinstance(session, ProducerSession)
        assert self.owners.setdefault(session, client.number) == client.number, "two producers share an epoch"
        client.session = session

    # What producers do

    @rule(target=clients)
    def a_producer_starts(self) -> Client:
        self.next_client += 1
        return Client(self.next_client)

    @rule(target=requests, client=clients, goes_on=st.booleans())
    def it_asks_for_a_session(self, client: Client, goes_on: bool) -> Request:
        known = client.session if goes_on else None
        expected = None if known is None else ProducerIdAndEpoch(*known)
        wanted = NewSession(ID, TIMEOUT_MS, expected)

        def send() -> object:
            now_ms = self.clock.now_ms()
            return self._run(lambda new_id: self.shard.begin_session(wanted, new_id, now_ms))

        request = Request(client, send)
        reply = self._ask(request)
        if isinstance(reply, ProducerSession):
            self._grant(client, reply)
        return request

    @rule(target=requests, client=clients, partition=st.sampled_from([ORDERS, PAYMENTS]))
    def it_adds_a_partition(self, client: Client, partition: object) -> object:
        if client.session is None:
            return multiple()
        wanted = Participation(ID, *client.session, frozenset({partition}))  # type: ignore[arg-type]
        version = self.version

        def send() -> object:
            return self._run(lambda _: self.shard.add_partitions(wanted, version, self.clock.now_ms()))

        owns = self.current is not None and client.session == ProducerSession(
            self.current.producer_id, self.current.producer_epoch
        )
        request = Request(client, send)
        reply = self._ask(request)
        if not owns:
            assert reply in (
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                ErrorCode.PRODUCER_FENCED,
                ErrorCode.CONCURRENT_TRANSACTIONS,
            )
        return request

    @rule(target=requests, client=clients, commit=st.booleans(), heard=st.booleans())
    def it_ends_its_transaction(self, client: Client, commit: bool, heard: bool) -> object:
        if client.session is None:
            return multiple()
        wanted = Ending(ID, *client.session, commit, self.version)

        def send() -> object:
            now_ms = self.clock.now_ms()
            return self._run(lambda new_id: self.shard.end(wanted, new_id, now_ms))

        request = Request(client, send, ends=client.session)
        reply = self._ask(request)
        if isinstance(reply, ProducerSession) and heard and self.version == 2:
            self._grant(client, reply)
        return request

    @rule(request=requests)
    def something_old_arrives_again(self, request: Request) -> None:
        """Whoever sent it may or may not be waiting for an answer; it does not act on this one."""
        reply = self._ask(request)
        if isinstance(reply, ProducerSession) and self.version == 2 and reply.producer_id >= 0:
            owner = self.owners.setdefault(reply, request.client.number)
            assert owner == request.client.number, "a late request was told another producer's epoch"

    # What the coordinator does

    @rule()
    def partitions_are_told(self) -> None:
        before = self.current
        if before is not None and before.state.is_ending:
            self._take(self.shard.complete(before, self.clock.now_ms()))
            assert self.current is not None
            was_commit = self.current.state is TransactionState.COMPLETE_COMMIT
            assert was_commit == before.commits

    @rule(elapsed_ms=st.sampled_from([1, TIMEOUT_MS // 2, TIMEOUT_MS + 1]))
    def time_passes(self, elapsed_ms: int) -> None:
        self.clock.advance(elapsed_ms)
        now_ms = self.clock.now_ms()
        for transactional_id in self.shard.timed_out(now_ms):
            open_epoch = self.shard.transactions[transactional_id].producer_epoch
            aborted = self._run(lambda new_id: self.shard.abort_timed_out(ID, new_id, now_ms))
            assert aborted is True
            assert self.current is not None
            assert self.current.producer_epoch > open_epoch or open_epoch == EPOCH_MAX
            self.outcomes[self.transaction] = False

    @rule()
    def the_coordinator_starts_anew(self) -> None:
        self.shard = self._rebuilt()

    def _rebuilt(self) -> TransactionShard:
        shard = self._new_shard()
        for offset, (key, value) in enumerate(self.log):
            decoded = TRANSACTION_LOG.decode_key(key)
            found = None if value is None else TRANSACTION_LOG.decode_value(decoded, value)[0]
            shard.replay(offset, -1, -1, decoded, found)
        return shard

    # What holds at all times

    @invariant()
    def the_log_says_the_same_as_the_state(self) -> None:
        assert self._rebuilt().state() == self.shard.state()

    @invariant()
    def nothing_is_left_in_flight(self) -> None:
        assert not self.shard.in_flight

    @invariant()
    def epochs_never_go_back(self) -> None:
        if self.current is not None:
            producer_id, epoch = self.current.producer_id, self.current.producer_epoch
            assert epoch >= self.highest.get(producer_id, -1)
            self.highest[producer_id] = epoch


class HistoriesBeforeVersionTwo(Histories):
    version = 0


class HistoriesWithoutEpochsToSpare(Histories):
    first_epoch = EPOCH_MAX - 4


class OldHistoriesWithoutEpochsToSpare(Histories):
    version = 1
    first_epoch = EPOCH_MAX - 4


@pytest.mark.parametrize(
    "machine",
    [
        Histories,
        HistoriesBeforeVersionTwo,
        HistoriesWithoutEpochsToSpare,
        OldHistoriesWithoutEpochsToSpare,
    ],
)
def test_whatever_arrives_late_or_again_enters_nobody_elses_transaction(machine: type[Histories]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=60, stateful_step_count=40))
