"""Batches of a produce request that take long to look through: a worker does it, and then they are appended.

Meanwhile the connection's next requests wait, so that nothing a producer has sent later gets before them;
everybody else is served."""

import asyncio
from typing import NamedTuple

from headrace.api.services import Services
from headrace.config.headrace_keys import headrace_settings
from headrace.errors import KafkaError
from headrace.log.append_origin import AppendOrigin
from headrace.log.leader_validation import validation_rules
from headrace.protocol.messages.produce import PartitionProduceResponse
from headrace.records.elsewhere import patient, validate_elsewhere
from headrace.records.rules import Validated
from headrace.replication.partition import Partition


class HeavyAppend(NamedTuple):
    """A batch that waits, with records of its own, and the place that its result will take."""

    partition: Partition
    records: bytes
    place: PartitionProduceResponse


async def look_through(
    services: Services, waiting: list[HeavyAppend], now_ms: int
) -> list[Validated | KafkaError]:
    """What each may be appended as, or why not."""
    return list(await asyncio.gather(*(_look_through(services, each, now_ms) for each in waiting)))


async def _look_through(services: Services, heavy: HeavyAppend, now_ms: int) -> Validated | KafkaError:
    try:
        log = heavy.partition.leader_log
        limit = headrace_settings(services.config).batch_decompressed_max
        rules = patient(validation_rules(log.partition, log.settings, AppendOrigin.CLIENT), limit)
        if services.workers is None:
            answer = validate_elsewhere(heavy.records, rules, now_ms)
        else:
            answer = await services.workers.run(validate_elsewhere, heavy.records, rules, now_ms)
    except KafkaError as error:
        return error
    return answer.validated()
