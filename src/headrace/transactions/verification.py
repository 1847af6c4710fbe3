"""Asks a transaction's coordinator before its first records are let into a partition.

Producers of transaction version 2 leave it to the broker to have their partitions added; of others it is
verified that they have been. Each partition that knows nothing of the transaction yet hands out a guard,
which only an append after a good answer may bear."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from headrace.errors import ErrorCode, KafkaError
from headrace.log.producer_entry import NO_VERIFICATION_GUARD, VerificationGuard
from headrace.ports import Clock
from headrace.replication.replicas import Replicas
from headrace.transactions.add_partitions import Participation
from headrace.transactions.coordinator import TRANSACTION_TOPIC, TransactionCoordinator
from headrace.transactions.versions import VERSION_2
from headrace.types import TopicPartition

T = TypeVar("T")

_PRODUCE_ADDS_SINCE: Final = 12
_PRODUCE_ABORTABLE_SINCE: Final = 11
_COMMIT_ADDS_SINCE: Final = 5
_COMMIT_ABORTABLE_SINCE: Final = 4


class Handling(Enum):
    """What the version of a request lets a broker do, and which errors its sender knows."""

    VERIFY = "verify"
    VERIFY_ABORTABLE = "verify, and tell transactions that can be aborted from those that can't"
    ADD = "add the partitions"

    @property
    def adds(self) -> bool:
        return self is Handling.ADD


def handling_of_produce(version: int) -> Handling:
    """What is to be done for a Produce request."""
    if version >= _PRODUCE_ADDS_SINCE:
        return Handling.ADD
    return Handling.VERIFY_ABORTABLE if version >= _PRODUCE_ABORTABLE_SINCE else Handling.VERIFY


def handling_of_commit(version: int) -> Handling:
    """What is to be done for a TxnOffsetCommit request."""
    if version >= _COMMIT_ADDS_SINCE:
        return Handling.ADD
    return Handling.VERIFY_ABORTABLE if version >= _COMMIT_ABORTABLE_SINCE else Handling.VERIFY


class Claim(NamedTuple):
    """A producer that says its records are part of a transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


Verdict: TypeAlias = VerificationGuard | ErrorCode
Verdicts: TypeAlias = dict[TopicPartition, Verdict]


class VerificationSettings(NamedTuple):
    """What the node's configuration says about verification."""

    is_enabled: bool
    retry_ms: int
    retry_ms_max: int


class OtherCoordinators(Protocol):
    """Reaches coordinators on other brokers."""

    def ask(
        self, node_id: int, claim: Claim, partitions: frozenset[TopicPartition], adds: bool
    ) -> "asyncio.Future[dict[TopicPartition, ErrorCode]] | None":
        """How each partition fares; None if the broker can't be reached now."""


class VerificationCounters:
    """How verification goes, in Kafka's measures."""

    __slots__ = ("failures", "total_ms", "verifications", "worst_ms")

    def __init__(self) -> None:
        self.failures = 0
        self.verifications = 0
        self.total_ms = 0
        self.worst_ms = 0

    def add(self, failures: int, elapsed_ms: int) -> None:
        self.failures += failures
        self.verifications += 1
        self.total_ms += elapsed_ms
        self.worst_ms = max(self.worst_ms, elapsed_ms)


class TransactionVerifier:
    """Verifies for the partitions of this node."""

    __slots__ = ("_clock", "_coordinator", "_others", "_replicas", "_settings", "_tails", "counters")

    def __init__(
        self,
        replicas: Replicas,
        coordinator: TransactionCoordinator,
        settings: Callable[[], VerificationSettings],
        clock: Clock,
        others: OtherCoordinators | None = None,
    ) -> None:
        self._replicas = replicas
        self._coordinator = coordinator
        self._settings = settings
        self._clock = clock
        self._others = others
        self._tails: dict[int, asyncio.Future[Verdicts]] = {}
        self.counters = VerificationCounters()

    def verify(
        self, claim: Claim, handling: Handling, sequences: Mapping[TopicPartition, int], *, patient: bool
    ) -> "Verdicts | asyncio.Future[Verdicts]":
        """A guard or a refusal for every partition that needs one, given the sequence it is offered.

        Who is `patient` waits a little for the end of the transaction before. Requests of one producer are
        verified one after the other: a later batch must not get ahead of an earlier one."""
        if not handling.adds and not self._settings().is_enabled:
            return {}
        tail = self._tails.get(claim.producer_id)
        if tail is None:
            verdicts = self._ask(claim, handling, sequences)
            if isinstance(verdicts, dict) and not (patient and _is_busy(handling, verdicts)):
                return verdicts
        else:
            verdicts = {}
        task = asyncio.ensure_future(self._wait(tail, verdicts, claim, handling, sequences, patient))
        self._tails[claim.producer_id] = task
        task.add_done_callback(lambda done: self._leave(claim.producer_id, done))
        return task

    def _leave(self, producer_id: int, task: "asyncio.Future[Verdicts]") -> None:
        if self._tails.get(producer_id) is task:
            del self._tails[producer_id]

    async def _wait(
        self,
        tail: "asyncio.Future[Verdicts] | None",
        verdicts: "Verdicts | asyncio.Future[Verdicts]",
        claim: Claim,
        handling: Handling,
        sequences: Mapping[TopicPartition, int],
        patient: bool,
    ) -> Verdicts:
        if tail is not None:
            await asyncio.wait([tail])
            verdicts = self._ask(claim, handling, sequences)
        settings = self._settings()
        begun_ms = self._clock.monotonic_ms()
        while True:
            settled = verdicts if isinstance(verdicts, dict) else await verdicts
            late = self._clock.monotonic_ms() - begun_ms >= settings.retry_ms_max
            if late or not patient or not _is_busy(handling, settled):
                return settled
            await asyncio.sleep(settings.retry_ms / 1000)
            verdicts = self._ask(claim, handling, sequences)

    # One attempt

    def _ask(
        self, claim: Claim, handling: Handling, sequences: Mapping[TopicPartition, int]
    ) -> "Verdicts | asyncio.Future[Verdicts]":
        now_ms = self._clock.now_ms()
        verdicts: Verdicts = {}
        for name, sequence in sequences.items():
            try:
                log = self._replicas.find(*name).leader_log
                guard = log.start_verification(
                    claim.producer_id, sequence, claim.producer_epoch, handling.adds, now_ms
                )
            except KafkaError as error:
                verdicts[name] = error.code
                continue
            if guard is not NO_VERIFICATION_GUARD:
                verdicts[name] = guard
        unknown = frozenset(name for name, guard in verdicts.items() if isinstance(guard, VerificationGuard))
        if not unknown:
            return verdicts
        begun_ms = self._clock.monotonic_ms()
        answer = self._answer(claim, handling, unknown)
        if isinstance(answer, dict):
            return self._judged(verdicts, answer, handling, begun_ms)
        return _changed(
            answer, lambda done: self._judged(verdicts, _result(done, unknown), handling, begun_ms)
        )

    def _judged(
        self,
        verdicts: Verdicts,
        answer: Mapping[TopicPartition, ErrorCode],
        handling: Handling,
        begun_ms: int,
    ) -> Verdicts:
        """What the coordinator says, in codes that the sender of the request knows."""
        failures = 0
        for name, code in answer.items():
            if code is ErrorCode.NONE:
                continue
            failures += 1
            if code is ErrorCode.PRODUCER_FENCED:
                code = ErrorCode.INVALID_PRODUCER_EPOCH
            elif code is ErrorCode.TRANSACTION_ABORTABLE and handling is Handling.VERIFY:
                code = ErrorCode.INVALID_TXN_STATE
            verdicts[name] = code
        self.counters.add(failures, self._clock.monotonic_ms() - begun_ms)
        return verdicts

    def _answer(
        self, claim: Claim, handling: Handling, partitions: frozenset[TopicPartition]
    ) -> "dict[TopicPartition, ErrorCode] | asyncio.Future[dict[TopicPartition, ErrorCode]]":
        index = self._coordinator.runtime.partition_for(claim.transactional_id)
        found = self._replicas.cluster.leader_of(TRANSACTION_TOPIC, index)
        leader = -1 if found is None else found.leader
        if leader == self._replicas.node_id:
            return self._answer_here(claim, handling, partitions)
        if leader >= 0 and self._others is not None:
            asked = self._others.ask(leader, claim, partitions, handling.adds)
            if asked is not None:
                return asked
        return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _answer_here(
        self, claim: Claim, handling: Handling, partitions: frozenset[TopicPartition]
    ) -> "dict[TopicPartition, ErrorCode] | asyncio.Future[dict[TopicPartition, ErrorCode]]":
        wanted = Participation(*claim, partitions)
        missing: asyncio.Future[frozenset[TopicPartition]] | asyncio.Future[None]
        if handling.adds:
            missing = self._coordinator.add_partitions(wanted, VERSION_2)
        else:
            missing = self._coordinator.missing_partitions(wanted)
        if missing.done():
            return _codes(missing, partitions)
        return _changed(missing, lambda done: _codes(done, partitions))


def _changed(
    future: "asyncio.Future[Any]", change: "Callable[[asyncio.Future[Any]], T]"
) -> "asyncio.Future[T]":
    """What becomes of a future when it is done, failed ones included."""
    changed: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def settle(done: "asyncio.Future[Any]") -> None:
        if not changed.done():
            changed.set_result(change(done))

    future.add_done_callback(settle)
    return changed


def _codes(
    missing: "asyncio.Future[frozenset[TopicPartition]] | asyncio.Future[None]",
    partitions: Collection[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    error = None if missing.cancelled() else missing.exception()
    if missing.cancelled() or error is not None:
        code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
        return dict.fromkeys(partitions, code)
    return dict.fromkeys(missing.result() or (), ErrorCode.TRANSACTION_ABORTABLE)


def _result(
    answer: "asyncio.Future[dict[TopicPartition, ErrorCode]]", partitions: Collection[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    if answer.cancelled() or answer.exception() is not None:
        return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
    return answer.result()


def _is_busy(handling: Handling, verdicts: Verdicts) -> bool:
    """Whether the transaction before is just ending, which is soon over."""
    return handling.adds and ErrorCode.CONCURRENT_TRANSACTIONS in verdicts.values()
