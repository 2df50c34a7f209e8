"""The saved registry: what two writers save is never lost, and a damaged generation is reported and not used."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from decider.storage.numbered_objects import NumberedObjects
from decider.storage.object_reads import ReadMeter
from decider.storage.stores import ObjectStores
from decider.store.registry.registry_document import DAY_MS, TOMBSTONE_DAYS, RegistryDocument, SavedEntry, encode
from decider.store.registry.saved_registry import KEPT, SavedRegistry, SaveStatus
from shared.errors import PermanentError, RetryableError

NOW_MS = 100 * DAY_MS


def saved_at(folder: Path) -> SavedRegistry:
    return SavedRegistry(NumberedObjects(ObjectStores(), folder.as_uri(), ReadMeter()), lambda: NOW_MS)


def save(folder: Path, entries: Mapping[str, SavedEntry]) -> RegistryDocument:
    return asyncio.run(saved_at(folder).save(entries))


def entry(name: str, changed_ms: int = NOW_MS) -> dict[str, SavedEntry]:
    return {f"table/{name}": SavedEntry(changed_ms, {"id": name, "name": name})}


def test_a_change_that_is_saved_already_writes_nothing(tmp_path: Path) -> None:
    save(tmp_path, entry("a"))
    assert save(tmp_path, entry("a", NOW_MS - 1)).generation == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_of_writers_at_the_same_time_none_loses_a_change(tmp_path: Path) -> None:
    async def write() -> None:
        writers = [saved_at(tmp_path) for _ in range(4)]
        changes = [(writers[number % 4], entry(f"t{number}")) for number in range(40)]
        await asyncio.gather(*(writer.save(change) for writer, change in changes))

    asyncio.run(write())
    assert save(tmp_path, {}).entries.keys() == {f"table/t{number}" for number in range(40)}


def test_a_writer_that_stood_still_until_its_number_was_free_again_still_saves(tmp_path: Path) -> None:
    """It lists generation 1, others write and delete many, and then it creates generation 2."""
    late = saved_at(tmp_path)
    save(tmp_path, entry("a"))
    create = late._objects.create

    async def create_late(number: int, data: bytes) -> bool:
        late._objects.create = create  # type: ignore[method-assign]
        for other in range(KEPT + 2):
            await saved_at(tmp_path).save(entry(f"t{other}"))
        (tmp_path / f"{number:012d}.json").unlink(missing_ok=True)
        return await create(number, data)

    late._objects.create = create_late  # type: ignore[method-assign]
    asyncio.run(late.save(entry("late")))
    assert {"table/late", "table/a", "table/t0"} <= save(tmp_path, {}).entries.keys()


def test_a_store_is_asked_again_for_each_change_and_at_once_for_all_that_come_together(tmp_path: Path) -> None:
    async def ask() -> None:
        saved = saved_at(tmp_path)
        await saved.save(entry("a"))
        await asyncio.gather(*(saved.require_writable() for _ in range(20)))
        assert saved.status().generation <= 3

        async def full(*_: object) -> bool:
            raise RetryableError("No space left on device")

        saved._objects.create = full  # type: ignore[method-assign]
        with pytest.raises(RetryableError, match="No space left"):
            await saved.require_writable()

    asyncio.run(ask())


def test_only_the_newest_generations_are_kept(tmp_path: Path) -> None:
    for number in range(KEPT + 5):
        save(tmp_path, entry(f"t{number}"))
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        f"{number:012d}.json" for number in range(6, KEPT + 6)
    ]


DAMAGE = {
    "torn": lambda data: data[: len(data) // 2],
    "empty": lambda _: b"",
    "changed": lambda data: data.replace(b'"name":"b"', b'"name":"x"'),
    "another document": lambda _: b'{"some": "thing"}',
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_generation_is_reported_and_the_one_before_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    save(tmp_path, entry("a"))
    save(tmp_path, entry("b"))
    newest = tmp_path / "000000000002.json"
    newest.write_bytes(DAMAGE[damage](newest.read_bytes()))
    document = save(tmp_path, entry("c"))
    assert document.entries == entry("a") | entry("c")
    assert document.generation == 3
    assert f"{newest.as_uri()} is damaged" in capsys.readouterr().out
    assert newest.exists()


def test_a_damaged_generation_is_replaced_although_nothing_changed(tmp_path: Path) -> None:
    save(tmp_path, entry("a"))
    (tmp_path / "000000000002.json").write_bytes(b"{")
    assert save(tmp_path, entry("a")) == RegistryDocument(3, entry("a"))


def test_if_no_generation_is_whole_nothing_is_written_and_the_file_is_named(tmp_path: Path) -> None:
    save(tmp_path, entry("a"))
    only = tmp_path / "000000000001.json"
    only.write_bytes(b"{")
    with pytest.raises(PermanentError, match=r"000000000001\.json is damaged: Expecting .*line 1"):
        save(tmp_path, entry("b"))
    assert [path.name for path in tmp_path.iterdir()] == [only.name]


def test_a_document_of_a_later_release_is_not_replaced_by_an_older_one(tmp_path: Path) -> None:
    save(tmp_path, entry("a"))
    later = encode(RegistryDocument(2, entry("b"))).replace(b'"format":1', b'"format":2')
    (tmp_path / "000000000002.json").write_bytes(later)
    with pytest.raises(PermanentError, match="format 2, which this release does not know"):
        save(tmp_path, entry("c"))
    assert len(list(tmp_path.iterdir())) == 2


def test_a_change_that_could_not_be_saved_is_part_of_the_next_save(tmp_path: Path) -> None:
    saved = saved_at(tmp_path)
    save(tmp_path, entry("a"))
    (tmp_path / "000000000001.json").write_bytes(b"{")
    with pytest.raises(PermanentError):
        asyncio.run(saved.save(entry("b")))
    (tmp_path / "000000000001.json").unlink()
    assert asyncio.run(saved.save(entry("c"))).entries == entry("b") | entry("c")


def test_a_removal_is_kept_for_as_long_as_an_old_copy_could_bring_the_table_back(tmp_path: Path) -> None:
    recent, old = (NOW_MS - days * DAY_MS for days in (TOMBSTONE_DAYS - 1, TOMBSTONE_DAYS + 1))
    removals = {"table/recent": SavedEntry(recent), "table/old": SavedEntry(old)}
    assert save(tmp_path, removals).entries.keys() == {"table/recent"}
    assert save(tmp_path, entry("recent", recent - 1)).entries["table/recent"].value is None


def test_in_a_folder_that_was_emptied_the_same_number_is_another_generation(tmp_path: Path) -> None:
    """The folder is moved away while this decider runs, and another one writes the first generation again."""
    running = saved_at(tmp_path)
    asyncio.run(running.save(entry("a")))
    (tmp_path / "000000000001.json").unlink()
    save(tmp_path, entry("longer"))
    assert asyncio.run(running.save(entry("c"))).entries == entry("longer") | entry("c")


def test_the_status_tells_what_is_saved_and_why_it_failed(tmp_path: Path) -> None:
    saved = saved_at(tmp_path)
    assert saved.status() == SaveStatus(tmp_path.as_uri(), 0, 0, 0, "", ())
    asyncio.run(saved.save(entry("a") | {"table/b": SavedEntry(NOW_MS)}))
    assert saved.status() == SaveStatus(tmp_path.as_uri(), 1, 1, NOW_MS, "", ())
    only = tmp_path / "000000000001.json"
    only.write_bytes(b"{")
    other = saved_at(tmp_path)
    with pytest.raises(PermanentError):
        asyncio.run(other.save(entry("b")))
    found = other.status()
    assert (found.generation, found.saved_ms, len(found.damaged)) == (0, 0, 1)
    assert "no generation of the saved registry is whole" in found.error
