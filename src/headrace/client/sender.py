"""The part of a writer that talks to brokers: sends what may be sent, and passes on what they answer.

What may be sent is decided in `send_queues`, which knows nothing of connections. Here a pass over it is made
whenever something has changed or a time has come; each request is a task of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final
from uuid import UUID

from headrace.client.cluster import Cluster
from headrace.client.config import ClientConfig
from headrace.client.delivery import RecordError
from headrace.client.errors import (
    BrokerRefused,
    ClientClosed,
    ConnectionLost,
    RequestTimedOut,
    Unreachable,
    UnsupportedByBroker,
)
from headrace.client.message_limits import too_large
from headrace.client.metadata import Leader
from headrace.client.metadata_source import metadata_request
from headrace.client.pending_batch import PendingBatch
from headrace.client.producer_identity import ask_identity, pause
from headrace.client.send_queues import FATAL, Answer, Drained, SendQueues
from headrace.errors import ErrorCode, HeadraceError
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.types import ZERO_UUID, TopicPartition

logger = logging.getLogger("headrace.client")

# From this version on topics go by their ids alone.
_VERSION_OF_TOPIC_IDS: Final = 13
_UNANSWERED_BYTES_MAX: Final = 1024 * 1024
_LEADER_CHANGED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


class Sender:
    """Sends the batches of one writer. `on_fatal` is told when nothing can be sent any more, and why."""

    def __init__(
        self,
        cluster: Cluster,
        config: ClientConfig,
        queues: SendQueues,
        on_fatal: Callable[[HeadraceError], None],
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._queues = queues
        self._on_fatal = on_fatal
        self._loop = asyncio.get_running_loop()
        self._lane = cluster.new_lane("produce")
        self._in_flight: dict[int, int] = {}
        self._busy_since_ms: dict[int, float] = {}
        self._bytes_unanswered: dict[int, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._identifying: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._expiry_at_ms: float | None = None
        self._is_refresh_wanted = False
        self._is_pass_due = False
        self._is_closed = False

    @property
    def now_ms(self) -> float:
        """The loop's time."""
        return self._loop.time() * 1000

    def wake(self) -> None:
        """Something has changed: see what may be sent, in this round of the loop."""
        if not self._is_pass_due and not self._is_closed:
            self._is_pass_due = True
            self._loop.call_soon(self._pass)

    def is_available(self, node_id: int) -> bool:
        """Whether a broker keeps up: it has not had all the requests that it may have for too long."""
        timeout_ms = self._config.partitioner_availability_timeout_ms
        since_ms = self._busy_since_ms.get(node_id)
        return not timeout_ms or since_ms is None or self.now_ms - since_ms <= timeout_ms

    async def sent(self) -> None:
        """Until brokers have what they do not acknowledge: they answer in order, so one question will do.

        Whether a broker that is gone has it is not known, as ever without acknowledgements."""
        for node_id in list(self._bytes_unanswered):
            await self._answered(node_id)

    async def close(self) -> None:
        """Stop at once. Requests under way are left alone by whoever waits for them."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._cluster.close_lane(self._lane)

    # Passes

    def _pass(self) -> None:
        self._is_pass_due = False
        if self._is_closed or not self._queues:
            return
        now_ms = self.now_ms
        if self._expiry_at_ms is None or now_ms >= self._expiry_at_ms:
            self._expiry_at_ms = self._queues.expire(now_ms)
        if self._queues.needs_identity and self._identifying is None:
            self._identifying = self._start(self._identify())
        drained = self._send(now_ms)
        while any(map(self._can_send_to, drained.requests)):
            # A request has one batch of a partition; brokers take several requests at a time.
            drained = self._send(now_ms)
        if drained.leaderless:
            self._refresh(drained.leaderless)
        self._look_again(drained.again_at_ms)

    def _send(self, now_ms: float) -> Drained:
        drained = self._queues.drain(self._cluster.metadata.leader_of, self._can_send_to, now_ms)
        for node_id, batches in drained.requests.items():
            self._count(node_id, 1)
            self._start(self._request(node_id, batches))
        return drained

    def _can_send_to(self, node_id: int) -> bool:
        return self._in_flight.get(node_id, 0) < self._config.max_in_flight_requests_per_connection

    def _count(self, node_id: int, change: int) -> None:
        """Note that a request begins or ends."""
        self._in_flight[node_id] = self._in_flight.get(node_id, 0) + change
        if self._can_send_to(node_id):
            self._busy_since_ms.pop(node_id, None)
        else:
            self._busy_since_ms.setdefault(node_id, self.now_ms)

    def _look_again(self, at_ms: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        times = [time for time in (at_ms, self._expiry_at_ms) if time is not None]
        if times and self._queues:
            # Half a millisecond more than needed: a timer that comes too early would come again and again.
            self._timer = self._loop.call_at((min(times) + 0.5) / 1000, self.wake)

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            # Nothing is expected to end up here; were it dropped, rows would wait in vain.
            self._on_fatal(_broken(error))

    # Identity and leaders

    async def _identify(self) -> None:
        try:
            self._queues.identity = await ask_identity(self._cluster)
        except (BrokerRefused, UnsupportedByBroker, ClientClosed) as error:
            self._on_fatal(error)
        finally:
            self._identifying = None
        self.wake()

    def _refresh(self, topics: set[str]) -> None:
        for topic in topics:
            self._cluster.in_use.use(topic, self._loop.time())
            self._cluster.stale(topic)
        self._is_refresh_wanted = True
        if self._refreshing is None:
            self._refreshing = self._start(self._refreshed())

    async def _refreshed(self) -> None:
        """Ask for leaders, and not again at once if there are still none."""
        try:
            rounds = 0
            while self._is_refresh_wanted:
                self._is_refresh_wanted = False
                await self._ask_for_leaders()
                self.wake()
                rounds += 1
                await pause(self._cluster, rounds)
        except ClientClosed as error:
            self._on_fatal(error)
        finally:
            self._refreshing = None
        self.wake()

    async def _ask_for_leaders(self) -> None:
        try:
            await self._cluster.refresh()
        except (Unreachable, ConnectionLost, RequestTimedOut) as error:
            logger.info("the leaders of partitions to be written could not be asked for: %s", error)

    # Requests

    async def _request(self, node_id: int, batches: list[PendingBatch]) -> None:
        try:
            answers = await self._ask(node_id, batches)
            for batch in batches:
                answer = answers.get(batch.partition, _NOT_ANSWERED)
                if answer.code == ErrorCode.MESSAGE_TOO_LARGE and batch.count == 1:
                    answer = answer._replace(message=await too_large(self._cluster, batch))
                self._on_answer(batch, answer)
        finally:
            self._count(node_id, -1)
        self.wake()

    async def _ask(self, node_id: int, batches: list[PendingBatch]) -> dict[TopicPartition, Answer]:
        """What is known of each batch now, whatever happened."""
        config = self._config
        request, names, has_ids = self._build(batches)
        try:
            reply = await self._cluster.send(
                node_id,
                request,
                max_version=None if has_ids else _VERSION_OF_TOPIC_IDS - 1,
                lane=self._lane,
                expects_reply=config.acks != 0,
            )
        except Unreachable as error:
            return _all(batches, Answer(ErrorCode.NETWORK_EXCEPTION, str(error), never_left=True))
        except RequestTimedOut as error:
            return _all(batches, Answer(ErrorCode.REQUEST_TIMED_OUT, str(error)))
        except (ConnectionLost, ClientClosed) as error:
            return _all(batches, Answer(ErrorCode.NETWORK_EXCEPTION, str(error)))
        except asyncio.CancelledError:
            if self._is_closed:
                raise
            # Not this task but the connection attempt that it waited for was cancelled: the broker has moved.
            return _all(batches, Answer(ErrorCode.NETWORK_EXCEPTION, "the broker has moved"))
        except UnsupportedByBroker as error:
            return _all(batches, Answer(ErrorCode.UNSUPPORTED_VERSION, str(error), never_left=True))
        if config.acks == 0:
            await self._keep_step(node_id, batches)
            return _all(batches, Answer())
        return self._read(reply, names)

    async def _keep_step(self, node_id: int, batches: list[PendingBatch]) -> None:
        """Records without acknowledgement would pile up at the socket if nobody ever waited for a broker."""
        unanswered = self._bytes_unanswered.get(node_id, 0) + sum(batch.size for batch in batches)
        self._bytes_unanswered[node_id] = unanswered
        if unanswered > _UNANSWERED_BYTES_MAX:
            await self._answered(node_id)

    async def _answered(self, node_id: int) -> None:
        self._bytes_unanswered.pop(node_id, None)
        try:
            await self._cluster.send(node_id, metadata_request([], create=False), lane=self._lane)
        except (Unreachable, ConnectionLost, RequestTimedOut, ClientClosed) as error:
            logger.info("whether records without acknowledgement arrived is not known: %s", error)

    def _build(self, batches: list[PendingBatch]) -> tuple[ProduceRequest, dict[UUID, str], bool]:
        config = self._config
        known = self._cluster.metadata.topics
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            name, index = batch.partition
            topic = topics.get(name)
            if topic is None:
                topic_id = known[name].topic_id if name in known else ZERO_UUID
                topic = topics[name] = TopicProduceData(name=name, topic_id=topic_id)
            topic.partition_data.append(PartitionProduceData(index=index, records=batch.data))
        request = ProduceRequest(
            acks=config.acks, timeout_ms=config.request_timeout_ms, topic_data=list(topics.values())
        )
        names = {topic.topic_id: name for name, topic in topics.items()}
        return request, names, ZERO_UUID not in names

    def _read(self, reply: ProduceResponse, names: dict[UUID, str]) -> dict[TopicPartition, Answer]:
        answers: dict[TopicPartition, Answer] = {}
        for topic in reply.responses:
            name = topic.name or names.get(topic.topic_id, "")
            for found in topic.partition_responses:
                answers[TopicPartition(name, found.index)] = _answer(found)
                leader = found.current_leader
                if found.error_code and leader.leader_id >= 0 and leader.leader_epoch >= 0:
                    self._cluster.learn_leader(
                        name, found.index, leader.leader_id, leader.leader_epoch, reply.node_endpoints
                    )
        return answers

    def _on_answer(self, batch: PendingBatch, answer: Answer) -> None:
        now_ms = self.now_ms
        if answer.code and answer.code in FATAL:
            self._on_fatal(BrokerRefused(answer.code, answer.message, str(batch.partition)))
            return
        if answer.code:
            logger.debug("%s: %d records: %s", batch.partition, batch.count, answer.text)
        self._queues.on_answer(batch, answer, now_ms)
        if answer.code in _LEADER_CHANGED and self._leader_now(batch) in (None, batch.leader_tried):
            self._refresh({batch.partition.topic})

    def _leader_now(self, batch: PendingBatch) -> Leader | None:
        return self._cluster.metadata.leader_of(*batch.partition)


_NOT_ANSWERED: Final = Answer(
    ErrorCode.NETWORK_EXCEPTION, "the broker's reply does not mention the partition"
)


def _broken(error: BaseException) -> HeadraceError:
    if isinstance(error, HeadraceError):
        return error
    broken = HeadraceError(f"the writer cannot go on: {type(error).__name__}: {error}")
    broken.__cause__ = error
    return broken


def _all(batches: list[PendingBatch], answer: Answer) -> dict[TopicPartition, Answer]:
    return {batch.partition: answer for batch in batches}


def _answer(found: PartitionProduceResponse) -> Answer:
    return Answer(
        code=found.error_code,
        message=found.error_message,
        offset_base=found.base_offset,
        offset_log_start=found.log_start_offset,
        record_errors=tuple(
            RecordError(each.batch_index, each.batch_index_error_message or found.error_message or "refused")
            for each in found.record_errors
        ),
    )
