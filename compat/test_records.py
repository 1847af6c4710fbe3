"""Record batches beside Apache Kafka's own classes: what one builds the other reads, and what its broker
refuses or changes on append is refused or changed alike."""

import random
from collections.abc import Callable

import pytest

from compat.kafka_libs import RunJava
from headrace.records.batch import Batch, batches, stamp_offset_and_epoch
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression, compress
from headrace.records.filter import empty_batch, filter_batch
from headrace.records.reader import Record, read_records
from headrace.records.spans import iter_keys
from headrace.records.validator import RecordsRefused, Validated, validate
from tests.support_records import NOW, RawBatch, Refusal, all_refusals, good, record, rules_for

EPOCH = 7
CODECS = {"none": "0", "gzip": "-1", "snappy": "0", "lz4": "9", "zstd": "3"}
Ask = Callable[[list[str]], list[list[str]]]


@pytest.fixture(scope="module")
def ask(run_java: RunJava) -> Ask:
    """Puts questions to `RecordsOracle.java`, all at once, and hands back each answer's fields."""

    def put(questions: list[str]) -> list[list[str]]:
        done = run_java("RecordsOracle.java", stdin="\n".join(questions) + "\n")
        assert done.returncode == 0, done.stderr
        answers = [line.split("\t") for line in done.stdout.splitlines()]
        assert len(answers) == len(questions)
        return answers

    return put


def append_question(data: bytes, settings: str = "-", version: int = 12, origin: str = "CLIENT") -> str:
    return f"append {version} {settings} {origin} {EPOCH} {NOW} {data.hex() or '-'}"


def ours(
    data: bytes, settings: str = "-", version: int = 12, origin: str = "CLIENT"
) -> Validated | RecordsRefused:
    try:
        return validate(bytearray(data), rules_for(settings, origin), NOW, produce_version=version)
    except RecordsRefused as refusal:
        return refusal


def spelled(records: list[Record]) -> list[str]:
    """Records as the oracle spells them."""

    def optional(field: bytes | None) -> str:
        return "null" if field is None else field.hex() or "empty"

    return [
        " ".join(
            [
                f"{found.offset} {found.timestamp} {optional(found.key)} {optional(found.value)}",
                *(
                    f"{name.encode().hex()}={'null' if value is None else value.hex()}"
                    for name, value in found.headers
                ),
            ]
        )
        for found in records
    ]


def sample_records(seed: int, count: int = 120) -> list[NewRecord]:
    source = random.Random(seed)

    def some_bytes(longest: int) -> bytes | None:
        return None if source.random() < 0.2 else source.randbytes(3) * source.randrange(longest)

    return [
        NewRecord(
            NOW + source.randrange(-500, 500),
            some_bytes(20),
            some_bytes(400),
            [("name", some_bytes(5))] * source.randrange(3) if source.random() < 0.3 else [],
        )
        for _ in range(count)
    ]


def test_java_reads_what_we_build(ask: Ask) -> None:
    built = [
        build_batch(sample_records(seed), compression=codec, base_offset=9000, log_append_time=append_time)
        for seed, codec in enumerate(Compression)
        for append_time in (None, NOW)
    ]
    for data, answer in zip(built, ask([f"read {data.hex()}" for data in built]), strict=True):
        assert answer == ["records", *spelled(list(read_records(Batch(memoryview(data)))))]


def test_java_reads_every_level_that_we_compress_at(ask: Ask) -> None:
    levels = {Compression.GZIP: (1, 9), Compression.LZ4: (1, 12, 17), Compression.ZSTD: (-7, 1, 19, 22)}
    built = [
        build_batch(sample_records(1), compression=codec, level=level)
        for codec, some in levels.items()
        for level in some
    ]
    for data, answer in zip(built, ask([f"read {data.hex()}" for data in built]), strict=True):
        assert answer == ["records", *spelled(list(read_records(Batch(memoryview(data)))))]


def test_we_read_what_java_builds(ask: Ask) -> None:
    questions = [
        f"build {codec} {level} {kind} {NOW} {count} {count}"
        for codec, level in CODECS.items()
        for kind in ("CreateTime", "LogAppendTime")
        for count in (1, 70, 2500)
    ]
    built = [bytes.fromhex(answer[1]) for answer in ask(questions)]
    read = ask([f"read {data.hex()}" for data in built])
    for data, answer in zip(built, read, strict=True):
        (batch,) = batches(data)
        assert batch.crc_is_valid()
        assert answer == ["records", *spelled(list(read_records(batch)))]


def test_plain_batches_are_built_byte_for_byte_as_java_builds_them(ask: Ask) -> None:
    (answer,) = ask([f"build none 0 CreateTime {NOW} 300 5"])
    data = bytes.fromhex(answer[1])
    records = [(r.timestamp, r.key, r.value, r.headers) for r in read_records(Batch(memoryview(data)))]
    assert build_batch(records) == data


def test_the_broker_refuses_what_the_table_says(ask: Ask) -> None:
    """With the same code, and the same errors of single records; where we are stricter, it does not."""
    cases = all_refusals()
    answers = ask([append_question(c.make(), c.settings, c.produce_version, c.origin) for c in cases])
    found = [difference(case, answer) for case, answer in zip(cases, answers, strict=True)]
    assert [message for message in found if message is not None] == []


def difference(case: Refusal, answer: list[str]) -> str | None:
    refusal = ours(case.make(), case.settings, case.produce_version, case.origin)
    if not isinstance(refusal, RecordsRefused) or refusal.code != case.code:
        return f"{case.name}: we say {refusal}"
    theirs = int(answer[1]) if answer[0] == "refused" else None
    if (theirs == case.code) == case.stricter:
        return f"{case.name}: Kafka says {answer}"
    told = [f"{error.batch_index}={error.message}" for error in refusal.record_errors]
    if not case.stricter and (answer[4:] != told or (told and answer[3] != refusal.client_message)):
        return f"{case.name}: Kafka tells {answer[3:]}, we {told}"
    return None


ACCEPTED_SETTINGS = [
    "-",
    "cleanup.policy=compact",
    "message.timestamp.type=LogAppendTime",
    *(f"compression.type={codec}" for codec in ("uncompressed", "gzip", "snappy", "lz4", "zstd")),
    "compression.type=zstd,message.timestamp.type=LogAppendTime",
]


def accepted_batches() -> list[bytes]:
    keyed = [NewRecord(NOW + n // 7, b"key-%d" % n, b"v" * (n % 90)) for n in range(150)]
    return [
        *(build_batch(keyed, compression=codec) for codec in Compression),
        build_batch(keyed, transactional=True, producer_id=5, producer_epoch=1, base_sequence=0),
        good(max_timestamp=NOW + 4000).encode(),
        good(attributes=0x40).encode(),
        good(base_timestamp=-1, max_timestamp=-1).encode(),
        good(base_timestamp=NOW - 10, max_timestamp=5).encode(),
        good(attributes=0x0180, max_timestamp=3).encode(),
        RawBatch([record(0, attributes=9), record(1, timestamp_delta=-5)]).encode(),
        good().encode() + good().encode()[:50],
    ]


@pytest.mark.parametrize("settings", ACCEPTED_SETTINGS)
def test_the_broker_stores_what_we_would_store(ask: Ask, settings: str) -> None:
    """Byte for byte where nothing is compressed anew, record for record where it is."""
    given = accepted_batches()
    for data, answer in zip(given, ask([append_question(data, settings) for data in given]), strict=True):
        validated = ours(data, settings)
        assert isinstance(validated, Validated), (data.hex(), answer)
        assert answer[:3] == ["stored", str(validated.max_timestamp), str(validated.append_time)]
        stamp_offset_and_epoch(validated.buffer, 0, 0, EPOCH)
        stored = bytes.fromhex(answer[3])
        if not validated.rebuilt:
            assert bytes(validated.buffer).hex() == stored.hex()
            continue
        theirs, batch = Batch(memoryview(stored)), Batch(validated.buffer)
        assert batch.crc_is_valid()
        assert (batch.attributes, batch.max_timestamp) == (theirs.attributes, theirs.max_timestamp)
        assert list(read_records(batch)) == list(read_records(theirs))


def mutations(count: int, codec: Compression) -> list[bytes]:
    """Batches with a few bytes of their records changed at random, the checksum right all the same."""
    source = random.Random(20)
    out = []
    for _ in range(count):
        sizes = [source.choice([0, 3, 60, 70])] * source.randrange(1, 20)
        keys = [b"k" * source.randrange(4) for _ in sizes]
        records = [record(n, key=keys[n], value=bytes(size)) for n, size in enumerate(sizes)]
        payload = bytearray(b"".join(records))
        for _ in range(source.randrange(1, 3)):
            at = source.randrange(len(payload))
            payload[at] = source.choice([payload[at] ^ 1 << source.randrange(8), source.randrange(256)])
        attributes = source.choice([0, 0, 0, 0, 8, 0x10, 0x20, 0x40])
        raw = good(len(records), payload=bytes(compress(codec, payload)), attributes=attributes | codec)
        out.append(raw.encode())
    return out


def test_random_damage_is_judged_as_the_broker_judges_it(ask: Ask) -> None:
    """The one difference allowed: offset deltas, which the broker does not look at in plain batches."""
    damaged = mutations(2000, Compression.NONE)
    wrong = []
    for data, answer in zip(damaged, ask([append_question(data) for data in damaged]), strict=True):
        found = ours(data)
        if isinstance(found, Validated):
            same = answer[:2] == ["stored", str(found.max_timestamp)]
        elif answer[0] == "stored":
            deltas = [delta for delta, _, _ in iter_keys(Batch(memoryview(data)))]
            same = deltas != list(range(len(deltas)))
        else:
            same = int(answer[1]) == found.code
        if not same:
            wrong.append((data.hex(), answer, repr(found)))
    assert wrong == []


def test_whatever_damage_the_broker_refuses_in_compressed_records_we_refuse(ask: Ask) -> None:
    """And what it takes, we take, unless it is because it does not look at the records' lengths."""
    damaged = mutations(500, Compression.LZ4)
    for data, answer in zip(damaged, ask([append_question(data) for data in damaged]), strict=True):
        found = ours(data)
        if isinstance(found, Validated):
            assert answer[:2] == ["stored", str(found.max_timestamp)]
        elif answer[0] == "stored":
            assert "Invalid record size" in found.message, data.hex()


def test_filtering_gives_the_bytes_that_compaction_writes(ask: Ask) -> None:
    source = random.Random(3)
    cases = []
    for seed in range(30):
        data = build_batch(
            sample_records(seed, 40),
            base_offset=100,
            log_append_time=NOW if seed % 3 == 0 else None,
            leader_epoch=2,
            producer_id=5 if seed % 2 else -1,
            producer_epoch=1,
            base_sequence=9,
        )
        cases.append((data, {delta for delta in range(40) if source.random() < 0.3 * (seed % 4)}))
    retention = 86_400_000
    questions = [
        f"filter {NOW} {retention} {','.join(str(100 + delta) for delta in kept) or '-'} {data.hex()}"
        for data, kept in cases
    ]
    for (data, kept), answer in zip(cases, ask(questions), strict=True):
        batch = Batch(memoryview(data))
        tombstones = any(delta in kept and not has_value for delta, _, has_value in iter_keys(batch))
        horizon = NOW + retention if tombstones else None
        filtered = filter_batch(batch, kept.__contains__, delete_horizon_ms=horizon)
        assert (filtered or empty_batch(batch)).hex() == answer[1]
