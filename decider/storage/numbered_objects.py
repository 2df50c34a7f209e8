"""Numbered objects below one location, each of which only one of several writers can create.

A conditional put is the only atomic step that local file systems and all object stores have in common. So an object is
never replaced: a change is a new object with the next number, and the newest one counts.
"""

import asyncio
import os
import re
from dataclasses import dataclass
from pathlib import Path

from obstore.exceptions import AlreadyExistsError, BaseError

from decider.storage.object_reads import ObjectReader, ReadMeter, storage_failure
from decider.storage.stores import ObjectStores, RootedStore
from shared.errors import InvalidInput, PermanentError
from shared.paths.locations import canonical_location, decoded_path

_NAME = re.compile(r"(\d{12})\.json")
"""Twelve digits: names sort like numbers, for people who list the folder."""

CONDITION_CHECK = "condition-check"
"""Object that exists already, on which a store shows whether it refuses to replace what is there."""

PRIVATE_FOLDER = 0o700
"""A local folder that is created for them is this user's alone, as all that a decider keeps."""


@dataclass(frozen=True, slots=True)
class NumberedObject:
    """One object as it is listed: another one of the same number has another size or time."""

    number: int
    size_bytes: int
    changed_ms: int


class NumberedObjects:
    """The objects `000000000001.json` and so on below a location; a local folder is created with the first of them."""

    def __init__(self, stores: ObjectStores, location: str, meter: ReadMeter) -> None:
        self._stores = stores
        self._meter = meter
        self._opened: RootedStore | None = None
        self._refuses_to_replace = False
        self.location = canonical_location(location)

    def name(self, number: int) -> str:
        """Return the full name of an object, for messages."""
        return f"{self.location}/{_key(number)}"

    async def objects(self) -> list[NumberedObject]:
        """Return all objects, the newest first. Raises LakewrightError if they cannot be listed."""
        listed = await self._reader().entries()
        found = ((_NAME.fullmatch(key), size, changed_ms) for key, size, changed_ms in listed)
        objects = (NumberedObject(int(match[1]), size, changed_ms) for match, size, changed_ms in found if match)
        return sorted(objects, key=lambda one: one.number, reverse=True)

    async def read(self, number: int) -> bytes | None:
        """Return an object, None if it was deleted. Raises LakewrightError if it cannot be read."""
        return await self._reader().get(_key(number))

    async def create(self, number: int, data: bytes) -> bool:
        """Create an object; False if it exists with another content. Raises LakewrightError if it cannot be written.

        One that exists with this content was created by this call, whose first response was lost. Raises PermanentError
        for a store that would replace what is there: of two writers at once, one would be lost.
        """
        store, key = self._store(), _key(number)
        if store.folder is None:
            await self._require_conditions(store)
        try:
            await store.client.put_async(store.key(key), data, mode="create")
            if store.folder is not None:
                await asyncio.to_thread(_sync, store.folder / key)
        except AlreadyExistsError:
            return await self.read(number) == data
        except (BaseError, OSError) as problem:
            raise storage_failure(self.location, f"write {key}", problem) from problem
        return True

    async def _require_conditions(self, store: RootedStore) -> None:
        """Check once that the store does not create what exists: the check's object is the first that exists twice."""
        if self._refuses_to_replace:
            return
        text = b"Written by Lakewright to check that the store refuses to create an object that exists.\n"
        for _ in range(2):
            try:
                await store.client.put_async(store.key(CONDITION_CHECK), text, mode="create")
            except AlreadyExistsError:
                self._refuses_to_replace = True
                return
            except (BaseError, OSError) as problem:
                raise storage_failure(self.location, f"write {CONDITION_CHECK}", problem) from problem
        raise PermanentError(
            f"{self.location}: the store replaces objects although it was asked to create them only (conditional "
            "puts, If-None-Match), so two deciders would lose each other's changes; use another store, or a folder"
        )

    async def delete(self, number: int) -> None:
        """Delete an object, if it is there. Raises LakewrightError if the store refuses."""
        store, key = self._store(), _key(number)
        try:
            await store.client.delete_async(store.key(key))
        except FileNotFoundError:
            return
        except (BaseError, OSError) as problem:
            raise storage_failure(self.location, f"delete {key}", problem) from problem

    def _reader(self) -> ObjectReader:
        return ObjectReader(self._store(), location=self.location, meter=self._meter)

    def _store(self) -> RootedStore:
        if self._opened is None:
            if self.location.startswith("file:"):
                _create_folder(Path(decoded_path(self.location)))
            self._opened = self._stores.open(self.location)
        return self._opened


def _key(number: int) -> str:
    return f"{number:012d}.json"


def _create_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    except OSError as problem:
        raise InvalidInput(f"the folder {folder} cannot be created: {problem.strerror}") from problem


def _sync(path: Path) -> None:
    """Have a file and its name survive a power cut."""
    for one in (path, path.parent):
        descriptor = os.open(one, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
