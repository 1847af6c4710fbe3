"""What only the real disk has to get right: descriptors, threads, short writes."""

import asyncio
import errno
import os
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from headrace.system import disk as disk_module
from headrace.system.clock import SystemClock
from headrace.system.disk import RealDisk, RealFile, default_descriptor_limit
from headrace.system.entropy import SystemEntropy


def open_files(disk: RealDisk, directory: Path, count: int) -> list[RealFile]:
    return [disk.open(str(directory / f"file-{number}"), create=True) for number in range(count)]


def test_opening_a_file_takes_no_descriptor(tmp_path: Path) -> None:
    disk = RealDisk()
    before = len(os.listdir("/proc/self/fd"))
    files = open_files(disk, tmp_path, 50)
    assert len(os.listdir("/proc/self/fd")) == before
    assert disk.open_descriptors == 0
    assert [file.size for file in files] == [0] * 50


def test_no_more_descriptors_than_allowed_are_open(tmp_path: Path) -> None:
    disk = RealDisk(descriptor_limit=4)
    before = len(os.listdir("/proc/self/fd"))
    files = open_files(disk, tmp_path, 30)
    for turn in range(5):
        for number, file in enumerate(files):
            file.append(b"%d:%d " % (turn, number))
            assert disk.open_descriptors <= 4
    assert len(os.listdir("/proc/self/fd")) <= before + 4
    for number, file in enumerate(files):
        assert file.read_at(0, 999) == b"".join(b"%d:%d " % (turn, number) for turn in range(5))
    disk.close()
    assert disk.open_descriptors == 0
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_in_use_keeps_its_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = RealDisk(descriptor_limit=3)
    busy, *others = open_files(disk, tmp_path, 12)
    busy.append(b"x")
    opened: list[str] = []
    original = disk_module._open

    def noted(path: str) -> int:
        opened.append(path)
        return original(path)

    monkeypatch.setattr(disk_module, "_open", noted)
    for other in others:
        busy.append(b"x")
        other.append(b"y")
    assert busy.path not in opened
    disk.close()


def test_descriptors_are_not_inherited(tmp_path: Path) -> None:
    disk = RealDisk()
    (file,) = open_files(disk, tmp_path, 1)
    file.append(b"x")
    with file.pin() as fd:
        assert not os.get_inheritable(fd)
    assert not os.get_inheritable(file._descriptor())
    disk.close()


def test_the_default_limit_leaves_room_for_sockets() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 16 <= default_descriptor_limit() <= max(16, soft // 2)


def test_thousands_of_files_work_under_a_small_ulimit(tmp_path: Path) -> None:
    program = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from headrace.system.disk import RealDisk
disk = RealDisk(descriptor_limit=100_000)
files = [disk.open(f"{tmp_path}/{{n}}", create=True) for n in range(2000)]
for turn in range(2):
    for n, file in enumerate(files):
        file.append(b"%d," % n)
assert all(file.read_at(0, 99) == b"%d,%d," % (n, n) for n, file in enumerate(files))
for n in range(100):
    files[n].append(b"!")
    with files[n].pin():
        pass
    assert len(disk.list_directory("{tmp_path}")) >= 2000
    disk.replace("{tmp_path}/checkpoint", b"x" * 20_000)
    assert len(disk.read("{tmp_path}/checkpoint")) == 20_000
    files[-n].sync()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_write_that_fits_in_part_only_is_cut_back(tmp_path: Path) -> None:
    disk = RealDisk()
    (file,) = open_files(disk, tmp_path, 1)
    file.append(b"kept")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            file.append(bytes(200))
        with pytest.raises(OSError, match="File too large"):
            file.write_at(2, bytes(200))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.size == os.stat(file.path).st_size == 4
    file.append(b" on")
    assert disk.read(file.path)[4:] == b" on"
    disk.close()


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_pwrite = os.pwrite
    monkeypatch.setattr(disk_module, "_pwrite", lambda fd, data, at: real_pwrite(fd, bytes(data[:3]), at))
    disk = RealDisk()
    (file,) = open_files(disk, tmp_path, 1)
    file.append(b"0123456789")
    file.append(b"abcdef")
    assert disk.read(file.path) == b"0123456789abcdef"
    disk.close()


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = RealDisk()
    (file,) = open_files(disk, tmp_path, 1)
    file.append(b"kept")

    def full(fd: int, data: bytes, at: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(disk_module, "_pwrite", full)
        with pytest.raises(OSError, match="No space left"):
            file.append(b"lost")
    file.append(b" on")
    assert disk.read(file.path) == b"kept on"
    disk.close()


def test_reads_and_syncs_off_the_loop_survive_evictions(tmp_path: Path) -> None:
    disk = RealDisk(descriptor_limit=2)
    files = open_files(disk, tmp_path, 8)
    for number, file in enumerate(files):
        file.append(bytes([number]) * 4096)

    def read(number: int) -> set[int]:
        buffer = bytearray(4096)
        files[number].read_into(0, buffer)
        files[number].sync()
        return set(buffer)

    async def run() -> None:
        for _ in range(40):
            pending = [disk.off_loop(partial(read, number)) for number in range(8)]
            for file in files:
                file.read_at(0, 1)
            assert await asyncio.gather(*pending) == [{number} for number in range(8)]

    asyncio.run(run())
    disk.close()


def test_a_file_that_may_only_be_read_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "readable").write_bytes(b"content")
    original = os.open

    def refusing(path: str, flags: int, *mode: int) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return original(path, flags, *mode)

    monkeypatch.setattr(os, "open", refusing)
    disk = RealDisk()
    file = disk.open(str(tmp_path / "readable"))
    buffer = bytearray(7)
    assert file.read_at(0, 99) == b"content"
    assert file.read_into(0, buffer) == 7
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.append(b"more")
    disk.close()


def test_an_unlinked_file_can_be_read_as_long_as_it_is_open(tmp_path: Path) -> None:
    disk = RealDisk()
    (file,) = open_files(disk, tmp_path, 1)
    file.append(b"content")
    disk.remove(file.path)
    assert file.read_at(0, 99) == b"content"
    file.close()
    with pytest.raises(FileNotFoundError):
        file.read_at(0, 99)


def test_a_failed_replace_keeps_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = RealDisk()
    path = str(tmp_path / "checkpoint")
    disk.replace(path, b"old")

    def broken(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(OSError, match="Input/output error"):
            disk.replace(path, b"new")
    assert disk.read(path) == b"old"
    disk.replace(path, b"new")
    assert disk.read(path) == b"new"


def test_clock_and_entropy_are_the_machines() -> None:
    clock, entropy = SystemClock(), SystemEntropy()
    assert clock.now_ms() > 1_600_000_000_000
    assert clock.monotonic_ms() <= clock.monotonic_ms()
    assert len(entropy.random_bytes(16)) == 16
    assert entropy.random_bytes(16) != entropy.random_bytes(16)
    assert all(0 <= entropy.random() < 1 for _ in range(100))


def test_a_sync_in_a_thread_gets_a_descriptor_when_connections_have_taken_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Running out of descriptors is no failure of the medium."""
    disk = RealDisk()
    idle, file = open_files(disk, tmp_path, 2)
    for each in (idle, file):
        each.append(b"x")
    duplicate = os.dup

    def dup(fd: int) -> int:
        if disk.open_descriptors == 2:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return duplicate(fd)

    async def sync() -> None:
        await disk.off_loop(file.sync)

    monkeypatch.setattr(os, "dup", dup)
    asyncio.run(sync())
    assert disk.open_descriptors == 1
    disk.close()
