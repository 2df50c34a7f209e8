"""The registry as it is saved outside of Redis: generations of one document, merged with every change.

A change is saved once the newest generation contains it. Of two deciders that write at once, one creates the next
generation and the other merges its change into that. A damaged generation is reported and not used: the newest one that
is whole counts, and the next generation replaces both.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from decider.storage.numbered_objects import NumberedObject, NumberedObjects
from decider.store.registry import registry_document
from decider.store.registry.registry_document import Entries, RegistryDocument, SavedEntry
from shared.errors import Corrupt, LakewrightError, PermanentError, RetryableError

KEPT = 40
"""Generations that are kept, of which a change writes two: enough to return to the one before a mistake, and to survive
several damaged ones."""

ATTEMPTS = 20
"""Generations of other writers that one change is merged into, before the call fails and may be repeated."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SaveStatus:
    """The saved registry as this process knows it.

    generation: the newest that it read or wrote, 0 before the first. saved_ms: when it last saw that the registry is
    saved, 0 for never. error: why the last attempt failed, empty if it succeeded. damaged: what is wrong with newer
    generations, which are not used.
    """

    location: str
    generation: int
    tables: int
    saved_ms: int
    error: str
    damaged: tuple[str, ...]


class SavedRegistry:
    """Reads and writes the saved registry; safe to share, and safe beside other processes."""

    def __init__(self, objects: NumberedObjects, now_ms: Callable[[], int]) -> None:
        self._objects = objects
        self._now_ms = now_ms
        self._newest = RegistryDocument()
        self._listed: NumberedObject | None = None
        self._saved_ms = self._tables = 0
        self._error = ""
        self._damaged: dict[int, str] = {}
        self._pending: dict[str, SavedEntry] = {}
        self._writing = asyncio.Lock()
        self._begun = self._written = 0

    @property
    def location(self) -> str:
        """Where the generations are."""
        return self._objects.location

    def status(self) -> SaveStatus:
        """Return what this process knows of it, without asking the store."""
        damaged = tuple(self._damaged.values())
        return SaveStatus(self.location, self._newest.generation, self._tables, self._saved_ms, self._error, damaged)

    async def require_writable(self) -> None:
        """Return once a generation was written that was begun after the call. Raises LakewrightError if none can be.

        A change that took effect and could not be saved would be refused and in force at once. A store that took the
        change before says nothing: its disk may be full since. Changes at the same time share a generation.
        """
        begun = self._begun
        async with self._writing:
            if self._written <= begun:
                await self._save_pending(is_renewed=True)

    async def save(self, changes: Entries) -> RegistryDocument:
        """Merge changes into the document, and return it once its newest generation contains them.

        Raises LakewrightError if it cannot be read or written; the changes are then part of the next save.
        """
        self._pending = registry_document.merge(self._pending, changes)
        async with self._writing:
            return await self._save_pending(is_renewed=False)

    async def _save_pending(self, *, is_renewed: bool) -> RegistryDocument:
        """Save what is pending; with `is_renewed`, a generation is written in any case."""
        self._begun += 1
        asked = self._pending
        try:
            entries = registry_document.without_old_tombstones(asked, self._now_ms())
            document = await self._save(entries, is_renewed=is_renewed)
        except LakewrightError as problem:
            self._error = str(problem)
            raise
        self._error, self._saved_ms = "", self._now_ms()
        self._tables = await asyncio.to_thread(registry_document.count_tables, document.entries)
        self._pending = {key: one for key, one in self._pending.items() if asked.get(key) != one}
        return document

    async def _save(self, changes: Entries, *, is_renewed: bool) -> RegistryDocument:
        for _ in range(ATTEMPTS):
            listed = await self._objects.objects()
            newest = await self._read_newest(listed)
            highest = listed[0].number if listed else 0
            is_whole = highest == newest.generation and not is_renewed
            if is_whole and await asyncio.to_thread(_contains, newest.entries, changes):
                return newest
            made, data = await asyncio.to_thread(_next, newest, changes, highest + 1, self._now_ms())
            # Whether it was created or another writer was faster, the next round reads what is the newest now: this
            # process may have been suspended for so long that its number was free again.
            if await self._objects.create(made.generation, data):
                self._newest, self._listed, is_renewed = made, None, False
                self._written = self._begun
                await self._delete_old(listed, newest.generation)
        raise RetryableError(f"other writers were always faster at {self.location}; try again")

    async def _read_newest(self, listed: list[NumberedObject]) -> RegistryDocument:
        """Return the newest generation that is whole; generation 0 if there is none at all."""
        known, self._damaged = self._damaged, {}
        for one in listed:
            if self._is_known(one):
                return self._newest
            data = await self._objects.read(one.number)
            if data is None:
                continue
            try:
                self._newest = await asyncio.to_thread(registry_document.decode, data, self._objects.name(one.number))
            except Corrupt as problem:
                self._damaged[one.number] = str(problem)
                if one.number not in known:
                    log.warning("registry_damaged", error=str(problem))
                continue
            self._listed = one
            return self._newest
        if self._damaged:
            raise PermanentError(
                f"no generation of the saved registry is whole: {'; '.join(self._damaged.values())}. Restore it, "
                "or move it to another location: the tables that Redis has are then saved again"
            )
        return RegistryDocument()

    def _is_known(self, one: NumberedObject) -> bool:
        """Return whether an object is the document that this process has; in an emptied folder, numbers begin again."""
        if one.number != self._newest.generation:
            return False
        if self._listed is None:  # This process has just written it.
            self._listed = one
        return one == self._listed

    async def _delete_old(self, listed: list[NumberedObject], last_good: int) -> None:
        """Delete generations that are not needed any more, the last one that was whole never."""
        for one in listed[KEPT - 1 :]:
            if one.number < last_good:
                try:
                    await self._objects.delete(one.number)
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
