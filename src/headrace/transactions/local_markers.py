"""Writes markers to partitions that this node leads.

In the group coordinator's topic a marker does more than lie in the log: committed offsets become visible by
it, so there it takes the way through that coordinator."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol

from headrace.errors import ErrorCode, KafkaError
from headrace.log.append_origin import AppendOrigin
from headrace.ports import Clock
from headrace.records.control import ControlType, build_end_transaction_marker
from headrace.replication.partition import ACKS_ALL, Partition
from headrace.replication.replicas import Replicas
from headrace.replication.waits import wait_for_all
from headrace.transactions.markers import Marker, MarkerOutcomes
from headrace.types import TopicPartition

GROUP_TOPIC: Final = "__consumer_offsets"

_NOT_READY: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)


class GroupTransactions(Protocol):
    """The group coordinator's runtime, as far as transactions end in its topic."""

    def complete_transaction(
        self,
        index: int,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        coordinator_epoch: int,
        transaction_version: int,
    ) -> "asyncio.Future[None]":
        """Write a marker and have it take effect; done when it is committed."""


class LocalMarkers:
    """A `markers.MarkerWriter` for this node."""

    __slots__ = ("_clock", "_groups", "_replicas", "_timeout_ms")

    def __init__(
        self,
        replicas: Replicas,
        groups: GroupTransactions | None,
        clock: Clock,
        timeout_ms: Callable[[], int],
    ) -> None:
        self._replicas = replicas
        self._groups = groups
        self._clock = clock
        self._timeout_ms = timeout_ms

    def write(
        self, marker: Marker, partitions: Iterable[TopicPartition]
    ) -> MarkerOutcomes | Awaitable[MarkerOutcomes]:
        """Append to each partition; partitions that are not here do not keep the others from it."""
        outcomes: MarkerOutcomes = {}
        parked: dict[TopicPartition, asyncio.Future[None]] = {}
        appended: list[tuple[Partition, int]] = []
        for name in partitions:
            partition = self._replicas.get(*name)
            if partition is None or partition.is_offline:
                outcomes[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif name.topic == GROUP_TOPIC and self._groups is not None:
                future = self._complete(self._groups, name, marker)
                if future.done():
                    outcomes[name] = _outcome(future)
                else:
                    parked[name] = future
            else:
                self._append(partition, marker, outcomes, appended)
        if not parked and not appended:
            return outcomes
        return self._wait(outcomes, parked, appended)

    def _complete(
        self, groups: GroupTransactions, name: TopicPartition, marker: Marker
    ) -> "asyncio.Future[None]":
        return groups.complete_transaction(
            name.partition,
            marker.producer_id,
            marker.producer_epoch,
            marker.commit,
            marker.coordinator_epoch,
            marker.transaction_version,
        )

    def _append(
        self,
        partition: Partition,
        marker: Marker,
        outcomes: MarkerOutcomes,
        appended: list[tuple[Partition, int]],
    ) -> None:
        now_ms = self._clock.now_ms()
        batch = build_end_transaction_marker(
            ControlType.COMMIT if marker.commit else ControlType.ABORT,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=now_ms,
        )
        try:
            info = partition.append(
                bytearray(batch),
                ACKS_ALL,
                now_ms,
                origin=AppendOrigin.COORDINATOR,
                transaction_version=marker.transaction_version,
            )
        except KafkaError as error:
            outcomes[partition.name] = error.code
            return
        end_offset = info.last_offset + 1
        if partition.is_replicated(end_offset):
            outcomes[partition.name] = ErrorCode.NONE
        else:
            appended.append((partition, end_offset))

    async def _wait(
        self,
        outcomes: MarkerOutcomes,
        parked: dict[TopicPartition, "asyncio.Future[None]"],
        appended: list[tuple[Partition, int]],
    ) -> MarkerOutcomes:
        replicated = wait_for_all(
            ((partition, _reaches(partition, end)) for partition, end in appended), self._timeout_ms()
        )
        if replicated is not None:
            await replicated
        for partition, end_offset in appended:
            outcomes[partition.name] = _settled(partition, end_offset)
        if parked:
            await asyncio.wait(parked.values())
        outcomes.update((name, _outcome(future)) for name, future in parked.items())
        return outcomes


def _settled(partition: Partition, end_offset: int) -> ErrorCode:
    """What the wait for replicas has come to."""
    if partition.is_offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    try:
        if not partition.is_replicated(end_offset):
            return ErrorCode.REQUEST_TIMED_OUT
    except KafkaError as error:
        return error.code
    under_min_isr = bool(partition.followers) and partition.is_under_min_isr
    return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if under_min_isr else ErrorCode.NONE


def _reaches(partition: Partition, end_offset: int) -> Callable[[], bool]:
    return lambda: partition.is_replicated(end_offset)


def _outcome(future: "asyncio.Future[None]") -> ErrorCode:
    """What became of a marker in the group coordinator's topic; one that is not ready is no leader yet."""
    if future.cancelled():
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    error = future.exception()
    if error is None:
        return ErrorCode.NONE
    if not isinstance(error, KafkaError):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in _NOT_READY else error.code
