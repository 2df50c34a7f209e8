"""Every call to an object store passes here: it is counted, bounded in time, and fails with one of our errors.

What a table costs to follow is the number of requests it makes, so a request that is not counted is a cost that
nobody sees. And a caller has to know whether to try again, which the store's own errors do not say.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
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
from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url

from decider.observe.locations import canonical_location, decoded_path
from shared.errors import InvalidInput, LakewrightError, NoTable, PermanentError, RetryableError

LIST_PAGE = 1_000
"""Keys in one page of a listing, the most that S3 returns to one request; a started page counts as one LIST."""

MAX_RETRIES = 3
"""Retries inside the client. More would hold up the table behind this one; the sweep comes again anyway."""

RETRY_FOR_S = 20
"""Seconds after the first attempt in which the client may retry."""

CLIENT_OPTIONS = frozenset({"allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "timeout"})
"""Store options that configure the HTTP client and not the store; obstore takes them apart from the others."""

_HOPELESS = (
    PermissionDeniedError,
    UnauthenticatedError,
    InvalidPathError,
    NotSupportedError,
    UnknownConfigurationKeyError,
)


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


class ObjectReader:
    """Reads the objects below one table's location."""

    def __init__(self, store: ObjectStore, *, location: str, meter: ReadMeter) -> None:
        self._store = store
        self._meter = meter
        self.location = location

    async def get(self, key: str) -> bytes | None:
        """Return an object's bytes, None if there is no such object."""
        self._meter.add(ReadKind.GET)
        try:
            found = await self._store.get_async(key)
            return bytes(await found.bytes_async())
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as problem:
            raise self._failed("read", key, problem) from problem

    async def start(self, key: str, length: int) -> bytes | None:
        """Return the first bytes of an object, at most `length`, None if there is no such object."""
        self._meter.add(ReadKind.GET)
        try:
            return bytes(await self._store.get_range_async(key, start=0, length=length))
        except FileNotFoundError:
            return None
        except (BaseError, OSError):
            # An empty object has no range; whatever else it is, the whole read says.
            body = await self.get(key)
            return None if body is None else body[:length]

    async def list(self, prefix: str, *, after: str | None = None) -> Sequence[str]:
        """Return the keys below a prefix (after a key, if given), without the prefix, in ascending order."""
        names: list[str] = []
        pages = 0
        offset = None if after is None else f"{prefix}/{after}"
        try:
            async for page in self._store.list(prefix, offset=offset, chunk_size=LIST_PAGE):
                pages += 1
                names.extend(entry["path"].removeprefix(prefix + "/") for entry in page)
        except FileNotFoundError:
            names.clear()
        except (BaseError, OSError) as problem:
            raise self._failed("list", prefix, problem) from problem
        finally:
            self._meter.add(ReadKind.LIST, max(pages, 1))
        return sorted(names)

    def _failed(self, doing: str, key: str, problem: Exception) -> LakewrightError:
        first_line = str(problem).split("\n", 1)[0]
        message = f"{self.location}: cannot {doing} {key}: {first_line}"
        if isinstance(problem, _HOPELESS):
            return PermanentError(f"{message}; check the store's options and the rights of this service")
        return RetryableError(message)


def open_store(location: str, options: Mapping[str, str] | None = None) -> ObjectStore:
    """Return a client rooted at a location; `options` are those of obstore (`aws_region`, `endpoint`, `allow_http`).

    Raises InvalidInput for an option that the store does not know and for a directory that does not exist.
    """
    canonical = canonical_location(location)
    scheme = canonical.partition(":")[0]
    if scheme == "memory":
        return MemoryStore()
    if scheme == "file":
        directory = Path(decoded_path(canonical))
        if not directory.is_dir():
            raise NoTable(f"there is no directory at {canonical}", field="location", allowed="a table's location")
        return LocalStore(directory)
    chosen = options or {}
    # The store checks the names itself; its types list them per provider, which a mapping of settings cannot promise.
    config: Any = {key: value for key, value in chosen.items() if key not in CLIENT_OPTIONS}
    client: Any = {key: value for key, value in chosen.items() if key in CLIENT_OPTIONS}
    retry: Any = {"max_retries": MAX_RETRIES, "retry_timeout": timedelta(seconds=RETRY_FOR_S)}
    try:
        store: ObjectStore = from_url(canonical, config=config, client_options=client, retry_config=retry)
    except (BaseError, ValueError) as problem:
        first_line = str(problem).split("\n", 1)[0]
        raise InvalidInput(f"no store can be opened for {canonical}: {first_line}", field="options") from problem
    return store
