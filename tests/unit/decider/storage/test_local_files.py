"""Whatever lies in a table's folder, a read of it ends soon and takes bounded memory, which follows the machine."""

import asyncio
import os
import socket
import threading
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from decider.formats.delta import checkpoint_limits
from decider.storage.local_files import MAX_OBJECT_BYTES, read_chosen_file, read_file, read_files
from decider.storage.object_reads import ObjectReader, ReadMeter
from decider.storage.reading_threads import ReadingThreads
from decider.storage.stores import ObjectStores
from shared.errors import Corrupt, InvalidInput, PermanentError, RetryableError
from tests.support.time_limits import scaled

NAME = "_delta_log/00000000000000000001.json"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "table" / "_delta_log" / "_sidecars").mkdir(parents=True)
    return tmp_path / "table"


def pipe(place: Path) -> None:
    os.mkfifo(place)


def unix_socket(place: Path) -> None:
    os.chdir(place.parent)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(place.name)


def folder(place: Path) -> None:
    place.mkdir()


def hole(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(2 * 1024**3)


def endless(place: Path) -> None:
    place.symlink_to("/dev/zero")


def link_out(place: Path) -> None:
    (place.parents[2] / "secret").write_text("secret")
    place.symlink_to(place.parents[2] / "secret")


def link_nowhere(place: Path) -> None:
    place.symlink_to(place.parent / "absent")


HOSTILE = [pipe, unix_socket, folder, hole, endless, link_out, link_nowhere]
READS: dict[str, Callable[[ObjectReader], Awaitable[object]]] = {
    "get": lambda reader: reader.get(NAME),
    "get_large": lambda reader: reader.get_large(NAME, MAX_OBJECT_BYTES),
    "get_each": lambda reader: anext(reader.get_each([NAME])),
}


@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: make.__name__)
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_what_is_no_plain_file_of_bounded_size_is_refused_by_its_name_at_once(
    table: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], read: Callable[..., Awaitable[object]]
) -> None:
    monkeypatch.chdir(table)
    make(table / NAME)
    reader = ObjectReader(ObjectStores().open(f"file://{table}"), location=f"file://{table}", meter=ReadMeter())

    async def refused() -> None:
        with pytest.raises((Corrupt, RetryableError), match=r"00000000000000000001\.json"):
            await asyncio.wait_for(read(reader), scaled(5))

    tracemalloc.start()
    try:
        asyncio.run(refused())
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_the_first_bytes_of_a_hole_are_read_and_no_more(table: Path) -> None:
    hole(table / NAME)
    assert read_file(table, NAME, 100, 100) == bytes(100)


@pytest.mark.parametrize("key", ["../secret", "_delta_log/../../secret", "_delta_log//x", "./x"])
def test_a_key_that_leads_out_is_no_key(table: Path, key: str) -> None:
    (table.parent / "secret").write_text("secret")
    with pytest.raises(PermanentError):
        read_file(table, key, MAX_OBJECT_BYTES)


def test_no_folder_below_the_log_is_a_link(table: Path) -> None:
    (table / "_delta_log" / "_sidecars").rmdir()
    (table.parent / "others").mkdir()
    (table.parent / "others" / "one.parquet").write_text("secret")
    (table / "_delta_log" / "_sidecars").symlink_to(table.parent / "others")
    assert read_file(table, "_delta_log/_sidecars/one.parquet", MAX_OBJECT_BYTES) is None


def test_files_are_read_ahead_as_far_as_memory_is_granted(table: Path) -> None:
    for name in ("a", "b", "c"):
        (table / name).write_bytes(name.encode() * 10)
    assert read_files(table, ["a", "b", "c"], 100, 20) == [b"a" * 10, b"b" * 10]
    assert read_files(table, ["absent", "c"], 100, 20) == [None, b"c" * 10]


async def test_a_read_that_hangs_is_left_behind_and_the_others_go_on() -> None:
    release = threading.Event()
    threads = ReadingThreads(at_once=2, deadline_s=0.2, max_hanging=3)
    hanging = [asyncio.create_task(threads.run(f"file {number}", release.wait, 60)) for number in range(3)]
    for task in hanging:
        with pytest.raises(RetryableError, match=r"file \d was not read within 0.2 s"):
            await task
    # Two hung in both threads; the third had waited for one of them.
    assert await threads.run("other", lambda: 1) == 1
    for _ in range(3):
        with pytest.raises(RetryableError):
            await threads.run("again", release.wait, 60)
    with pytest.raises(RetryableError, match="reads of local files hang"):
        await threads.run("other", lambda: 1)
    release.set()
    end = time.monotonic() + scaled(10)
    while time.monotonic() < end:
        try:
            assert await threads.run("other", lambda: 1) == 1
        except RetryableError:
            await asyncio.sleep(0.01)
        else:
            return
    pytest.fail("threads that returned are still counted")


async def test_an_error_of_a_read_is_its_callers() -> None:
    threads = ReadingThreads()
    with pytest.raises(ZeroDivisionError):
        await threads.run("a file", lambda: 1 // 0)
    assert await asyncio.gather(*(threads.run("a file", pow, 2, number) for number in range(100)))


def test_the_memory_of_a_container_counts_where_it_is_less(tmp_path: Path) -> None:
    limit, none = tmp_path / "memory.max", tmp_path / "absent"
    limit.write_text("max\n")
    whole = checkpoint_limits.memory_bytes((none, limit))
    assert whole == checkpoint_limits.memory_bytes(()) > 4096
    limit.write_text("4096\n")
    assert checkpoint_limits.memory_bytes((none, limit)) == 4096


def test_a_chosen_file_takes_the_memory_that_it_needs_and_is_read_to_its_end(tmp_path: Path) -> None:
    place = tmp_path / "metadata.json"
    place.write_bytes(b"x" * 1_000)
    tracemalloc.start()
    try:
        assert read_chosen_file(place, MAX_OBJECT_BYTES) == b"x" * 1_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert len(read_chosen_file(place, 1_000)) == 1_000
    with pytest.raises(InvalidInput, match="more than 999 bytes"):
        read_chosen_file(place, 999)
    if (sizeless := Path("/proc/self/status")).exists():
        assert len(read_chosen_file(sizeless, 10_000)) > 100
        with pytest.raises(InvalidInput, match="more than 10 bytes"):
            read_chosen_file(sizeless, 10)
