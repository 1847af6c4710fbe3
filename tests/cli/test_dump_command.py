"""The command line of `headrace log dump`: options, mistakes, damage, and the exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path
from struct import pack

import pytest
from typer.testing import CliRunner, Result

from headrace.cli.app import app
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression

NAME = "00000000000000000000"


def dump(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, ["log", "dump", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def batch(offset: int, *values: bytes, compression: Compression = Compression.NONE) -> bytes:
    records = [NewRecord(1000 + offset + i, b"k", value) for i, value in enumerate(values)]
    return build_batch(records, base_offset=offset, compression=compression, leader_epoch=0)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / f"{NAME}.log"
    file.write_bytes(batch(0, b"a", b"b") + batch(2, b"c", compression=Compression.ZSTD))
    return file


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = dump(tmp_path / f"{NAME}.log")
    assert result.exit_code == 1
    assert f"error: {tmp_path}/{NAME}.log: no such file" in result.stderr


def test_a_directory_is_told_apart_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.log").mkdir()
    result = dump(tmp_path / f"{NAME}.log", tmp_path / "a.log")
    assert result.exit_code == 1
    (tmp_path / f"{NAME}.log").mkdir()
    assert "is a directory" in dump(tmp_path / f"{NAME}.log").stderr


def test_an_unknown_file_is_passed_over_and_the_next_one_dumped(tmp_path: Path, log: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("hello")
    result = dump(other, log)
    assert result.exit_code == 1
    assert f"Ignoring unknown file {other}" in result.stderr
    assert "baseOffset: 2" in result.stdout


def test_a_name_without_an_offset_is_explained(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(b"")
    result = dump(tmp_path / "x.log")
    assert result.exit_code == 1
    assert "starts with its offset" in result.stderr


def test_no_file_at_all_is_a_usage_error() -> None:
    result = dump("--records")
    assert result.exit_code == 2
    assert "at least one file" in result.stderr


def test_two_kinds_of_records_exclude_each_other(log: Path) -> None:
    result = dump("--offsets", "--cluster-metadata", log)
    assert result.exit_code == 2
    assert "exclude each other" in result.stderr


def test_a_java_decoder_is_refused_with_what_to_do_instead(log: Path) -> None:
    result = dump("--value-decoder-class", "com.example.AvroDecoder", log)
    assert result.exit_code == 2
    assert "no Java classes" in " ".join(result.stderr.replace("│", " ").split())


def test_numbers_can_be_read_as_numbers(tmp_path: Path) -> None:
    file = tmp_path / f"{NAME}.log"
    file.write_bytes(build_batch([NewRecord(1, pack(">i", -7), pack(">q", 2**40))]))
    result = dump("--key-decoder-class", "integer", "--value-decoder-class", "long", file)
    assert f"key: -7 payload: {2**40}" in result.stdout


def test_a_key_too_short_for_a_number_ends_the_dump_with_its_place(log: Path) -> None:
    result = dump("--key-decoder-class", "integer", log)
    assert result.exit_code == 1
    assert f"error: {log}: batch at position 0: a key or value of 1 bytes is no integer" in result.stderr


def test_files_may_be_separated_by_commas_and_both_ways_mix(tmp_path: Path, log: Path) -> None:
    second = tmp_path / "00000000000000000003.log"
    second.write_bytes(batch(3, b"d"))
    result = dump(log, "--files", f"{second},{log}")
    dumped = [line for line in result.stdout.splitlines() if line.startswith("Dumping")]
    assert dumped == [f"Dumping {log}", f"Dumping {second}", f"Dumping {log}"]


def test_relative_paths_are_printed_as_given(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(log.parent.parent)
    given = f"{log.parent.name}//{log.name}"
    assert f"Dumping {log.parent.name}/{log.name}\n" in dump(given).stdout


def test_a_wrong_checksum_is_shown_passed_over_and_told_by_the_exit_code(log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    result = dump(log)
    assert result.exit_code == 1
    assert "isvalid: false" in result.stdout
    assert "baseOffset: 2" in result.stdout
    assert f"error: {log}: batch at position 0, offset 0: wrong checksum" in result.stderr


def test_bytes_after_the_last_batch_are_told(log: Path) -> None:
    size = log.stat().st_size
    log.write_bytes(log.read_bytes() + batch(3, b"torn")[:40])
    result = dump(log)
    assert result.exit_code == 1
    assert f"Found 40 invalid bytes at the end of {log.name}" in result.stdout
    assert f"40 bytes after the last whole batch, at {size}" in result.stderr


def test_a_size_that_cannot_be_ends_the_dump_with_its_place(log: Path) -> None:
    size = log.stat().st_size
    log.write_bytes(log.read_bytes() + bytes(100))
    result = dump(log)
    assert result.exit_code == 1
    assert "baseOffset: 2" in result.stdout
    assert f"error: {log}: position {size}: Found record size 0" in result.stderr


def test_records_that_do_not_parse_end_the_dump_with_their_place(log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[61] = 0xFE
    log.write_bytes(data)
    result = dump("--records", log)
    assert result.exit_code == 1
    assert f"error: {log}: batch at position 0: " in result.stderr


def test_no_file_is_ever_changed(log: Path) -> None:
    index = log.with_suffix(".index")
    index.write_bytes(pack(">ii", 1, 0) + b"torn")
    before = {file.name: file.read_bytes() for file in log.parent.iterdir()}
    dump("--records", log, index)
    dump("--index-sanity-check", index)
    assert {file.name: file.read_bytes() for file in log.parent.iterdir()} == before


def test_an_index_is_checked_against_its_log(log: Path) -> None:
    index = log.with_suffix(".index")
    index.write_bytes(pack(">iiii", 1, 0, 7, len(batch(0, b"a", b"b"))))
    result = dump("--verify-index-only", index)
    assert result.exit_code == 1
    assert result.stdout == f"Dumping {index}\n"
    assert result.stderr == f"Mismatches in :{index}\n  Index offset: 7, log offset: 2\n"


def test_an_index_that_points_outside_of_the_log_is_refused(log: Path) -> None:
    index = log.with_suffix(".index")
    index.write_bytes(pack(">ii", 1, 4000))
    result = dump(index)
    assert result.exit_code == 1
    assert "outside of the log" in result.stderr


def test_an_insane_index_is_refused(log: Path) -> None:
    index = log.with_suffix(".index")
    index.write_bytes(pack(">ii", 1, 0) + b"\0")
    result = dump("--index-sanity-check", index)
    assert result.exit_code == 1
    assert "not a multiple of 8" in result.stderr


def test_a_corrupt_producer_snapshot_is_told_and_the_next_file_dumped(tmp_path: Path, log: Path) -> None:
    snapshot = tmp_path / f"{NAME}.snapshot"
    snapshot.write_bytes(b"\x00\x01\x00\x00\x00\x07\x00\x00\x00\x00")
    result = dump(snapshot, log)
    assert result.exit_code == 1
    assert f"error: {snapshot}: has the checksum 7" in result.stderr
    assert "baseOffset: 2" in result.stdout


def test_checkpoint_files_are_understood(tmp_path: Path) -> None:
    epochs = tmp_path / "leader-epoch-checkpoint"
    epochs.write_text("0\n2\n0 0\n3 17\n")
    offsets = tmp_path / "replication-offset-checkpoint"
    offsets.write_text("0\n1\nmy-topic 4 99\n")
    result = dump(epochs, offsets)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"Dumping {epochs}",
        "epoch: 0 startOffset: 0",
        "epoch: 3 startOffset: 17",
        f"Dumping {offsets}",
        "topic: my-topic partition: 4 offset: 99",
    ]


@pytest.mark.parametrize("content", ["x\n", "0\n2\n0 0\n", "1\n0\n", "0\n1\nzero 0\n", "0\n1\n1\n"])
def test_a_bad_checkpoint_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "leader-epoch-checkpoint"
    file.write_text(content)
    result = dump(file)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {file}: ")


def test_json_tells_batches_and_records_one_object_per_line(log: Path) -> None:
    lines = [json.loads(line) for line in dump("--records", "--format", "json", log).stdout.splitlines()]
    assert [line["kind"] for line in lines] == ["file", "log", "batch", "record", "record", "batch", "record"]
    assert lines[5]["compression"] == "zstd"
    assert lines[5]["valid"] is True
    assert (lines[6]["offset"], lines[6]["key"], lines[6]["value"]) == (2, "k", "c")


def test_json_shows_bytes_that_are_no_text_in_base64(tmp_path: Path) -> None:
    file = tmp_path / f"{NAME}.log"
    file.write_bytes(
        build_batch([NewRecord(1, None, b"\xff\x00", [("h", b"\xfe"), ("t", b"text"), ("n", None)])])
    )
    record = json.loads(dump("--records", "--format", "json", file).stdout.splitlines()[-1])
    assert record["key"] is None
    assert record["valueBase64"] == "/wA="
    assert record["headers"] == [
        {"name": "h", "valueBase64": "/g=="},
        {"name": "t", "value": "text"},
        {"name": "n", "value": None},
    ]


def test_json_has_findings_among_its_lines(log: Path) -> None:
    log.write_bytes(batch(5, b"x") + b"rest")
    result = dump("--deep-iteration", "--format", "json", log)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    findings = {line["finding"]: line for line in found if line["kind"] == "finding"}
    assert result.exit_code == 1
    assert findings["offsetGap"] == {
        "kind": "finding",
        "finding": "offsetGap",
        "file": str(log),
        "offset": -1,
        "nextOffset": 5,
    }
    assert "4 bytes after the last whole batch" in findings["broken"]["message"]


def test_a_reader_that_has_seen_enough_ends_the_dump_quietly(tmp_path: Path) -> None:
    file = tmp_path / f"{NAME}.log"
    file.write_bytes(b"".join(batch(offset, b"v" * 100) for offset in range(5000)))
    command = [sys.executable, "-m", "headrace", "log", "dump", "--records", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait()
    assert process.returncode == 1


def test_output_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    file = tmp_path / f"{NAME}.log"
    file.write_bytes(batch(0, "größer".encode()))
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "headrace", "log", "dump", "--records", str(file)]
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert "payload: größer".encode() in done.stdout
