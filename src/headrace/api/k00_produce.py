"""Produce: append one batch to each partition named.

Every partition has a result of its own. Without acknowledgement there is no reply, and an error closes the
connection, since there is no other way to tell. It waits for syncs and replicas only."""

from collections.abc import Awaitable
from typing import Final, NamedTuple, cast
from uuid import UUID

from headrace.api.context import RequestContext
from headrace.api.heavy_batches import HeavyAppend, look_through
from headrace.api.leader_hints import LeaderHints
from headrace.api.produce_form import check_form, is_plain, is_transactional, producer_of
from headrace.api.produce_verification import (
    NOTHING_TO_VERIFY,
    Findings,
    Unverified,
    findings_of,
    kept,
    verify,
)
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.log.append_info import AppendInfo
from headrace.log.producer_entry import NO_VERIFICATION_GUARD, VerificationGuard
from headrace.metadata.topic_names import INTERNAL_TOPICS
from headrace.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from headrace.records.rules import HeavyBatch, RecordsRefused, Validated
from headrace.replication.hosted_topic import HostedTopic
from headrace.replication.partition import ACKS_ALL, Partition
from headrace.replication.waits import Condition, wait_for_all
from headrace.transactions.verification import Verdicts

_BY_TOPIC_ID_SINCE: Final = 13
_LEADER_HINTS_SINCE: Final = 10
_ACKS_NONE: Final = 0
_ACKS_KNOWN: Final = frozenset({-1, 0, 1})
_NO_OFFSET: Final = -1
_ADMIN_CLIENT: Final = "__admin_client"

# Refusals that have nothing to do with the partition's content; Kafka tells no log start with them.
_WITHOUT_LOG_START: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)


class Unfinished(NamedTuple):
    """An append that is not to be acknowledged yet."""

    partition: Partition
    info: AppendInfo
    result: PartitionProduceResponse


def handle(
    services: Services, context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    """Append everything, and reply at once unless something has to be waited for."""
    version = context.version
    all_plain, has_transaction = True, False
    findings = NOTHING_TO_VERIFY
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = cast("memoryview | None", partition.records)
            if not is_plain(records, version):
                all_plain = False
                if not has_transaction and is_transactional(records):
                    # It looks at all batches: once is enough, and more would take a square of their number.
                    has_transaction = True
                    check_transaction(request)
    if has_transaction:
        verified = verify(services, context, request)
        if not isinstance(verified, dict):
            return _append_when_verified(services, context, kept(request), verified)
        findings = verified
    appending = Appending(services, context, request, all_plain, findings)
    response = appending.run()
    if appending.heavy:
        # At once, for the connection's next request may have come together with this one.
        context.connection.hold()
        return _append_heavy(appending, services, context, request, response)
    if appending.unfinished:
        return _finish(services, context, request, response, appending.unfinished)
    return _reply(context, request, response)


async def _append_heavy(
    appending: "Appending",
    services: Services,
    context: RequestContext,
    request: ProduceRequest,
    response: ProduceResponse,
) -> ProduceResponse | None:
    """Append what a worker had to look through; the connection, which is held, goes on afterwards."""
    try:
        found = await look_through(services, appending.heavy, services.clock.now_ms())
        appending.append_heavy(found, response)
    finally:
        context.connection.release()
    return await _finish(services, context, request, response, appending.unfinished)


async def _append_when_verified(
    services: Services, context: RequestContext, request: ProduceRequest, verdicts: Awaitable[Verdicts]
) -> ProduceResponse | None:
    findings = findings_of(await verdicts, context.version)
    appending = Appending(services, context, request, False, findings)
    response = appending.run()
    if appending.heavy:
        context.connection.hold()
        return await _append_heavy(appending, services, context, request, response)
    return await _finish(services, context, request, response, appending.unfinished)


class Appending:
    """One request on its way through the partitions."""

    __slots__ = (
        "_all_plain",
        "_context",
        "_findings",
        "_hints",
        "_now_ms",
        "_request",
        "_services",
        "heavy",
        "unfinished",
    )

    def __init__(
        self,
        services: Services,
        context: RequestContext,
        request: ProduceRequest,
        all_plain: bool,
        findings: Findings,
    ) -> None:
        self._all_plain = all_plain
        self._findings = findings
        self._services = services
        self._context = context
        self._request = request
        self._now_ms = services.clock.now_ms()
        self._hints: LeaderHints | None = None
        self.heavy: list[HeavyAppend] = []
        self.unfinished: list[Unfinished] = []

    def run(self) -> ProduceResponse:
        responses = []
        by_id = self._context.version >= _BY_TOPIC_ID_SINCE
        replicas = self._services.replicas
        for topic in _each_once(self._request.topic_data):
            hosted = replicas.topics_by_id.get(topic.topic_id) if by_id else replicas.topics.get(topic.name)
            if hosted is None:
                name = replicas.cluster.topic_name(topic.topic_id) if by_id else topic.name
                results = [self._check_and_append(name, data) for data in topic.partition_data]
            else:
                results = self._append_all(hosted, topic.partition_data)
            responses.append(
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=results)
            )
        response = ProduceResponse(responses=responses)
        if self._hints is not None:
            response.node_endpoints = [NodeEndpoint(**node) for node in self._hints.endpoints()]
        return response

    def _append_all(
        self, topic: HostedTopic, wanted: list[PartitionProduceData]
    ) -> list[PartitionProduceResponse]:
        """The short way for requests in which there is nothing to find fault with."""
        name, partitions = topic.name, topic.partitions
        if not self._all_plain or self._request.acks not in _ACKS_KNOWN or name in INTERNAL_TOPICS:
            return [self._check_and_append(name, data) for data in wanted]
        results = []
        for data in wanted:
            index = data.index
            partition = partitions.get(index)
            if partition is None:
                results.append(self._check_and_append(name, data))
                continue
            try:
                results.append(self._append_to(partition, cast(memoryview, data.records), index))
            except KafkaError as error:
                results.append(self._refused(name, index, partition, error))
        return results

    def _check_and_append(self, name: str | None, data: PartitionProduceData) -> PartitionProduceResponse:
        """Every check that Kafka makes before it looks for the partition, in its order."""
        index = data.index
        if name is None:
            return _refusal(index, ErrorCode.UNKNOWN_TOPIC_ID)
        replicas = self._services.replicas
        if replicas.get(name, index) is None and not replicas.cluster.has_partition(name, index):
            return _refusal(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        records = cast("memoryview | None", data.records)
        if records is None:
            # The protocol allows it, no producer does it, and Kafka has no better answer.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            check_form(records, self._context.version)
        except KafkaError as error:
            return _refusal(index, error.code)
        if self._request.acks not in _ACKS_KNOWN:
            return _refusal(index, ErrorCode.INVALID_REQUIRED_ACKS)
        if name in INTERNAL_TOPICS and self._context.client_id != _ADMIN_CLIENT:
            return _refusal(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = None
        try:
            partition = replicas.find(name, index)
            return self._append_to(partition, records, index)
        except KafkaError as error:
            return self._refused(name, index, partition, error)

    def append_heavy(self, found: list[Validated | KafkaError], response: ProduceResponse) -> None:
        """Append what was looked through elsewhere, and put the results in their places."""
        for heavy, outcome in zip(self.heavy, found, strict=True):
            partition = heavy.partition
            topic, index = partition.name
            try:
                if isinstance(outcome, KafkaError):
                    raise outcome
                result = self._append_to(partition, outcome, index)
            except KafkaError as error:
                result = self._refused(topic, index, partition, error)
            for each in response.responses:
                results = each.partition_responses
                each.partition_responses = [result if place is heavy.place else place for place in results]
        if self._hints is not None:
            response.node_endpoints = [NodeEndpoint(**node) for node in self._hints.endpoints()]

    def _append_to(
        self, partition: Partition, records: memoryview | Validated, index: int
    ) -> PartitionProduceResponse:
        acks = self._request.acks
        counters = partition.counters
        counters.produce_requests += 1
        try:
            if self._findings:
                info = partition.append(records, acks, self._now_ms, guard=self._guard_of(partition))
            else:
                info = partition.append(records, acks, self._now_ms)
        except HeavyBatch:
            counters.produce_requests -= 1
            place = PartitionProduceResponse(index=index)
            self.heavy.append(HeavyAppend(partition, bytes(cast(memoryview, records)), place))
            return place
        counters.bytes_in += len(records)
        counters.messages_in += info.last_offset - info.first_offset + 1
        result = PartitionProduceResponse(
            index=index,
            base_offset=info.first_offset,
            log_append_time_ms=info.log_append_time,
            log_start_offset=info.log_start_offset,
        )
        if info.must_flush or (acks == ACKS_ALL and partition.followers):
            self.unfinished.append(Unfinished(partition, info, result))
        return result

    def _guard_of(self, partition: Partition) -> VerificationGuard:
        """What lets a batch open its transaction here, if it has to show anything."""
        finding = self._findings.get(partition.name, NO_VERIFICATION_GUARD)
        if isinstance(finding, Unverified):
            raise finding
        return finding

    def _refused(
        self, name: str, index: int, partition: Partition | None, error: KafkaError
    ) -> PartitionProduceResponse:
        code = error.code
        result = _refusal(index, code)
        if code not in _WITHOUT_LOG_START and not isinstance(error, Unverified):
            log = None if partition is None else partition.log
            result.log_start_offset = _NO_OFFSET if log is None else log.log_start_offset
            if partition is not None:
                partition.counters.produce_requests_failed += 1
        if isinstance(error, Unverified):
            result.error_message = error.message or None
        elif isinstance(error, RecordsRefused):
            result.error_message = error.client_message
            result.record_errors = [
                BatchIndexAndErrorMessage(batch_index=batch_index, batch_index_error_message=message)
                for batch_index, message in error.record_errors
            ]
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER and self._context.version >= _LEADER_HINTS_SINCE:
            self._hints = self._hints or LeaderHints(self._services.replicas, self._context.listener)
            leader = self._hints.leader_of(name, index)
            result.current_leader = LeaderIdAndEpoch(
                leader_id=leader.leader, leader_epoch=leader.leader_epoch
            )
        return result


def check_transaction(request: ProduceRequest) -> None:
    """Transactional batches need a transactional id, and come from one producer."""
    if request.transactional_id is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    producers = set()
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = cast("memoryview | None", partition.records)
            if records is not None and is_transactional(records):
                producer = producer_of(records)
                producers.add((producer.producer_id, producer.epoch))
    if len(producers) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )


def _each_once(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """Of a partition that is named more than once the last counts; topics without partitions do not."""
    if len(topics) == 1 and len(topics[0].partition_data) == 1:
        return topics
    merged: dict[tuple[str, UUID], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        partitions = merged.setdefault((topic.name, topic.topic_id), {})
        partitions.update((data.index, data) for data in topic.partition_data)
    return [
        TopicProduceData(name=name, topic_id=topic_id, partition_data=list(partitions.values()))
        for (name, topic_id), partitions in merged.items()
        if partitions
    ]


async def _finish(
    services: Services,
    context: RequestContext,
    request: ProduceRequest,
    response: ProduceResponse,
    unfinished: list[Unfinished],
) -> ProduceResponse | None:
    """Wait for syncs and replicas, and correct the results of those that failed at it."""
    for partition, info, result in unfinished:
        if info.must_flush and partition.log is not None:
            try:
                await partition.log.flush(services.clock.now_ms(), info.last_offset + 1)
            except KafkaError as error:
                _overwrite(result, error.code)
    if request.acks == ACKS_ALL:
        waiting = [each for each in unfinished if each.partition.followers and not each.result.error_code]
        replicated = wait_for_all(
            ((each.partition, _is_replicated(each)) for each in waiting), request.timeout_ms
        )
        if replicated is not None:
            await replicated
        for each in waiting:
            _settle(each)
    return _reply(context, request, response)


def _is_replicated(each: Unfinished) -> Condition:
    return lambda: each.partition.is_replicated(each.info.last_offset + 1)


def _settle(each: Unfinished) -> None:
    """What the wait for replicas has come to."""
    partition = each.partition
    if partition.is_offline:
        _overwrite(each.result, ErrorCode.KAFKA_STORAGE_ERROR)
        return
    try:
        if not partition.is_replicated(each.info.last_offset + 1):
            _overwrite(each.result, ErrorCode.REQUEST_TIMED_OUT)
        elif partition.is_under_min_isr:
            _overwrite(each.result, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    except KafkaError as error:
        _overwrite(each.result, error.code)


def _overwrite(result: PartitionProduceResponse, code: ErrorCode) -> None:
    result.error_code = code


def _refusal(index: int, code: ErrorCode) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=code, base_offset=_NO_OFFSET)


def error_response(request: ProduceRequest, version: int, error: KafkaError) -> ProduceResponse | None:
    """The same error for every partition."""
    if request.acks == _ACKS_NONE:
        return None
    responses = []
    for topic in request.topic_data:
        results = [_refusal(partition.index, error.code) for partition in topic.partition_data]
        for result in results:
            result.error_message = error.message or None
        responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=results)
        )
    return ProduceResponse(responses=responses)


def _reply(
    context: RequestContext, request: ProduceRequest, response: ProduceResponse
) -> ProduceResponse | None:
    if request.acks != _ACKS_NONE:
        return response
    failures = [
        f"{topic.name or topic.topic_id}-{result.index}: {ErrorCode(result.error_code).name}"
        for topic in response.responses
        for result in topic.partition_responses
        if result.error_code
    ]
    if failures:
        context.connection.close(f"a produce request without acknowledgement failed: {', '.join(failures)}")
    return None


API = Api(
    key=0,
    name="Produce",
    versions=(3, 13),
    request=ProduceRequest,
    response=ProduceResponse,
    handle=handle,
    error_response=error_response,
)
