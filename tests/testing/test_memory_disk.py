"""What breaks on the disk in memory, and how."""

import errno
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.testing.clock import ManualClock
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import Crashed, Loss, MemoryDisk, MemoryFile


def disk_with_file(content: bytes = b"kept", unsynced: bytes = b"lost") -> tuple[MemoryDisk, MemoryFile]:
    disk = MemoryDisk()
    disk.make_directory("/logs")
    file = disk.open("/logs/a", create=True)
    file.append(content)
    file.sync()
    file.append(unsynced)
    return disk, file


def test_a_crash_loses_what_was_not_synced() -> None:
    disk, _ = disk_with_file()
    assert disk.durable("/logs/a") == b"kept"
    disk.crash()
    assert disk.read("/logs/a") == b"kept"


def test_a_killed_process_loses_nothing() -> None:
    disk, file = disk_with_file()
    disk.open("/logs/b", create=True).append(b"new")
    file.truncate(6)
    disk.crash(Loss.NOTHING)
    assert disk.read("/logs/a") == b"keptlo"
    assert disk.read("/logs/b") == b"new"


def test_handles_from_before_a_crash_are_dead() -> None:
    disk, file = disk_with_file()
    disk.crash()
    with pytest.raises(Crashed):
        file.append(b"x")
    with pytest.raises(Crashed):
        file.read_at(0, 1)
    with pytest.raises(Crashed):
        file.sync()
    assert disk.open("/logs/a").read_at(0, 9) == b"kept"


def test_a_name_that_was_never_synced_is_lost() -> None:
    disk, _ = disk_with_file()
    disk.open("/logs/b", create=True).append(b"new")
    assert disk.durable("/logs/b") is None
    disk.crash()
    assert disk.list_directory("/logs") == ["a"]


def test_syncing_the_directory_keeps_the_name_but_not_the_bytes() -> None:
    disk, _ = disk_with_file()
    disk.open("/logs/b", create=True).append(b"new")
    disk.sync_directory("/logs")
    disk.crash()
    assert disk.read("/logs/b") == b""


def test_syncing_a_file_keeps_its_name() -> None:
    disk, _ = disk_with_file()
    file = disk.open("/logs/b", create=True)
    file.append(b"new")
    file.sync()
    disk.crash()
    assert disk.read("/logs/b") == b"new"


def test_renames_and_removals_need_a_sync() -> None:
    disk, _ = disk_with_file()
    disk.rename("/logs/a", "/logs/b")
    disk.crash()
    assert disk.list_directory("/logs") == ["a"]
    disk.rename("/logs/a", "/logs/b")
    disk.sync_directory("/logs")
    disk.remove("/logs/b")
    disk.crash()
    assert disk.list_directory("/logs") == ["b"]


def test_replace_is_durable_on_return() -> None:
    disk, _ = disk_with_file()
    disk.replace("/logs/a", b"replaced")
    disk.crash()
    assert disk.read("/logs/a") == b"replaced"


def test_a_replace_that_is_interrupted_leaves_old_or_new() -> None:
    seen = set()
    for operations in range(8):
        for seed in range(6):
            disk, _ = disk_with_file(b"old", b"")
            disk.crash_after(operations)
            with suppress(Crashed):
                disk.replace("/logs/a", b"new!")
            disk.crash(Loss.TAIL, entropy=SeededEntropy(seed))
            seen.add(disk.read("/logs/a"))
    assert seen == {b"old", b"new!"}


def test_names_survive_in_order() -> None:
    for seed in range(30):
        disk = MemoryDisk()
        disk.make_directory("/logs")
        for number in range(6):
            disk.open(f"/logs/{number}", create=True)
        disk.crash(Loss.TAIL, entropy=SeededEntropy(seed))
        if disk.exists("/logs"):
            names = disk.list_directory("/logs")
            assert names == [str(number) for number in range(len(names))]


@given(
    synced=st.binary(max_size=50),
    appends=st.lists(st.binary(min_size=1, max_size=50), max_size=6),
    seed=st.integers(0, 1000),
    sector=st.sampled_from([1, 16, 512]),
)
def test_of_unsynced_appends_a_prefix_survives(
    synced: bytes, appends: list[bytes], seed: int, sector: int
) -> None:
    disk, file = disk_with_file(synced, b"")
    for data in appends:
        file.append(data)
    written = synced + b"".join(appends)
    disk.crash(Loss.TAIL, sector=sector, entropy=SeededEntropy(seed))
    left = disk.read("/logs/a")
    assert written.startswith(left)
    assert len(left) >= len(synced)


def test_tails_are_torn_everywhere_and_at_sectors_only() -> None:
    def sizes(sector: int) -> set[int]:
        found = set()
        for seed in range(400):
            disk, file = disk_with_file(b"", b"")
            file.append(bytes(64))
            disk.crash(Loss.TAIL, sector=sector, entropy=SeededEntropy(seed))
            found.add(disk.size("/logs/a"))
        return found

    assert len(sizes(1)) > 50
    assert sizes(16) == {0, 16, 32, 48, 64}


def test_holes_keep_the_size_and_lose_sectors() -> None:
    disk, file = disk_with_file(b"", b"")
    file.append(b"\xff" * 512 * 20)
    disk.crash(Loss.HOLES, entropy=SeededEntropy(1))
    content = disk.read("/logs/a")
    sectors = {content[start : start + 512] for start in range(0, len(content), 512)}
    assert len(content) == 512 * 20
    assert sectors == {bytes(512), b"\xff" * 512}


def test_the_same_seed_leaves_the_same_remains() -> None:
    def remains() -> dict[str, bytes]:
        disk = MemoryDisk(entropy=SeededEntropy(42))
        disk.make_directory("/logs")
        for name in "abcd":
            disk.open(f"/logs/{name}", create=True).append(name.encode() * 100)
        disk.sync_directory("/logs")
        disk.crash(Loss.TAIL)
        return {name: disk.read(f"/logs/{name}") for name in disk.list_directory("/logs")}

    assert remains() == remains()
    assert len({len(content) for content in remains().values()}) > 1


def test_a_bit_can_be_flipped_for_good() -> None:
    disk, file = disk_with_file(b"\x00\x00", b"\x00")
    disk.flip_bit("/logs/a", 1, 3)
    disk.flip_bit("/logs/a", 2, 7)
    assert file.read_at(0, 3) == b"\x00\x08\x80"
    file.sync()
    disk.crash()
    assert disk.read("/logs/a") == b"\x00\x08\x80"


def test_a_file_can_be_torn_for_good() -> None:
    disk, file = disk_with_file()
    disk.tear("/logs/a", 2)
    assert file.read_at(0, 9) == b"ke"
    disk.crash()
    assert disk.read("/logs/a") == b"ke"


def test_failures_come_as_ordered_and_change_nothing() -> None:
    disk, file = disk_with_file()
    disk.fail(errno.ENOSPC, times=2, when=lambda operation: operation.kind == "append")
    assert file.read_at(0, 4) == b"kept"
    for _ in range(2):
        with pytest.raises(OSError, match="No space left") as failure:
            file.append(b"more")
        assert failure.value.errno == errno.ENOSPC
        assert failure.value.filename == "/logs/a"
    file.append(b"!")
    assert disk.read("/logs/a") == b"keptlost!"


def test_ordered_failures_can_be_taken_back() -> None:
    disk, file = disk_with_file()
    disk.fail(times=10)
    disk.crash_after(0)
    disk.heal()
    file.append(b"!")
    assert disk.read("/logs/a") == b"keptlost!"


def test_a_failed_sync_makes_nothing_durable() -> None:
    disk, file = disk_with_file()
    disk.fail(errno.EIO, when=lambda operation: operation.kind == "sync")
    with pytest.raises(OSError, match="Input/output error"):
        file.sync()
    disk.crash()
    assert disk.read("/logs/a") == b"kept"


def test_a_full_disk_takes_no_part_of_a_write() -> None:
    disk, file = disk_with_file()
    disk.capacity_bytes = 12
    file.append(b"1234")
    assert disk.free_bytes("/logs") == 0
    with pytest.raises(OSError, match="No space left"):
        file.append(b"5")
    assert file.size == 12
    file.truncate(8)
    file.append(b"567")
    assert disk.free_bytes("/logs") == 1


def test_going_down_at_an_operation_stops_everything_until_the_crash() -> None:
    disk, file = disk_with_file(b"", b"")
    disk.crash_after(2)
    file.append(b"1")
    file.append(b"2")
    with pytest.raises(Crashed):
        file.append(b"3")
    with pytest.raises(Crashed):
        file.read_at(0, 1)
    with pytest.raises(Crashed):
        disk.exists("/logs")
    disk.crash(Loss.NOTHING)
    assert disk.read("/logs/a") == b"123"


def test_operations_are_counted() -> None:
    disk, file = disk_with_file()
    disk.operations.clear()
    file.append(b"1")
    file.append(b"2")
    file.sync()
    assert disk.operations == {"append": 2, "sync": 1}


def test_time_of_writing_follows_the_clock() -> None:
    clock = ManualClock(1000)
    disk = MemoryDisk(clock=clock)
    file = disk.open("/a", create=True)
    clock.advance(5)
    file.append(b"x")
    assert disk.modified_ms("/a") == 1005


def test_the_manual_clock_moves_when_told() -> None:
    clock = ManualClock(1000)
    clock.advance(10)
    clock.set_wall_clock(5)
    assert (clock.now_ms(), clock.monotonic_ms()) == (5, 10)
    with pytest.raises(ValueError, match="forward only"):
        clock.advance(-1)


def test_seeded_entropy_repeats_itself() -> None:
    first, second = SeededEntropy(7), SeededEntropy(7)
    assert first.random_bytes(8) == second.random_bytes(8)
    assert first.random() == second.random()
    assert SeededEntropy(8).random_bytes(8) != SeededEntropy(7).random_bytes(8)


def test_the_documented_example_holds() -> None:
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
    example = page.split("```python\n")[1].split("```")[0]
    assert "disk.crash()" in example
    exec(compile(example, "docs/testing.md", "exec"), {})
