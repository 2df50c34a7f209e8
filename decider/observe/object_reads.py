"""Every call to an object store passes here: it is counted, bounded in time, and fails with one of our errors.

What a table costs to follow is the number of requests it makes, so a request that is not counted is a cost that
nobody sees. And a caller has to know whether to try again, which the store's own errors do not say.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from obstore.exceptions import (
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)

from decider.observe.stores import Rooted
from shared.errors import LakewrightError, PermanentError, RetryableError

LIST_PAGE = 1_000
"""Keys in one page of a listing, the most that S3 returns to one request; a started page counts as one LIST."""

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

    def __init__(self, place: Rooted, *, location: str, meter: ReadMeter) -> None:
        self._place = place
        self._meter = meter
        self.location = location

    async def get(self, key: str) -> bytes | None:
        """Return an object's bytes, None if there is no such object."""
        self._meter.add(ReadKind.GET)
        try:
            found = await self._place.client.get_async(self._place.key(key))
            return bytes(await found.bytes_async())
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as problem:
            raise self._failed("read", key, problem) from problem

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

    def _failed(self, doing: str, key: str, problem: Exception) -> LakewrightError:
        first_line = str(problem).split("\n", 1)[0]
        message = f"{self.location}: cannot {doing} {key}: {first_line}"
        if isinstance(problem, _HOPELESS):
            return PermanentError(f"{message}; check the store's options and the rights of this service")
        return RetryableError(message)
