"""The quick scan vouches for exactly those records that the thorough parse finds sound and in order."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.errors import KafkaError
from headrace.records.batch import Batch
from headrace.records.builder import NewRecord, build_batch
from headrace.records.inspection import parse_records
from headrace.records.scan import scan
from headrace.records.shapes import ShapeMemory
from tests.support_records import RawBatch, record

Range = tuple[int, int]


def thorough(data: bytes, count: int, *, keys_required: bool) -> Range | None:
    """What `scan` should say, by the plainest means."""
    batch = Batch(memoryview(RawBatch(count=count, last_offset_delta=0, payload=data).encode()))
    try:
        parsed = list(parse_records(data, batch, compressed=False))
    except KafkaError:
        return None
    if any(item.offset_delta != index for index, item in enumerate(parsed)):
        return None
    if keys_required and any(item.key_size < 0 for item in parsed):
        return None
    deltas = [item.timestamp_delta for item in parsed]
    return min(deltas), max(deltas)


def payload(records: list[NewRecord]) -> bytes:
    return build_batch(records)[61:]


SIZES = st.sampled_from([0, 1, 5, 20, 55, 56, 57, 58, 62, 63, 64, 100, 127, 128, 129, 300, 8185, 8192, 9000])
COUNTS = st.sampled_from([1, 2, 11, 12, 13, 30, 63, 64, 65, 66, 100, 140])
STEPS = st.sampled_from([0, 0, 0, 1, 3, 64, 700, 9000, -1, -70, 2**40])
OPTIONAL_SIZES = st.none() | SIZES
HEADERS = st.lists(st.tuples(st.sampled_from(["", "h", "header"]), st.none() | st.just(b"abc")), max_size=2)


@st.composite
def batches_of_records(draw: st.DrawFn) -> list[NewRecord]:
    """Stretches of equal records and of mixed ones, in any order."""
    records: list[NewRecord] = []
    timestamp = 10**12
    for _ in range(draw(st.integers(1, 3))):
        count, step = draw(COUNTS), draw(STEPS)
        if draw(st.booleans()):
            key, value, headers = draw(OPTIONAL_SIZES), draw(OPTIONAL_SIZES), draw(HEADERS)
            shapes = [(key, value, headers)] * count
        else:
            mixed = draw(st.lists(st.tuples(OPTIONAL_SIZES, OPTIONAL_SIZES, HEADERS), min_size=1, max_size=6))
            shapes = [mixed[n * 7 % len(mixed)] for n in range(min(count, 30))]
        for key, value, headers in shapes:
            timestamp += step
            records.append(NewRecord(timestamp, filled(key), filled(value), headers))
    return records


def filled(size: int | None) -> bytes | None:
    return None if size is None else b"\x96" * size


@settings(max_examples=250)
@given(batches_of_records(), st.booleans())
def test_sound_records_are_recognised(records: list[NewRecord], keys_required: bool) -> None:
    data = payload(records)
    deltas = [item.timestamp - records[0].timestamp for item in records]
    keyless = any(item.key is None for item in records)
    found = scan(data, len(records), keys_required=keys_required)
    assert found == (None if keyless and keys_required else (min(deltas), max(deltas)))


MUTATIONS = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from(["set", "bit", "insert", "delete", "increment"]),
        st.integers(0, 255),
    ),
    min_size=1,
    max_size=3,
)


def mutated(data: bytes, mutations: list[tuple[float, str, int]]) -> bytes:
    out = bytearray(data)
    for place, kind, byte in mutations:
        at = int(place * len(out))
        if kind == "set" and out:
            out[at] = byte
        elif kind == "bit" and out:
            out[at] ^= 1 << byte % 8
        elif kind == "insert":
            out.insert(at, byte)
        elif kind == "delete" and out:
            del out[at]
        elif out:
            out[at] = (out[at] + 2) % 256
    return bytes(out)


@settings(max_examples=1200)
@given(batches_of_records(), MUTATIONS, st.integers(-1, 1), st.booleans())
@example([NewRecord(10**12, None, b"")] * 30, [(0.5, "increment", 0)], 0, False)
def test_damaged_records_are_judged_as_the_thorough_parse_judges_them(
    records: list[NewRecord], mutations: list[tuple[float, str, int]], miscount: int, keys_required: bool
) -> None:
    data = mutated(payload(records), mutations)
    count = max(1, len(records) + miscount)
    assert scan(data, count, keys_required=keys_required) == thorough(
        data, count, keys_required=keys_required
    )


@settings(max_examples=600)
@given(st.integers(1, 150), st.sampled_from([0, 10, 60, 100, 200]), MUTATIONS, st.booleans())
def test_damage_in_regular_batches_is_judged_alike(
    count: int, size: int, mutations: list[tuple[float, str, int]], keyed: bool
) -> None:
    """Small contents, so that most mutations hit the structure."""
    records = [NewRecord(10**12 + n // 9, b"key" if keyed else None, b"\x00" * size) for n in range(count)]
    data = mutated(payload(records), mutations)
    assert scan(data, count, keys_required=keyed) == thorough(data, count, keys_required=keyed)


@settings(max_examples=300)
@given(st.lists(st.sampled_from([0, 1, 5, 40, 64, 90]), min_size=1, max_size=80), st.data())
def test_one_wrong_record_among_many_is_noticed(sizes: list[int], data: st.DataObject) -> None:
    records = [record(n, key=None, value=bytes(size)) for n, size in enumerate(sizes)]
    at = data.draw(st.integers(0, len(records) - 1))
    wrong = data.draw(
        st.sampled_from(
            [
                record(at + 1, key=None, value=bytes(sizes[at])),
                record(at, key=None, value=bytes(sizes[at]), length=sizes[at]),
                record(at, key=None, value=bytes(sizes[at]))[:-1] + b"\x02",
                record(at, key=None, value=bytes(sizes[at]))[:-1],
            ]
        )
    )
    joined = b"".join([*records[:at], wrong, *records[at + 1 :]])
    expected = thorough(joined, len(records), keys_required=False)
    assert scan(joined, len(records), keys_required=False) == expected


def test_padded_varints_are_fine_where_kafka_takes_them() -> None:
    body = b"\x00" + b"\x80\x00" + b"\x80\x00" + b"\x86\x80\x00key" + b"\x80\x00" + b"\x80\x00"
    data = bytes([len(body) << 1 | 0x80, 0]) + body
    assert thorough(data, 1, keys_required=True) == (0, 0)
    assert scan(data, 1, keys_required=True) == (0, 0)


def test_batches_beyond_two_byte_offsets_are_recognised() -> None:
    for sizes in ([30], [30, 31], [70, 200, 90]):
        records = [NewRecord(10**12 + n // 999, None, bytes(sizes[n % len(sizes)])) for n in range(17_000)]
        data = payload(records)
        assert scan(data, 17_000, keys_required=False) == (0, 17)
        broken = bytearray(data)
        broken[len(data) // 3 * 2] ^= 0x40
        assert scan(bytes(broken), 17_000, keys_required=False) == thorough(
            bytes(broken), 17_000, keys_required=False
        )


@settings(max_examples=300)
@given(batches_of_records(), batches_of_records(), st.integers(0, 2**32), st.booleans())
def test_what_is_remembered_of_other_batches_changes_no_verdict(
    before: list[NewRecord], records: list[NewRecord], seed: int, keyed: bool
) -> None:
    memory = ShapeMemory()
    for earlier in (before, records):
        scan(payload(earlier), len(earlier), keys_required=keyed, memory=memory)
    data = bytearray(payload(records))
    for broken in (False, True):
        if broken:
            data[seed % len(data)] ^= 1 << seed % 8
        expected = thorough(bytes(data), len(records), keys_required=keyed)
        assert scan(bytes(data), len(records), keys_required=keyed, memory=memory) == expected
