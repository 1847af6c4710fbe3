"""What is asked of Spark's own source and sink and of ours alike. Both sides of the comparison read this."""

from typing import Final

#: Of the topics `rows` has all that records can have, `deleted` has lost its first ones.
TIME_MS: Final = 1_700_000_000_000
ROWS_PER_PARTITION: Final = 20

_ALL: Final = {"subscribe": "rows", "includeHeaders": "true"}

#: Options of batch queries, by what they show.
BATCHES: Final[dict[str, dict[str, str]]] = {
    "all columns": _ALL,
    "without headers": {"subscribe": "rows"},
    "several topics": {"subscribe": "rows,stamped"},
    "pattern": {"subscribePattern": "r.*|stam[p]ed", "includeHeaders": "true"},
    "pattern that matches nothing": {"subscribePattern": "nothing-.*"},
    "assigned partitions": {"assign": '{"rows":[0,2],"stamped":[0]}'},
    "starting offsets": _ALL | {"startingOffsets": '{"rows":{"0":5,"1":-2,"2":20}}'},
    "ending offsets": _ALL | {"endingOffsets": '{"rows":{"0":5,"1":-1,"2":0}}'},
    "both offsets": _ALL
    | {"startingOffsets": '{"rows":{"0":5,"1":0,"2":3}}', "endingOffsets": '{"rows":{"0":7,"1":0,"2":-1}}'},
    "starting time": {"subscribe": "rows", "startingTimestamp": str(TIME_MS + 7)},
    "ending time": {"subscribe": "rows", "endingTimestamp": str(TIME_MS + 7)},
    "ending time after the end": {"subscribe": "rows", "endingTimestamp": str(TIME_MS + 10**6)},
    "starting time after the end": {
        "subscribe": "rows",
        "startingTimestamp": str(TIME_MS + 10**6),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "starting times": {
        "subscribe": "rows",
        "startingOffsetsByTimestamp": f'{{"rows":{{"0":{TIME_MS + 3},"1":{TIME_MS},"2":{TIME_MS + 19}}}}}',
    },
    "ending times": {
        "subscribe": "rows",
        "endingOffsetsByTimestamp": f'{{"rows":{{"0":{TIME_MS + 3},"1":{TIME_MS},"2":{TIME_MS + 19}}}}}',
    },
    "time before offsets": {
        "subscribe": "rows",
        "startingTimestamp": str(TIME_MS + 15),
        "startingOffsets": "earliest",
    },
    "more tasks": _ALL | {"minPartitions": "7"},
    "small tasks": _ALL | {"maxRecordsPerPartition": "3"},
    "the broker's times": {"subscribe": "stamped"},
    "compressed": {"subscribe": "gzip,snappy,lz4,zstd"},
    "records that are gone": {"subscribe": "deleted"},
    "records that are gone, asked for": {
        "subscribe": "deleted",
        "startingOffsets": '{"deleted":{"0":2}}',
        "failOnDataLoss": "false",
    },
    "empty topic": {"subscribe": "empty"},
    "names in other cases": {"SUBSCRIBE": "rows", "STARTINGOFFSETS": "Earliest", "includeheaders": "TRUE"},
}

#: Batch queries that need transactions.
TRANSACTIONS: Final[dict[str, dict[str, str]]] = {
    "committed transactions": {"subscribe": "transactions", "kafka.isolation.level": "read_committed"},
    "all transactions": {"subscribe": "transactions", "kafka.isolation.level": "read_uncommitted"},
}

#: Options of streams that run until everything there is was read.
STREAMS: Final[dict[str, dict[str, str]]] = {
    "from the earliest": {"startingOffsets": "earliest"},
    "from the latest": {"startingOffsets": "latest"},
    "by default from the latest": {},
    "in batches": {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "13"},
    "in batches with a least size": {
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "10",
        "minOffsetsPerTrigger": "1",
        "maxTriggerDelay": "1h",
    },
    "from offsets in batches": {
        "startingOffsets": '{"rows":{"0":15,"1":-2,"2":-1}}',
        "maxOffsetsPerTrigger": "7",
    },
    "from a time": {"startingTimestamp": str(TIME_MS + 12)},
    "in more tasks": {"startingOffsets": "earliest", "minPartitions": "5"},
}

#: Options of batch queries that both refuse.
REFUSED: Final[dict[str, dict[str, str]]] = {
    "no selection": {},
    "two selections": {"subscribe": "rows", "subscribePattern": "rows"},
    "no topics": {"subscribe": ","},
    "no pattern": {"subscribePattern": ""},
    "no partitions": {"assign": "rows"},
    "a batch from the latest": {"subscribe": "rows", "startingOffsets": "latest"},
    "a batch to the earliest": {"subscribe": "rows", "endingOffsets": "earliest"},
    "a partition from the latest": {"subscribe": "empty", "startingOffsets": '{"empty":{"0":-1}}'},
    "a partition to the earliest": {"subscribe": "empty", "endingOffsets": '{"empty":{"0":-2}}'},
    "offsets of some partitions": {"subscribe": "rows", "startingOffsets": '{"rows":{"0":0}}'},
    "the end before the start": {
        "subscribe": "empty",
        "startingOffsets": '{"empty":{"0":5}}',
        "endingOffsets": '{"empty":{"0":4}}',
    },
    "times that are none": {"subscribe": "rows", "startingTimestamp": "yesterday"},
    "a time after the end": {"subscribe": "rows", "startingTimestamp": str(TIME_MS + 10**6)},
    "no tasks": {"subscribe": "rows", "minPartitions": "0"},
    "a reset": {"subscribe": "rows", "kafka.auto.offset.reset": "latest"},
    "a deserializer": {"subscribe": "rows", "kafka.key.deserializer": "x"},
    "automatic commits": {"subscribe": "rows", "kafka.enable.auto.commit": "true"},
    "interceptors": {"subscribe": "rows", "kafka.interceptor.classes": "x"},
    "a missing topic": {"subscribe": "not-there", "kafka.default.api.timeout.ms": "5000"},
}

#: Frames to write, by what they show: columns, and rows as SQL.
WRITES: Final[dict[str, tuple[dict[str, str], str]]] = {
    "keys and values": (
        {"topic": "TARGET"},
        "select cast(id as string) as key, concat('v', id) as value from range(100)",
    ),
    "binary": (
        {"topic": "TARGET"},
        "select cast(cast(id as string) as binary) as key, cast(concat('v', id) as binary) as value "
        "from range(100)",
    ),
    "nulls": (
        {"topic": "TARGET"},
        "select cast(if(id % 2 = 0, null, id) as string) as key, cast(if(id % 3 = 0, null, id) as string) as "
        "value, cast(id % 3 as int) as partition from range(60)",
    ),
    "headers": (
        {"topic": "TARGET"},
        "select cast(id as string) as value, 1 as partition, if(id % 3 = 0, null, array(named_struct('key', "
        "'h', 'value', cast(cast(id as string) as binary)), named_struct('key', 'i', 'value', "
        "cast(null as binary)))) as headers from range(30)",
    ),
    "topics by row": ({}, "select 'TARGET' as topic, cast(id as string) as key, 'v' as value from range(20)"),
    "the option before the column": (
        {"topic": "TARGET"},
        "select 'elsewhere' as topic, cast(id as string) as key, 'v' as value from range(20)",
    ),
    "other columns": (
        {"topic": "TARGET"},
        "select id, cast(id as string) as key, 'v' as value from range(20)",
    ),
}

#: Frames that both refuse to write.
WRITES_REFUSED: Final[dict[str, tuple[dict[str, str], str]]] = {
    "no value": ({"topic": "rows"}, "select 'k' as key"),
    "no topic": ({}, "select 'v' as value"),
    "a value of numbers": ({"topic": "rows"}, "select 5 as value"),
    "a key of numbers": ({"topic": "rows"}, "select 5 as key, 'v' as value"),
    "a long partition": ({"topic": "rows"}, "select 5L as partition, 'v' as value"),
    "other headers": ({"topic": "rows"}, "select map('a', 'b') as headers, 'v' as value"),
    "a null topic": ({}, "select cast(null as string) as topic, 'v' as value"),
    "a serializer": ({"topic": "rows", "kafka.key.serializer": "x"}, "select 'v' as value"),
}
