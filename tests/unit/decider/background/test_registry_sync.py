"""When Redis is compared with the saved registry: after changes, after losses, and from time to time."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from decider.background.registry_sync import FULL_EVERY_S, RegistrySync
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
