"""What a query asks for, read from its options once and checked before any broker is talked to."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headrace.client.config import ClientConfig
from headrace.client.errors import ConfigRefused
from headrace.spark import option_values as values
from headrace.spark.errors import OptionRefused
from headrace.spark.option_names import CLIENT_PREFIX, Use, check_names
from headrace.spark.places import (
    EARLIEST,
    ENDING,
    LATEST,
    STARTING,
    Everywhere,
    Place,
    WithoutMatch,
    check_batch_places,
    read_place,
    read_without_match,
)
from headrace.spark.selection import Selection, read_selection

_POLL_TIMEOUT_MS: Final = 120_000
_FETCH_ATTEMPTS: Final = 3
_FETCH_RETRY_INTERVAL_MS: Final = 1_000
_TRIGGER_DELAY_MS_MAX: Final = 15 * 60_000

#: Options of Kafka's clients that would change what a query means; the rest are the client's to judge.
_NOT_IN_SPARK: Final[Mapping[str, str]] = {
    "auto.offset.reset": "say where to start by 'startingOffsets'; later on the checkpoint decides, and a "
    "position that is gone is never replaced silently",
    "key.deserializer": "keys are read as bytes; decode them with functions of Spark",
    "value.deserializer": "values are read as bytes; decode them with functions of Spark",
    "key.serializer": "keys are written as they are in their column; encode them with functions of Spark",
    "value.serializer": "values are written as they are in their column; encode them with functions of Spark",
    "enable.auto.commit": "the checkpoint says how far a query is; lag tools see it with 'commitGroup'",
    "interceptor.classes": "Java classes cannot be loaded here",
}

#: What a source asks of the client unless told otherwise. A task reads one partition, so that it may ask for
#: more of it at a time than a consumer of many would; the system knows best how much a socket should hold.
_SOURCE_DEFAULTS: Final[Mapping[str, str]] = {
    "kafka.max.partition.fetch.bytes": "4194304",
    "kafka.receive.buffer.bytes": "-1",
}

#: What a sink asks of the client unless told otherwise. Rows come many at a time, so that batches may be
#: larger than Kafka's producers make them; like those, it lets a broker create topics that does so.
_SINK_DEFAULTS: Final[Mapping[str, str]] = {
    "kafka.batch.size": "262144",
    "kafka.allow.auto.create.topics": "true",
}

#: What the client is told, in its own names; kept as pairs so that equal ones share connections.
Properties = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Everything about a read."""

    properties: Properties
    selection: Selection
    start: Place
    end: Place
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    trigger_delay_ms_max: int
    min_partitions: int | None
    max_records_per_partition: int | None
    has_headers: bool
    fails_on_data_loss: bool
    commit_group: str | None
    poll_timeout_ms: int
    fetch_attempts: int
    fetch_retry_interval_ms: int


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Everything about a write."""

    properties: Properties
    topic: str | None
    has_headers: bool | None


def read_source_options(given: Mapping[str, str], use: Use | None) -> SourceOptions:
    """Check and read the options of a read; None where it is not known yet of which kind it will be."""
    check_names(given, use)
    options = {name.lower(): text for name, text in given.items()}
    without_match = read_without_match(options)
    is_stream = use is Use.STREAM_READ
    start = read_place(options, STARTING, Everywhere(LATEST if is_stream else EARLIEST), without_match)
    end = read_place(options, ENDING, Everywhere(LATEST), WithoutMatch.LATEST)
    if use is Use.BATCH_READ:
        check_batch_places(start, end)
    lowest, highest = _number(options, "minOffsetsPerTrigger"), _number(options, "maxOffsetsPerTrigger")
    if lowest is not None and highest is not None and lowest > highest:
        raise OptionRefused("minOffsetsPerTrigger", f"{lowest} is more than maxOffsetsPerTrigger, {highest}")
    delay = options.get("maxtriggerdelay")
    return SourceOptions(
        properties=_source_properties(options),
        selection=read_selection(options),
        start=start,
        end=end,
        max_offsets_per_trigger=highest,
        min_offsets_per_trigger=lowest,
        trigger_delay_ms_max=(
            _TRIGGER_DELAY_MS_MAX if delay is None else values.duration_ms("maxTriggerDelay", delay)
        ),
        min_partitions=_number(options, "minPartitions"),
        max_records_per_partition=_number(options, "maxRecordsPerPartition"),
        has_headers=_boolean(options, "includeHeaders", default=False),
        fails_on_data_loss=_boolean(options, "failOnDataLoss", default=True),
        commit_group=_commit_group(options),
        poll_timeout_ms=_number(options, "kafkaConsumer.pollTimeoutMs") or _POLL_TIMEOUT_MS,
        fetch_attempts=_number(options, "fetchOffset.numRetries") or _FETCH_ATTEMPTS,
        fetch_retry_interval_ms=_interval(options),
    )


def read_sink_options(given: Mapping[str, str], use: Use) -> SinkOptions:
    """Check and read the options of a write."""
    check_names(given, use)
    options = {name.lower(): text for name, text in given.items()}
    topic = options.get("topic")
    if topic is not None and not topic.strip():
        raise OptionRefused("topic", "it is empty")
    return SinkOptions(
        properties=_properties({**_SINK_DEFAULTS, **options}),
        topic=None if topic is None else topic.strip(),
        has_headers=(
            _boolean(options, "includeHeaders", default=False) if "includeheaders" in options else None
        ),
    )


def client_config(properties: Properties) -> ClientConfig:
    """The client's configuration; OptionRefused with the option's own name if it is none."""
    try:
        return ClientConfig.from_properties(dict(properties))
    except ConfigRefused as refused:
        raise OptionRefused(CLIENT_PREFIX + refused.key, refused.reason) from None


def _source_properties(options: Mapping[str, str]) -> Properties:
    """A group id has no use but to tell brokers who reads, as in Kafka's consumer: in the client's id."""
    given = {name: text for name, text in options.items() if name != "kafka.group.id"}
    found = dict(_properties({**_SOURCE_DEFAULTS, **given}))
    group_id, prefix = options.get("kafka.group.id"), options.get("groupidprefix")
    if "client.id" not in found and (group_id is not None or prefix is not None):
        found["client.id"] = f"consumer-{group_id or f'{prefix}-{uuid.uuid4()}'}"
    return tuple(sorted(found.items()))


def _properties(options: Mapping[str, str]) -> Properties:
    start = len(CLIENT_PREFIX)
    found = {name[start:]: text for name, text in options.items() if name.startswith(CLIENT_PREFIX)}
    for name in found:
        if reason := _NOT_IN_SPARK.get(name):
            raise OptionRefused(CLIENT_PREFIX + name, reason)
    if not found.get("bootstrap.servers", "").strip():
        raise OptionRefused("kafka.bootstrap.servers", "say where the cluster is, such as localhost:9092")
    properties = tuple(sorted(found.items()))
    client_config(properties)
    return properties


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name.lower())
    return None if text is None else values.whole_number(name, text, low=1)


def _boolean(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name.lower())
    return default if text is None else values.boolean(name, text)


def _interval(options: Mapping[str, str]) -> int:
    name = "fetchOffset.retryIntervalMs"
    text = options.get(name.lower())
    return _FETCH_RETRY_INTERVAL_MS if text is None else values.whole_number(name, text)


def _commit_group(options: Mapping[str, str]) -> str | None:
    group = options.get("commitgroup")
    if group is not None and not group.strip():
        raise OptionRefused("commitGroup", "the name of the group is empty")
    return None if group is None else group.strip()
