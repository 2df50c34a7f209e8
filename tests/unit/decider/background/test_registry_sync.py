"""When Redis is compared with the saved registry: after changes, after losses, and from time to time."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from decider.background.registry_sync import FULL_EVERY_S, RegistrySync
from decider.store.registry_document import RegistryDocument
from decider.store.registry_entries import AppliedEntries
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

    async def revision(self) -> int:
        return self.revision_number

    async def server_run(self) -> str:
        return self.run

    async def is_merged(self, run: str) -> bool:
        return self.merged == run

    async def set_merged(self, run: str) -> None:
        self.merged = run

    async def read(self) -> dict[str, Any]:
        return {}

    async def save(self, _: object) -> RegistryDocument:
        self.passes += 1
        self.now_s += self.pass_s
        if self.fails:
            raise RetryableError("the store is away")
        return RegistryDocument()

    async def apply(self, _: object, __: object) -> AppliedEntries:
        return AppliedEntries()

    async def follow(self, _: AppliedEntries) -> None:
        return None

    def clock_s(self) -> float:
        return self.now_s


def sync_of(copies: Any) -> RegistrySync:
    return RegistrySync(copies, copies, copies, copies, clock_s=copies.clock_s)


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
