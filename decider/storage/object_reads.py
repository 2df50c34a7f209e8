"""Every call to an object store is made here: it is counted, bounded in time, and fails with one of our errors.

The cost of tracking a table is its number of requests, so uncounted requests would hide costs. A caller also has to
know whether to retry, which the store's own errors do not show.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from obstore.exceptions import (
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)

from decider.storage.local_files import MAX_OBJECT_BYTES, check_size, read_file, read_files
from decider.storage.reading_threads import READ_DEADLINE_S
from decider.storage.stores import RootedStore
from shared.errors import LakewrightError, PermanentError, RetryableError

if TYPE_CHECKING:
    from obstore import GetResult

LIST_PAGE = 1_000
"""Keys in one page of a listing, the most that S3 returns to one request; a started page counts as one LIST."""

AHEAD_OBJECTS = 16
"""Small objects requested at once: enough to hide the latency of a store."""

AHEAD_BYTES = 32 * 1024 * 1024
"""Bytes of objects that are read before they are used: commits have kilobytes, and a few hold hundreds of megabytes."""

_REFUSED = (PermissionError, PermissionDeniedError, UnauthenticatedError)
_HOPELESS = (InvalidPathError, NotSupportedError, UnknownConfigurationKeyError)

_STATUS = re.compile(r"status code: (\d{3})")
_REDIRECT = "redirect without LOCATION"
"""Error text of the client for S3's response to a request in another region than the bucket's."""

_ADVICE = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the options of LAKEWRIGHT_STORE_OPTIONS (access_key_id, "
    "secret_access_key, region, endpoint), or allow this service's role s3:GetObject and s3:ListBucket there",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS, or the options of LAKEWRIGHT_STORE_OPTIONS (service_account_path), or "
    "allow this service's account storage.objects.get and storage.objects.list there",
    "az": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or the options of LAKEWRIGHT_STORE_OPTIONS "
    "(account_name, account_key, client_id, tenant_id), or give this service the role Storage Blob Data Reader there",
}
_ADVICE["abfss"] = _ADVICE["az"]
_ADVICE_ELSEWHERE = "give this service the right to read there"


T = TypeVar("T")


class _Large:
    """Stands for an object that is too large to be read ahead."""


class ReadKind(StrEnum):
    """The kinds of request that an object store bills."""

    GET = "get"
    LIST = "list"
    HEAD = "head"


@dataclass(frozen=True, slots=True)
class ReadMeter:
    """Counts requests by kind; one meter may serve many logs of one event loop."""

    counts: Counter[ReadKind] = field(default_factory=Counter)

    def add(self, kind: ReadKind, requests: int = 1) -> None:
        """Count requests of one kind."""
        self.counts[kind] += requests


@dataclass(frozen=True, slots=True)
class ListedFolders:
    """Names of folders, in no order, and the number of requests that listing them took."""

    names: tuple[str, ...]
    requests: int = 1


class ObjectReader:
    """Reads the objects below one table's location."""

    def __init__(self, place: RootedStore, *, location: str, meter: ReadMeter) -> None:
        self._place = place
        self._meter = meter
        self.location = location

    async def get(self, key: str, max_bytes: int = MAX_OBJECT_BYTES) -> bytes | None:
        """Return an object's bytes, None if there is no such object; raises Corrupt for one that is larger."""
        found = await self.get_large(key, max_bytes)
        return None if found is None else bytes(found)

    async def get_large(self, key: str, max_bytes: int) -> memoryview | None:
        """Return an object's bytes as the store holds them, None if there is no such object; raises as `get` does.

        To copy hundreds of megabytes would stop the event loop for a tenth of a second.
        """
        self._meter.add(ReadKind.GET)
        try:
            if self._place.folder is not None:
                body = await self._read_locally(key, read_file, self._place.folder, key, max_bytes)
                return None if body is None else memoryview(body)
            async with asyncio.timeout(READ_DEADLINE_S):
                return await self._body(await self._requested(key), max_bytes)
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as problem:
            raise self._failed("read", key, problem) from problem

    async def get_each(self, keys: Sequence[str]) -> AsyncGenerator[bytes | None, None]:
        """Yield several objects in their order, None for each that does not exist; raises as `get` does.

        One thread reads local files one after the other, because handing each to the store's threads takes ten times as
        long as reading it. Other stores are requested at once, which hides their latency. At most `AHEAD_BYTES` and one
        object are in memory.
        """
        if self._place.folder is None:
            for start in range(0, len(keys), AHEAD_OBJECTS):
                async for body in self._each_remote(keys[start : start + AHEAD_OBJECTS]):
                    yield body
            return
        done = 0
        while done < len(keys):
            some = keys[done:]
            try:
                read = await self._read_locally(
                    some[0], read_files, self._place.folder, some, MAX_OBJECT_BYTES, AHEAD_BYTES
                )
            except OSError as problem:
                raise self._failed("read", f"{some[0]} to {some[-1]}", problem) from problem
            self._meter.add(ReadKind.GET, len(read))
            done += len(read)
            for body in read:
                yield body

    async def _each_remote(self, keys: Sequence[str]) -> AsyncGenerator[bytes | None, None]:
        """Read small objects at once, and each large one when its turn has come."""
        shared = AHEAD_BYTES // AHEAD_OBJECTS
        for key, found in zip(keys, await asyncio.gather(*(self._small(key, shared) for key in keys)), strict=True):
            yield await self.get(key) if isinstance(found, _Large) else found

    async def _small(self, key: str, max_bytes: int) -> "bytes | _Large | None":
        self._meter.add(ReadKind.GET)
        try:
            async with asyncio.timeout(READ_DEADLINE_S):
                found = await self._requested(key)
                if found.meta["size"] > max_bytes:
                    return _Large()
                return bytes(await found.bytes_async())
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as problem:
            raise self._failed("read", key, problem) from problem

    async def start(self, key: str, length: int) -> bytes | None:
        """Return the first bytes of an object, at most `length`, None if there is no such object."""
        self._meter.add(ReadKind.GET)
        try:
            if self._place.folder is not None:
                return await self._read_locally(key, read_file, self._place.folder, key, length, length)
            async with asyncio.timeout(READ_DEADLINE_S):
                return bytes(await self._place.client.get_range_async(self._place.key(key), start=0, length=length))
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as problem:
            if self._place.folder is not None:
                raise self._failed("read", key, problem) from problem
            # An empty object has no range; the whole read reports any other cause.
            body = await self.get(key)
            return None if body is None else body[:length]

    async def _requested(self, key: str) -> "GetResult":
        return await self._place.client.get_async(self._place.key(key))

    async def _body(self, found: "GetResult", max_bytes: int) -> memoryview:
        check_size(f"{self.location}/{found.meta['path']}", found.meta["size"], max_bytes)
        return memoryview(await found.bytes_async())

    async def _read_locally(self, key: str, read: Callable[..., T], *arguments: Any) -> T:
        return await self._place.threads.run(f"{self.location}/{key}", read, *arguments)

    async def list(self, prefix: str, *, after: str | None = None) -> Sequence[str]:
        """Return the keys below a prefix (after a key, if given), without the prefix, in ascending order."""
        names: list[str] = []
        pages = 0
        below = self._place.key(prefix)
        offset = None if after is None else f"{below}/{after}"
        try:
            async for page in self._pages(below, offset):
                pages += 1
                names.extend(entry["path"].removeprefix(below + "/") for entry in page)
        except FileNotFoundError:
            names.clear()
        except (BaseError, OSError) as problem:
            raise self._failed("list", prefix, problem) from problem
        finally:
            self._meter.add(ReadKind.LIST, max(pages, 1))
        return sorted(names)

    async def _pages(self, below: str | None, offset: str | None = None) -> AsyncGenerator[Any, None]:
        """Yield the pages of a listing; raises TimeoutError for one that does not come in time."""
        pages = aiter(self._place.client.list(below, offset=offset, chunk_size=LIST_PAGE))
        while True:
            # Not `wait_for`, which in Python 3.11 loses a cancellation that comes together with the page.
            async with asyncio.timeout(READ_DEADLINE_S):
                page = await anext(pages, None)
            if page is None:
                return
            yield page

    async def entries(self, prefix: str = "") -> Sequence[tuple[str, int, int]]:
        """Return key, size in bytes and time of last change in ms of each object below a prefix, in no order."""
        found: list[tuple[str, int, int]] = []
        pages = 0
        below = self._place.key(prefix).rstrip("/")
        start = f"{below}/" if below else ""
        try:
            async for page in self._pages(below or None):
                pages += 1
                found.extend(
                    (entry["path"].removeprefix(start), entry["size"], int(entry["last_modified"].timestamp() * 1000))
                    for entry in page
                )
        except FileNotFoundError as problem:
            # What went away midway is no empty folder: commits would be missing from what is known.
            if pages:
                raise self._failed("list", prefix or "/", problem) from problem
        except (BaseError, OSError) as problem:
            raise self._failed("list", prefix or "/", problem) from problem
        finally:
            self._meter.add(ReadKind.LIST, max(pages, 1))
        return found

    async def first_names(self, prefix: str) -> Sequence[str]:
        """Return the keys below a prefix, without it, as far as one request lists them; none if there are none."""
        below = self._place.key(prefix)
        self._meter.add(ReadKind.LIST)
        try:
            page = await anext(self._pages(below), None)
            return [entry["path"].removeprefix(below + "/") for entry in page or ()]
        except FileNotFoundError:
            return ()
        except (BaseError, OSError) as problem:
            raise self._failed("list", prefix, problem) from problem

    async def folders(self, path: str) -> ListedFolders:
        """Return the folders right below a path; none if there is no such path."""
        try:
            async with asyncio.timeout(READ_DEADLINE_S):
                found: Any = await self._place.client.list_with_delimiter_async(
                    self._place.key(path).rstrip("/") or None
                )
        except FileNotFoundError:
            return ListedFolders(())
        except (BaseError, OSError) as problem:
            raise self._failed("list", path, problem) from problem
        pages = 1 + (len(found["objects"]) + len(found["common_prefixes"])) // LIST_PAGE
        self._meter.add(ReadKind.LIST, pages)
        names = (prefix.rstrip("/").rpartition("/")[2] for prefix in found["common_prefixes"])
        return ListedFolders(tuple(name for name in names if name), pages)

    def _failed(self, doing: str, key: str, problem: Exception) -> LakewrightError:
        return storage_failure(self.location, f"{doing} {key}", problem)


def storage_failure(location: str, doing: str, problem: Exception) -> LakewrightError:
    """Return the error for a failed call to the store of a location, by whether a retry may help.

    doing: what failed, as in `read a key`.
    """
    first_line = str(problem).split("\n", 1)[0] or "no answer in time"
    message = f"{location}: cannot {doing}: {first_line}"
    # A refused listing is a generic error to the client, with the status in its text.
    match = _STATUS.search(first_line)
    status = int(match[1]) if match else 0
    if isinstance(problem, _REFUSED) or status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return PermanentError(f"{message}; {_ADVICE.get(location.partition(':')[0], _ADVICE_ELSEWHERE)}")
    if status == HTTPStatus.NOT_FOUND:
        return PermanentError(f"{message}; is there such a bucket at this endpoint?")
    if isinstance(problem, _HOPELESS) or _REDIRECT in first_line:
        return PermanentError(f"{message}; check LAKEWRIGHT_STORE_OPTIONS (region, endpoint)")
    return RetryableError(message)
