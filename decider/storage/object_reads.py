"""Every call to an object store is made here: it is counted, bounded in time, and fails with one of our errors.

The cost of tracking a table is its number of requests, so uncounted requests would hide costs. A caller also has to
know whether to retry, which the store's own errors do not show.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from io import FileIO
from pathlib import Path
from typing import Any

from obstore.exceptions import (
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)

from decider.storage.stores import RootedStore
from shared.errors import LakewrightError, PermanentError, RetryableError

LIST_PAGE = 1_000
"""Keys in one page of a listing, the most that S3 returns to one request; a started page counts as one LIST."""

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

    async def get(self, key: str) -> bytes | None:
        """Return an object's bytes, None if there is no such object."""
        found = await self.get_large(key)
        return None if found is None else bytes(found)

    async def get_large(self, key: str) -> memoryview | None:
        """Return an object's bytes as the store holds them, None if there is no such object.

        To copy hundreds of megabytes would stop the event loop for a tenth of a second.
        """
        self._meter.add(ReadKind.GET)
        try:
            found = await self._place.client.get_async(self._place.key(key))
            return memoryview(await found.bytes_async())
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as problem:
            raise self._failed("read", key, problem) from problem

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return several small objects, None for each that does not exist; names without special characters only.

        One thread reads local files one after the other, because handing each to the store's threads takes ten times as
        long as reading it; other stores are requested at once, which hides their latency.
        """
        if self._place.folder is None:
            return list(await asyncio.gather(*map(self.get, keys)))
        self._meter.add(ReadKind.GET, len(keys))
        try:
            return await asyncio.to_thread(_read_files, self._place.folder, keys)
        except OSError as problem:
            raise self._failed("read", f"{keys[0]} to {keys[-1]}", problem) from problem

    async def start(self, key: str, length: int) -> bytes | None:
        """Return the first bytes of an object, at most `length`, None if there is no such object."""
        self._meter.add(ReadKind.GET)
        try:
            return bytes(await self._place.client.get_range_async(self._place.key(key), start=0, length=length))
        except FileNotFoundError:
            return None
        except (BaseError, OSError):
            # An empty object has no range; the whole read reports any other cause.
            body = await self.get(key)
            return None if body is None else body[:length]

    async def list(self, prefix: str, *, after: str | None = None) -> Sequence[str]:
        """Return the keys below a prefix (after a key, if given), without the prefix, in ascending order."""
        names: list[str] = []
        pages = 0
        below = self._place.key(prefix)
        offset = None if after is None else f"{below}/{after}"
        try:
            async for page in self._place.client.list(below, offset=offset, chunk_size=LIST_PAGE):
                pages += 1
                names.extend(entry["path"].removeprefix(below + "/") for entry in page)
        except FileNotFoundError:
            names.clear()
        except (BaseError, OSError) as problem:
            raise self._failed("list", prefix, problem) from problem
        finally:
            self._meter.add(ReadKind.LIST, max(pages, 1))
        return sorted(names)

    async def entries(self, prefix: str = "") -> Sequence[tuple[str, int, int]]:
        """Return key, size in bytes and time of last change in ms of each object below a prefix, in no order."""
        found: list[tuple[str, int, int]] = []
        pages = 0
        below = self._place.key(prefix).rstrip("/")
        start = f"{below}/" if below else ""
        try:
            async for page in self._place.client.list(below or None, chunk_size=LIST_PAGE):
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
            async for page in self._place.client.list(below, chunk_size=LIST_PAGE):
                return [entry["path"].removeprefix(below + "/") for entry in page]
        except FileNotFoundError:
            return ()
        except (BaseError, OSError) as problem:
            raise self._failed("list", prefix, problem) from problem
        return ()

    async def folders(self, path: str) -> ListedFolders:
        """Return the folders right below a path; none if there is no such path."""
        try:
            found: Any = await self._place.client.list_with_delimiter_async(self._place.key(path).rstrip("/") or None)
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
    first_line = str(problem).split("\n", 1)[0]
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


def _read_files(folder: Path, keys: Sequence[str]) -> list[bytes | None]:
    return [_read_file(f"{folder}/{key}") for key in keys]


def _read_file(path: str) -> bytes | None:
    try:
        with FileIO(path) as file:
            return file.readall()
    except (FileNotFoundError, NotADirectoryError):
        return None
