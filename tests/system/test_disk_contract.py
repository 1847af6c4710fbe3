"""What every disk promises, the real one and the one in memory alike."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.ports import Disk, File
from headrace.system.disk import RealDisk
from headrace.testing.memory_disk import MemoryDisk


@pytest.fixture(params=["real", "real-with-one-descriptor", "memory"])
def disk(request: pytest.FixtureRequest) -> Iterator[Disk]:
    if request.param == "memory":
        yield MemoryDisk()
        return
    real = RealDisk(descriptor_limit=1 if "one" in request.param else None)
    yield real
    real.close()


@pytest.fixture
def directory(disk: Disk, tmp_path: Path) -> str:
    path = str(tmp_path / "logs")
    disk.make_directory(path)
    return path


@pytest.fixture
def file(disk: Disk, directory: str) -> File:
    return disk.open(f"{directory}/a", create=True)


def test_a_missing_file_is_not_opened_unless_it_is_to_be_created(disk: Disk, directory: str) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open(f"{directory}/missing")
    assert disk.open(f"{directory}/missing", create=True).size == 0
    assert disk.exists(f"{directory}/missing")


def test_creating_keeps_what_is_there(disk: Disk, directory: str, file: File) -> None:
    file.append(b"kept")
    again = disk.open(file.path, create=True)
    assert again.size == 4
    assert again.read_at(0, 10) == b"kept"


def test_appends_follow_one_another(file: File) -> None:
    file.append(b"one")
    file.append(memoryview(b"two"))
    file.append(bytearray(b"three"))
    file.append(b"")
    assert file.size == 11
    assert file.read_at(0, 100) == b"onetwothree"


def test_two_files_do_not_mix(disk: Disk, directory: str, file: File) -> None:
    other = disk.open(f"{directory}/b", create=True)
    for _ in range(3):
        file.append(b"a")
        other.append(b"b")
    assert (file.read_at(0, 9), other.read_at(0, 9)) == (b"aaa", b"bbb")


def test_write_at_replaces_and_grows_with_zeros(file: File) -> None:
    file.append(b"abcdef")
    file.write_at(2, b"XY")
    assert file.read_at(0, 6) == b"abXYef"
    file.write_at(8, b"Z")
    assert file.size == 9
    assert file.read_at(0, 9) == b"abXYef\0\0Z"
    file.append(b"!")
    assert file.read_at(8, 2) == b"Z!"


def test_reads_are_short_only_at_the_end(file: File) -> None:
    file.append(b"0123456789")
    assert file.read_at(3, 4) == b"3456"
    assert file.read_at(8, 4) == b"89"
    assert file.read_at(10, 4) == b""
    assert file.read_at(99, 4) == b""


def test_read_into_fills_the_buffer(file: File) -> None:
    file.append(b"0123456789")
    buffer = bytearray(b"________")
    assert file.read_into(1, buffer) == 8
    assert buffer == b"12345678"
    assert file.read_into(7, memoryview(buffer)[2:]) == 3
    assert buffer == b"12789678"


def test_truncate_cuts_and_grows(file: File) -> None:
    file.append(b"0123456789")
    file.truncate(4)
    assert (file.size, file.read_at(0, 99)) == (4, b"0123")
    file.truncate(6)
    assert (file.size, file.read_at(0, 99)) == (6, b"0123\0\0")
    file.append(b"x")
    assert file.read_at(0, 99) == b"0123\0\0x"


def test_a_closed_file_reopens_on_use(file: File) -> None:
    file.append(b"before")
    file.close()
    file.close()
    file.append(b" after")
    file.close()
    assert file.read_at(0, 99) == b"before after"


def test_rename_takes_the_file_along_and_replaces(disk: Disk, directory: str, file: File) -> None:
    file.append(b"content")
    disk.open(f"{directory}/b", create=True).append(b"replaced")
    file.rename(f"{directory}/b")
    file.append(b"!")
    assert file.path == f"{directory}/b"
    assert disk.list_directory(directory) == ["b"]
    assert disk.read(f"{directory}/b") == b"content!"


def test_rename_of_a_closed_file(disk: Disk, directory: str, file: File) -> None:
    file.append(b"content")
    file.close()
    file.rename(f"{directory}/b")
    assert file.read_at(0, 99) == b"content"


def test_sync_is_fine_open_or_closed(file: File) -> None:
    file.append(b"x")
    file.sync()
    file.close()
    file.sync()
    assert file.read_at(0, 1) == b"x"


def test_a_pinned_descriptor_outlives_what_happens_to_the_file(disk: Disk, file: File) -> None:
    file.append(b"as it was")
    with file.pin() as fd:
        file.truncate(3)
        file.append(b"foreign bytes")
        file.close()
        disk.remove(file.path)
        assert os.pread(fd, 9, 0) == b"as it was"


def test_a_truncation_under_a_pin_keeps_the_rest_of_the_file_in_order(disk: Disk, file: File) -> None:
    file.append(b"as it was")
    with file.pin() as first:
        file.truncate(6)
        file.append(b"is")
        with file.pin() as second:
            file.truncate(2)
            assert os.pread(second, 99, 0) == b"as it is"
            assert os.pread(first, 99, 0) == b"as it was"
    file.append(b"!")
    assert file.read_at(0, 99) == disk.read(file.path) == b"as!"
    assert disk.list_directory(os.path.dirname(file.path)) == ["a"]


def test_a_pin_is_given_up_when_left(disk: Disk, file: File) -> None:
    file.append(b"x")
    with file.pin() as fd:
        pass
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_replace_puts_all_of_it_there(disk: Disk, directory: str) -> None:
    path = f"{directory}/checkpoint"
    disk.replace(path, b"a longer first version")
    disk.replace(path, memoryview(b"second"))
    assert disk.read(path) == b"second"
    assert disk.size(path) == 6
    assert disk.list_directory(directory) == ["checkpoint"]


def test_directories_nest_list_rename_and_go(disk: Disk, directory: str) -> None:
    deep = f"{directory}/topic-0/inner"
    disk.make_directory(deep)
    disk.make_directory(deep)
    disk.open(f"{deep}/file", create=True).append(b"x")
    disk.open(f"{directory}/z", create=True)
    assert disk.list_directory(directory) == ["topic-0", "z"]
    assert disk.is_directory(deep)
    assert not disk.is_directory(f"{deep}/file")
    disk.rename(f"{directory}/topic-0", f"{directory}/topic-0.gone")
    assert disk.read(f"{directory}/topic-0.gone/inner/file") == b"x"
    assert not disk.exists(deep)
    disk.sync_directory(directory)
    disk.remove_tree(f"{directory}/topic-0.gone")
    assert disk.list_directory(directory) == ["z"]


def test_missing_things_are_file_not_found(disk: Disk, directory: str) -> None:
    missing = f"{directory}/missing"
    for call in (disk.remove, disk.size, disk.read, disk.modified_ms, disk.list_directory, disk.remove_tree):
        with pytest.raises(FileNotFoundError):
            call(missing)
    with pytest.raises(FileNotFoundError):
        disk.rename(missing, f"{directory}/other")
    with pytest.raises(FileNotFoundError):
        disk.open(f"{missing}/in/it", create=True)
    assert not disk.exists(missing)


def test_removed_files_are_gone(disk: Disk, file: File) -> None:
    disk.remove(file.path)
    assert not disk.exists(file.path)
    with pytest.raises(FileNotFoundError):
        disk.remove(file.path)


def test_there_is_room_and_a_time_of_writing(disk: Disk, directory: str, file: File) -> None:
    file.append(b"x")
    assert disk.free_bytes(directory) > 0
    assert disk.modified_ms(file.path) > 1_600_000_000_000


def test_off_loop_hands_back_result_and_error(disk: Disk, file: File) -> None:
    async def run() -> bytes:
        file.append(b"abc")
        await disk.off_loop(file.sync)
        with pytest.raises(FileNotFoundError):
            await disk.off_loop(lambda: disk.remove(file.path + ".missing"))
        return await disk.off_loop(lambda: disk.read(file.path))

    assert asyncio.run(run()) == b"abc"


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 3), st.binary(max_size=40)),
            st.tuples(st.just("write"), st.integers(0, 60), st.binary(max_size=20)),
            st.tuples(st.just("truncate"), st.integers(0, 80), st.just(b"")),
            st.tuples(st.just("close"), st.just(0), st.just(b"")),
        ),
        max_size=30,
    )
)
def test_both_disks_and_a_bytearray_agree(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, bytes]]
) -> None:
    directory = str(tmp_path_factory.mktemp("agree"))
    real, memory = RealDisk(), MemoryDisk()
    memory.make_directory(directory)
    files: list[File] = [each.open(f"{directory}/f", create=True) for each in (real, memory)]
    model = bytearray()
    for kind, number, data in steps:
        for file in files:
            _step(file, kind, number, data)
        _model_step(model, kind, number, data)
        assert [file.size for file in files] == [len(model)] * 2
    assert [file.read_at(0, 10_000) for file in files] == [model] * 2
    real.close()


def _step(file: File, kind: str, number: int, data: bytes) -> None:
    if kind == "append":
        file.append(data)
    elif kind == "write":
        file.write_at(number, data)
    elif kind == "truncate":
        file.truncate(number)
    else:
        file.close()


def _model_step(model: bytearray, kind: str, number: int, data: bytes) -> None:
    if kind == "append":
        model += data
    elif kind == "write" and data:
        model.extend(bytes(max(0, number - len(model))))
        model[number : number + len(data)] = data
    elif kind == "truncate":
        del model[number:]
        model.extend(bytes(number - len(model)))
