"""`headrace log dump` beside Kafka's own dump tool: line for line the same, on everything a broker leaves."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from struct import Struct, pack

import pytest

from compat.kafka_libs import RunJava
from tests.support_cli import (
    CLEAN,
    KILLED,
    LOG_OPTIONS,
    Printed,
    dumpable_files,
    headrace_dump,
    kafka_lines_of_errors,
    option_sets,
    unpack_fixture,
    without_root,
)
from tests.support_dump_records import (
    KeyAndValue,
    control_log,
    data_log,
    group_values,
    metadata_values,
    remote_log_values,
    share_values,
    transaction_values,
)

Runs = list[list[str]]
LOG_NAME = "00000000000000000000.log"
RandomValues = Callable[[Random], Iterator[KeyAndValue]]
KafkaDump = Callable[[Runs, Path], list[Printed]]


@pytest.fixture(scope="session")
def kafka_dump(run_java: RunJava) -> KafkaDump:
    """Runs Kafka's tool on many sets of arguments in one JVM."""

    def dump(runs: Runs, root: Path) -> list[Printed]:
        done = run_java("DumpRuns.java", stdin="".join("\t".join(run) + "\n" for run in runs))
        assert done.returncode == 0, done.stderr
        return [_printed(json.loads(line), root) for line in done.stdout.split("\n") if line]

    return dump


def _printed(answer: dict[str, str], root: Path) -> Printed:
    out, err = without_root(answer["out"], root), without_root(answer["err"], root)
    return Printed(out, err, answer["failure"] is not None)


def _assert_same(runs: Runs, root: Path, kafka_dump: KafkaDump) -> None:
    expected = kafka_dump(runs, root)
    assert len(expected) == len(runs)
    for run, kafka in zip(runs, expected, strict=True):
        ours = headrace_dump(run, root)
        assert ours.out.split("\n") == kafka.out.split("\n"), run
        assert kafka_lines_of_errors(ours) == kafka.err.splitlines(), run
        # Headrace also reports by its exit code what Kafka's tool mentions in passing.
        assert ours.failed or not kafka.failed, run


@pytest.mark.parametrize("fixture", [CLEAN, KILLED])
def test_every_file_of_a_log_directory_is_dumped_as_kafka_does(
    fixture: str, tmp_path: Path, kafka_dump: KafkaDump
) -> None:
    root = unpack_fixture(fixture, tmp_path)
    runs = [
        [*options, "--files", str(path)] for path in dumpable_files(root) for options in option_sets(path)
    ]
    assert len(runs) > 150
    _assert_same(runs, root, kafka_dump)


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--cluster-metadata-decoder", metadata_values),
        ("--remote-log-metadata-decoder", remote_log_values),
        ("--offsets-decoder", group_values),
        ("--transaction-log-decoder", transaction_values),
        ("--share-group-state-decoder", share_values),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_every_record_type_and_version_is_shown_as_kafka_shows_it(
    option: str, values: RandomValues, seed: int, tmp_path: Path, kafka_dump: KafkaDump
) -> None:
    log = tmp_path / LOG_NAME
    log.write_bytes(data_log(values(Random(seed))))
    _assert_same([[option, "--files", str(log)]], tmp_path, kafka_dump)


def test_every_control_record_is_shown_as_kafka_shows_it(tmp_path: Path, kafka_dump: KafkaDump) -> None:
    log = tmp_path / LOG_NAME
    log.write_bytes(b"".join(control_log(Random(seed)) for seed in range(5)))
    _assert_same(
        [[option, "--files", str(log)] for option in ("--deep-iteration", "--print-data-log")],
        tmp_path,
        kafka_dump,
    )


def test_text_that_is_no_utf8_is_replaced_as_java_replaces_it(tmp_path: Path, kafka_dump: KafkaDump) -> None:
    rng = Random(0)
    pieces = [bytes([byte]) for byte in range(256)] + [
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xe2\x82",
        b"\xf0\x9f\x8e",
    ]
    texts = [b"".join(rng.choices(pieces, k=rng.randint(1, 6))) for _ in range(3000)]
    printable = [text for text in texts if not {10, 13} & set(text)]
    log = tmp_path / LOG_NAME
    log.write_bytes(data_log((text, b"a" + text) for text in printable))
    _assert_same([["--print-data-log", "--files", str(log)]], tmp_path, kafka_dump)


def test_messages_of_formats_v0_and_v1_are_shown_as_kafka_shows_them(
    tmp_path: Path, kafka_dump: KafkaDump, run_java: RunJava
) -> None:
    log = tmp_path / LOG_NAME
    written = run_java("DumpLegacyLog.java", str(log))
    assert written.returncode == 0, written.stderr
    _assert_same([[*options, "--files", str(log)] for options in LOG_OPTIONS], tmp_path, kafka_dump)


def test_integer_and_long_decoders_are_kafkas(tmp_path: Path, kafka_dump: KafkaDump) -> None:
    log = tmp_path / LOG_NAME
    log.write_bytes(
        data_log((pack(">i", number), pack(">q", number * 3_000_000_000)) for number in range(-5, 5))
    )
    decoders = ["--key-decoder-class", "org.apache.kafka.tools.api.IntegerDecoder"]
    decoders += ["--value-decoder-class", "org.apache.kafka.tools.api.LongDecoder"]
    _assert_same([[*decoders, "--files", str(log)]], tmp_path, kafka_dump)


def _damaged_copies(root: Path, target: Path, count: int) -> Runs:
    """Copies of small logs with a byte changed here, the end cut off there."""
    rng = Random(7)
    logs = [
        path for path in dumpable_files(root) if path.suffix == ".log" and 0 < path.stat().st_size < 20_000
    ]
    runs = []
    for number in range(count):
        source = rng.choice(logs)
        data = bytearray(source.read_bytes())
        if number % 4 == 0:
            del data[rng.randrange(len(data)) :]
        else:
            data[rng.randrange(len(data))] = rng.randrange(256)
        log = target / str(number) / source.name
        log.parent.mkdir()
        log.write_bytes(data)
        runs.append([*rng.choice(LOG_OPTIONS), "--files", str(log)])
    return runs


def test_damaged_logs_are_shown_as_far_as_kafka_shows_them(tmp_path: Path, kafka_dump: KafkaDump) -> None:
    target = tmp_path / "damaged"
    target.mkdir()
    runs = _damaged_copies(unpack_fixture(CLEAN, tmp_path / "clean"), target, 200)
    expected = kafka_dump(runs, target)
    assert any(kafka.failed for kafka in expected)
    for run, kafka in zip(runs, expected, strict=True):
        ours = headrace_dump(run, target)
        assert ours.failed or not kafka.failed, run
        if not kafka.failed:
            assert ours.out.split("\n") == kafka.out.split("\n"), run
        else:
            # Kafka's tool may stop within a line, or one record earlier than the file can be read.
            whole_lines = kafka.out.split("\n")[:-1]
            assert ours.out.split("\n")[: len(whole_lines)] == whole_lines, run
            assert len(ours.out.split("\n")) <= len(whole_lines) + 2, run


def test_what_is_found_amiss_in_indexes_is_told_in_kafkas_words(
    tmp_path: Path, kafka_dump: KafkaDump
) -> None:
    partition = unpack_fixture(CLEAN, tmp_path) / "rolled-0"
    offset_index, time_index = (partition / f"00000000000000000000.{kind}" for kind in ("index", "timeindex"))
    _change_entry(offset_index, ">ii", 2, lambda offset, position: (offset + 1, position))
    _change_entry(time_index, ">qi", 2, lambda timestamp, offset: (timestamp + 1, offset))
    _change_entry(time_index, ">qi", 4, lambda timestamp, offset: (timestamp - 1000, offset))
    _change_entry(time_index, ">qi", 6, lambda timestamp, offset: (timestamp, offset + 1))
    files = (offset_index, time_index)
    runs = [[*how, "--files", str(file)] for file in files for how in ((), ("--verify-index-only",))]
    _assert_same(runs, tmp_path, kafka_dump)
    told = "".join(headrace_dump(run, tmp_path).err for run in runs)
    assert "Mismatches in :" in told
    assert "Found timestamp mismatch in :" in told
    assert "Found out of order timestamp in :" in told
    assert "The following indexed offsets are not found in :" in told


def _change_entry(
    file: Path, layout: str, number: int, change: Callable[[int, int], tuple[int, int]]
) -> None:
    entry = Struct(layout)
    data = bytearray(file.read_bytes())
    entry.pack_into(data, number * entry.size, *change(*entry.unpack_from(data, number * entry.size)))
    file.write_bytes(data)
