"""When Redis is compared with the saved registry, and when the tables file is applied."""

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import structlog

from decider.background.registry_sync import FULL_EVERY_S, RegistrySync
from decider.background.tables_file_sync import TablesFile
from decider.declared.table_declarations import AppliedDeclarations
from decider.declared.tables_file import TablesFileReader
from decider.events.resolver import AllowedRoots
from decider.state.effective_policy import PolicyDefaults
from decider.store.registry.registry_document import RegistryDocument, SavedEntry
from decider.store.registry.registry_entries import AppliedEntries
from shared.errors import RetryableError


@dataclass
class FakeCopies:
    """A Redis and a saved registry that count how often they are compared; a pass takes `pass_s` seconds."""

    revision_number: int = 1
    run: str = "first"
    merged: str = ""
    now_s: float = 0.0
    pass_s: float = 0.0
    passes: int = 0
    fails: bool = False
    is_emptied: bool = False
    deleted_of: list[str] = field(default_factory=list)
    entries: dict[str, Any] = field(default_factory=dict)

    async def revision(self) -> int:
        return self.revision_number

    async def is_merged(self) -> bool:
        return self.merged == self.run

    async def begin(self) -> str:
        return self.run

    async def complete(self, begun: str) -> bool:
        if not self.is_emptied:
            self.merged = begun
        return not self.is_emptied

    async def read(self) -> dict[str, Any]:
        return self.entries

    async def save(self, _: object) -> RegistryDocument:
        self.passes += 1
        self.now_s += self.pass_s
        if self.fails:
            raise RetryableError("the store is away")
        return RegistryDocument(1, {key: SavedEntry(entry.changed_ms + 1) for key, entry in self.entries.items()})

    async def delete(self, tables: list[str]) -> None:
        self.deleted_of += tables

    async def apply(self, _: object, __: object) -> AppliedEntries:
        if self.entries:
            raise RetryableError("Redis is away")
        return AppliedEntries()

    async def follow(self, _: AppliedEntries) -> None:
        return None

    def clock_s(self) -> float:
        return self.now_s


def sync_of(copies: Any) -> RegistrySync:
    return RegistrySync(copies, copies, copies, copies, copies, clock_s=copies.clock_s)


def passes_after(copies: FakeCopies, sync: RegistrySync) -> int:
    """Run the task once, and return how many passes there were so far."""
    asyncio.run(sync.run_once())
    return copies.passes


def test_without_a_change_one_pass_is_enough() -> None:
    copies = FakeCopies()
    sync = sync_of(copies)
    assert [passes_after(copies, sync) for _ in range(3)] == [1, 1, 1]
    copies.now_s += FULL_EVERY_S
    assert passes_after(copies, sync) == 2


def test_a_change_is_saved_with_the_next_pass() -> None:
    copies = FakeCopies()
    sync = sync_of(copies)
    passes_after(copies, sync)
    copies.revision_number += 1
    assert passes_after(copies, sync) == 2


def test_a_server_that_was_started_again_is_compared_although_its_revision_is_the_same() -> None:
    copies = FakeCopies()
    sync = sync_of(copies)
    passes_after(copies, sync)
    copies.run = "second"
    assert [passes_after(copies, sync) for _ in range(2)] == [2, 2]


def test_a_server_that_was_emptied_is_compared_although_its_revision_is_the_same() -> None:
    copies = FakeCopies()
    sync = sync_of(copies)
    passes_after(copies, sync)
    copies.merged = ""
    assert passes_after(copies, sync) == 2


def test_long_passes_leave_most_of_the_time_to_others_unless_something_was_lost() -> None:
    copies = FakeCopies(pass_s=1.0, revision_number=100)
    sync = sync_of(copies)
    passes_after(copies, sync)
    copies.revision_number += 1
    assert passes_after(copies, sync) == 1
    copies.now_s += 20
    assert passes_after(copies, sync) == 2
    copies.revision_number = 0
    assert passes_after(copies, sync) == 3


def test_a_pass_that_fails_is_repeated() -> None:
    copies = FakeCopies(fails=True)
    sync = sync_of(copies)
    for expected in (1, 2):
        with pytest.raises(RetryableError):
            asyncio.run(sync.run_once())
        assert copies.passes == expected
        assert copies.merged == ""


def test_a_server_that_was_emptied_during_a_pass_is_compared_again() -> None:
    copies = FakeCopies(is_emptied=True)
    sync = sync_of(copies)
    with pytest.raises(RetryableError, match="emptied while its registry was restored"):
        asyncio.run(sync.run_once())
    copies.is_emptied = False
    assert passes_after(copies, sync) == 2


def test_the_jobs_of_a_removed_table_are_deleted_before_it_is_removed() -> None:
    """After a crash in between, nothing would remember them."""
    copies = FakeCopies(entries={"table/orders": SavedEntry(1, {"id": "orders", "name": "orders"})})
    with pytest.raises(RetryableError, match="away"):
        asyncio.run(sync_of(copies).run_once())
    assert copies.deleted_of == ["orders"]


READER = TablesFileReader(AllowedRoots(), PolicyDefaults)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tables.yaml"


def test_a_file_is_read_again_only_after_it_changed(file: Path) -> None:
    watched = TablesFile(file, lambda: 7)
    file.write_text("tables: []")
    first = watched.current(READER)
    assert first is not None
    assert watched.current(READER) is first
    file.write_text("tables: [{location: /a, name: a}]")
    found = watched.current(READER)
    assert found is not None
    assert [one.name for one in found.tables.values()] == ["a"]
    assert watched.status.tables == 1


def test_a_refused_file_is_logged_once_and_the_last_good_content_stays(file: Path) -> None:
    watched = TablesFile(file, lambda: 7)
    with structlog.testing.capture_logs() as logs:
        assert watched.current(READER) is None
        assert watched.current(READER) is None
        file.write_text("tables: []")
        good = watched.current(READER)
        file.write_text("tables: {}")
        assert watched.current(READER) is good
        assert watched.current(READER) is good
    assert [one["event"] for one in logs] == ["tables_file_refused", "tables_file_refused"]
    assert "No such file" in logs[0]["error"]
    assert watched.status.error.endswith(":1:9: `tables` must be a list")
    file.write_text("tables: []\n")
    assert watched.current(READER) is not None
    assert watched.status.error == ""


def test_entries_that_could_not_be_applied_are_logged_when_they_change(file: Path) -> None:
    watched = TablesFile(file, lambda: 7)
    refused = AppliedDeclarations(problems=("line 2:3: taken",))
    with structlog.testing.capture_logs() as logs:
        for applied in (refused, refused, AppliedDeclarations(), refused):
            watched.note(applied)
    assert len(logs) == 2
    assert (watched.status.problems, watched.status.applied_ms) == (refused.problems, 7)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["pipe", "endless", "folder", "deep"])
def test_a_file_that_is_none_or_has_no_end_is_refused_and_the_last_good_content_stays(file: Path, kind: str) -> None:
    watched = TablesFile(file, lambda: 7)
    file.write_text("tables: []")
    good = watched.current(READER)
    assert good is not None
    file.unlink()
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "endless":
            file.symlink_to("/dev/zero")
        case "folder":
            file.mkdir()
        case _:
            file.write_text("[" * 100_000)  # Ends the process in the parser's C.
    assert watched.current(READER) is good
    assert str(file) in watched.status.error


def test_a_file_behind_a_link_is_read(file: Path, tmp_path: Path) -> None:
    """As Kubernetes mounts them."""
    (tmp_path / "data").write_text("tables: []")
    file.symlink_to(tmp_path / "data")
    assert TablesFile(file, lambda: 7).current(READER) is not None
