"""The transaction coordinator as requests see it: which shard to ask, and what to make of its answer.

Its methods return futures, which are done at once wherever nothing has to be waited for. They fail with the
`KafkaError` that a client is told."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

from headrace.coordinator.hosted_shard import ShardState
from headrace.coordinator.refusals import told
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.coordinator.shard import Decision
from headrace.errors import ErrorCode, KafkaError
from headrace.ports import Clock
from headrace.replication.producer_ids import ProducerIds
from headrace.transactions.add_partitions import Participation
from headrace.transactions.end_transaction import Ending
from headrace.transactions.init_producer_id import NewSession
from headrace.transactions.marker_sender import MarkerSender
from headrace.transactions.metadata import TIMEOUT_NEVER_MS, TransactionMetadata
from headrace.transactions.producer_ids import ProducerIdNeeded
from headrace.transactions.shard import ProducerSession, TransactionShard
from headrace.types import TopicPartition

TRANSACTION_TOPIC: Final = "__transaction_state"

logger: Final = logging.getLogger("headrace.transactions")

T = TypeVar("T")
#: What a shard decides, given a producer id if there is one at hand.
Deciding = Callable[[TransactionShard, int, int | None], Decision[T]]

_ENDED_OTHERWISE: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_COORDINATOR,
    }
)


class TransactionSettings(NamedTuple):
    """What the node's configuration says about transactions."""

    timeout_ms_max: int
    id_expiration_ms: int
    two_phase_commit: bool


class TransactionCoordinator:
    """All transactional ids whose coordinator this node is. `settings` are asked for whenever needed."""

    __slots__ = ("_clock", "_producer_ids", "_settings", "runtime", "sender")

    def __init__(
        self,
        runtime: CoordinatorRuntime[TransactionShard],
        sender: MarkerSender,
        producer_ids: ProducerIds,
        settings: Callable[[], TransactionSettings],
        clock: Clock,
    ) -> None:
        self.runtime = runtime
        self.sender = sender
        self._producer_ids = producer_ids
        self._settings = settings
        self._clock = clock
        sender.attach(runtime)

    # What producers and brokers ask

    def begin_session(
        self, wanted: NewSession, *, two_phase_commit: bool = False, keep_prepared: bool = False
    ) -> "asyncio.Future[ProducerSession]":
        """An id and an epoch for a producer; whatever its predecessor had open is aborted first."""
        refusal = self._refusal_of(wanted, two_phase_commit, keep_prepared)
        if refusal is not None:
            return _failed(KafkaError(refusal))
        if two_phase_commit:
            wanted = NewSession(wanted.transactional_id, TIMEOUT_NEVER_MS, wanted.expected)
        given = self._decide(
            wanted.transactional_id,
            lambda shard, now_ms, new_id: shard.begin_session(wanted, new_id, now_ms),
        )
        return _then(given, _session_or_retry)

    def _refusal_of(
        self, wanted: NewSession, two_phase_commit: bool, keep_prepared: bool
    ) -> ErrorCode | None:
        settings = self._settings()
        if not wanted.transactional_id:
            return ErrorCode.INVALID_REQUEST
        if two_phase_commit and not settings.two_phase_commit:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if keep_prepared:
            return ErrorCode.UNSUPPORTED_VERSION
        if not two_phase_commit and not 0 < wanted.timeout_ms <= settings.timeout_ms_max:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        return None

    def add_partitions(self, wanted: Participation, client_version: int) -> "asyncio.Future[None]":
        """Let partitions take part in a transaction."""
        if not wanted.transactional_id:
            return _failed(KafkaError(ErrorCode.INVALID_REQUEST))
        return self._decide(
            wanted.transactional_id,
            lambda shard, now_ms, _: shard.add_partitions(wanted, client_version, now_ms),
        )

    def missing_partitions(self, wanted: Participation) -> "asyncio.Future[frozenset[TopicPartition]]":
        """Which partitions do not take part in a transaction."""
        if not wanted.transactional_id:
            return _failed(KafkaError(ErrorCode.INVALID_REQUEST))
        index = self.runtime.partition_for(wanted.transactional_id)
        return self.runtime.read(index, lambda shard, _: shard.missing_partitions(wanted))

    def end(self, wanted: Ending) -> "asyncio.Future[ProducerSession]":
        """Commit or abort a transaction; the partitions are told of it after this is answered."""
        if not wanted.transactional_id:
            return _failed(KafkaError(ErrorCode.INVALID_REQUEST))
        return self._decide(
            wanted.transactional_id, lambda shard, now_ms, new_id: shard.end(wanted, new_id, now_ms)
        )

    # What administrators ask

    def describe(self, transactional_id: str) -> "asyncio.Future[TransactionMetadata]":
        """What is known of one id."""
        if not transactional_id:
            return _failed(KafkaError(ErrorCode.INVALID_REQUEST))

        def read(shard: TransactionShard, _: int) -> TransactionMetadata:
            found = shard.transactions.get(transactional_id)
            if found is None:
                raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
            return found

        return self.runtime.read(self.runtime.partition_for(transactional_id), read)

    def all_transactions(self) -> Iterable[TransactionMetadata]:
        """Every id of this coordinator; a `KafkaError` while some are not loaded."""
        if self.runtime.count(ShardState.LOADING):
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        for shard in self.runtime.active_shards():
            yield from shard.transactions.values()

    # What is due by time

    async def abort_timed_out(self) -> None:
        """Abort transactions that are open for longer than their producers asked for."""
        now_ms = self._clock.now_ms()
        for shard in self.runtime.active_shards():
            for transactional_id in shard.timed_out(now_ms):
                await self._abort_timed_out(transactional_id)

    async def _abort_timed_out(self, transactional_id: str) -> None:
        try:
            was_open = await self._decide(
                transactional_id,
                lambda shard, now_ms, new_id: shard.abort_timed_out(transactional_id, new_id, now_ms),
            )
        except KafkaError as error:
            level = logging.DEBUG if error.code in _ENDED_OTHERWISE else logging.WARNING
            logger.log(level, "%s has timed out but was not aborted: %s", transactional_id, error)
        else:
            if was_open:
                logger.info("the transaction of %s has timed out and is aborted", transactional_id)

    async def remove_expired(self) -> None:
        """Forget ids that nobody has used for long."""
        idle_ms = self._settings().id_expiration_ms
        for index in list(self.runtime.shards):
            removed = 1
            while removed:
                try:
                    removed = await self.runtime.write(
                        index, lambda shard, now_ms: shard.expire(idle_ms, now_ms)
                    )
                except KafkaError as error:
                    logger.info("%s-%d keeps its expired ids: %s", TRANSACTION_TOPIC, index, error)
                    break

    # Asking a shard

    def _decide(self, transactional_id: str, deciding: Deciding[T]) -> "asyncio.Future[T]":
        """Have a shard decide; a producer id is fetched only if the decision takes one."""
        index = self.runtime.partition_for(transactional_id)
        decided = self.runtime.write(index, lambda shard, now_ms: deciding(shard, now_ms, None))
        if decided.done():
            error = decided.exception()
            if isinstance(error, ProducerIdNeeded):
                return asyncio.ensure_future(self._decide_with_id(index, deciding))
            return decided if error is None else _failed(told(error))
        return _then(decided, lambda reply: reply)

    async def _decide_with_id(self, index: int, deciding: Deciding[T]) -> T:
        new_id = self._producer_ids.take()
        if new_id is None:
            new_id = await self._producer_ids.next_id()
        try:
            return await self.runtime.write(index, lambda shard, now_ms: deciding(shard, now_ms, new_id))
        except Exception as error:
            raise told(error) from error


def _session_or_retry(session: ProducerSession | None) -> ProducerSession:
    if session is None:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return session


U = TypeVar("U")


def _then(future: "asyncio.Future[T]", change: Callable[[T], U]) -> "asyncio.Future[U]":
    """What becomes of a future's result; done at once if the future is."""
    changed: asyncio.Future[U] = asyncio.get_running_loop().create_future()

    def settle(done: "asyncio.Future[T]") -> None:
        if changed.done():
            return
        if done.cancelled():
            changed.cancel()
            return
        error = done.exception()
        try:
            if error is None:
                changed.set_result(change(done.result()))
            else:
                changed.set_exception(told(error))
        except KafkaError as refusal:
            changed.set_exception(refusal)

    if future.done():
        settle(future)
    else:
        future.add_done_callback(settle)
    return changed


def _failed(error: KafkaError) -> "asyncio.Future[T]":
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    return future
