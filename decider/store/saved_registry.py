"""The registry as it is saved outside of Redis: generations of one document, merged with every change.

A change is saved once the newest generation contains it. Of two deciders that write at once, one creates the next
generation and the other merges its change into that. A damaged generation is reported and not used: the newest one that
is whole counts, and the next generation replaces both.
"""

import asyncio
from collections.abc import Callable

import structlog

from decider.storage.numbered_objects import NumberedObjects
from decider.store import registry_document
from decider.store.registry_document import Entries, RegistryDocument, SavedEntry
from shared.errors import Corrupt, LakewrightError, PermanentError, RetryableError

KEPT = 20
"""Generations that are kept: enough to return to the one before a mistake, and to survive several damaged ones."""

ATTEMPTS = 20
"""Generations of other writers that one change is merged into, before the call fails and may be repeated."""

log = structlog.get_logger()


class SavedRegistry:
    """Reads and writes the saved registry; safe to share, and safe beside other processes."""

    def __init__(self, objects: NumberedObjects, now_ms: Callable[[], int]) -> None:
        self._objects = objects
        self._now_ms = now_ms
        self._newest = RegistryDocument()
        self._damaged: dict[int, str] = {}
        self._pending: dict[str, SavedEntry] = {}
        self._writing = asyncio.Lock()

    @property
    def location(self) -> str:
        """Where the generations are."""
        return self._objects.location

    async def save(self, changes: Entries) -> RegistryDocument:
        """Merge changes into the document, and return it once its newest generation contains them.

        Raises LakewrightError if it cannot be read or written; the changes are then part of the next save.
        """
        self._pending = registry_document.merge(self._pending, changes)
        async with self._writing:
            asked = self._pending
            document = await self._save(registry_document.without_old_tombstones(asked, self._now_ms()))
            self._pending = {key: one for key, one in self._pending.items() if asked.get(key) != one}
            return document

    async def _save(self, changes: Entries) -> RegistryDocument:
        for _ in range(ATTEMPTS):
            numbers = await self._objects.numbers()
            newest = await self._read_newest(numbers)
            highest = numbers[0] if numbers else 0
            if highest == newest.generation and await asyncio.to_thread(_contains, newest.entries, changes):
                return newest
            made, data = await asyncio.to_thread(_next, newest, changes, highest + 1, self._now_ms())
            # Whether it was created or another writer was faster, the next round reads what is the newest now: this
            # process may have been suspended for so long that its number was free again.
            if await self._objects.create(made.generation, data):
                self._newest = made
                await self._delete_old(numbers, newest.generation)
        raise RetryableError(f"other writers were always faster at {self.location}; try again")

    async def _read_newest(self, numbers: list[int]) -> RegistryDocument:
        """Return the newest generation that is whole; generation 0 if there is none at all."""
        known, self._damaged = self._damaged, {}
        for number in numbers:
            if number == self._newest.generation:
                return self._newest
            data = await self._objects.read(number)
            if data is None:
                continue
            try:
                self._newest = await asyncio.to_thread(registry_document.decode, data, self._objects.name(number))
            except Corrupt as problem:
                self._damaged[number] = str(problem)
                if number not in known:
                    log.warning("registry_damaged", error=str(problem))
                continue
            return self._newest
        if self._damaged:
            raise PermanentError(
                f"no generation of the saved registry is whole: {'; '.join(self._damaged.values())}. Restore it, "
                "or move it to another location: the tables that Redis has are then saved again"
            )
        return RegistryDocument()

    async def _delete_old(self, numbers: list[int], last_good: int) -> None:
        """Delete generations that are not needed any more, the last one that was whole never."""
        for number in numbers[KEPT - 1 :]:
            if number < last_good:
                try:
                    await self._objects.delete(number)
                except LakewrightError as problem:
                    log.warning("registry_generation_not_deleted", error=str(problem))
                    return


def _contains(entries: Entries, changes: Entries) -> bool:
    return all(registry_document.newer(entries.get(key), change) == entries.get(key) for key, change in changes.items())


def _next(newest: RegistryDocument, changes: Entries, generation: int, now_ms: int) -> tuple[RegistryDocument, bytes]:
    """Return the generation that also contains the changes, and its text; a second of work for 100,000 tables."""
    entries = registry_document.resolve_names(registry_document.merge(newest.entries, changes))
    made = RegistryDocument(generation, registry_document.without_old_tombstones(entries, now_ms))
    return made, registry_document.encode(made)
