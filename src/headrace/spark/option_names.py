"""Every option there is, where it may be given, and what is said about one that may not."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import Enum
from typing import Final

from headrace.spark.errors import OptionRefused

CLIENT_PREFIX: Final = "kafka."


class Use(Enum):
    """What a query does with a topic."""

    BATCH_READ = "reading a batch"
    STREAM_READ = "reading a stream"
    BATCH_WRITE = "writing a batch"
    STREAM_WRITE = "writing a stream"

    @property
    def is_read(self) -> bool:
        return self in _READS


_READS: Final = frozenset({Use.BATCH_READ, Use.STREAM_READ})
_WRITES: Final = frozenset({Use.BATCH_WRITE, Use.STREAM_WRITE})
_STREAM_READ: Final = frozenset({Use.STREAM_READ})
_BATCH_READ: Final = frozenset({Use.BATCH_READ})

#: Where each option has a meaning.
OPTIONS: Final[Mapping[str, frozenset[Use]]] = {
    "subscribe": _READS,
    "subscribePattern": _READS,
    "assign": _READS,
    "startingOffsets": _READS,
    "startingTimestamp": _READS,
    "startingOffsetsByTimestamp": _READS,
    "startingOffsetsByTimestampStrategy": _READS,
    "endingOffsets": _BATCH_READ,
    "endingTimestamp": _BATCH_READ,
    "endingOffsetsByTimestamp": _BATCH_READ,
    "maxOffsetsPerTrigger": _STREAM_READ,
    "minOffsetsPerTrigger": _STREAM_READ,
    "maxTriggerDelay": _STREAM_READ,
    "minPartitions": _READS,
    "maxRecordsPerPartition": _READS,
    "failOnDataLoss": _READS,
    "groupIdPrefix": _READS,
    "kafkaConsumer.pollTimeoutMs": _READS,
    "fetchOffset.numRetries": _READS,
    "fetchOffset.retryIntervalMs": _READS,
    "commitGroup": _STREAM_READ,
    "includeHeaders": _READS | _WRITES,
    "topic": _WRITES,
    # Spark's own, handed to every sink.
    "checkpointLocation": frozenset({Use.STREAM_WRITE}),
    "queryName": frozenset({Use.STREAM_WRITE}),
}
_BY_LOWER: Final = {name.lower(): name for name in OPTIONS}

_ELSEWHERE: Final[Mapping[str, str]] = {
    "topic": "it names the topic to write to; topics to read are given by 'subscribe'",
    "endingOffsets": "a stream has no end; use a batch query, or the trigger availableNow",
    "endingTimestamp": "a stream has no end; use a batch query, or the trigger availableNow",
    "endingOffsetsByTimestamp": "a stream has no end; use a batch query, or the trigger availableNow",
    "maxOffsetsPerTrigger": "a batch query has no triggers; limit it by 'endingOffsets'",
    "minOffsetsPerTrigger": "a batch query has no triggers",
    "maxTriggerDelay": "a batch query has no triggers",
    "commitGroup": "only a stream makes progress that can be committed to a group",
}
_NO_PATH: Final = "topics have no path; name them by 'subscribe' when reading and 'topic' when writing"


def check_names(names: Iterable[str], use: Use | None) -> None:
    """Refuse options that are unknown, or that have no meaning in this use; None stands for any reading.

    Names come in any case, those of the client (`kafka.…`) are the client's to judge.
    """
    for given in names:
        if given.lower().startswith(CLIENT_PREFIX):
            continue
        name = _BY_LOWER.get(given.lower())
        if name is None:
            raise OptionRefused(given, _NO_PATH if given.lower() == "path" else unknown(given))
        places = OPTIONS[name]
        if use is None:
            fits = not places.isdisjoint(_READS)
        else:
            fits = use in places
        if not fits:
            doing = "reading" if use is None else use.value
            raise OptionRefused(
                name, f"it has no meaning in {doing}: {_ELSEWHERE.get(name, _belongs(places))}"
            )


def unknown(given: str) -> str:
    """What is said about an option that does not exist."""
    near = get_close_matches(given.lower(), [*_BY_LOWER, "kafka.bootstrap.servers"], n=1, cutoff=0.6)
    if not near:
        return "there is no such option; clients' own are given with the prefix 'kafka.'"
    return f"there is no such option; did you mean {_BY_LOWER.get(near[0], near[0])!r}?"


def _belongs(places: frozenset[Use]) -> str:
    return "it belongs to " + " and ".join(use.value for use in Use if use in places)
