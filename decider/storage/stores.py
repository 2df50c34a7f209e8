"""One client per bucket, however many tables lie in it: clients hold connections and request credentials.

A client for each table would ask the cloud for a token per table, and keep a connection per table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from obstore.exceptions import BaseError
from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url

from decider.storage.reading_threads import ReadingThreads
from shared.errors import InvalidInput, NoTable
from shared.paths.locations import canonical_location, decoded_path
from shared.paths.store_options import StoreOptions

MAX_RETRIES = 3
"""Retries inside the client, of answers 5xx and 429 and of broken connections. More would delay the next table; the
sweep tries again anyway."""

RETRY_FOR_S = 20
"""Seconds after the first attempt in which the client may retry."""

CLIENT_OPTIONS = frozenset({"allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "timeout"})
"""Store options that configure the HTTP client and not the store; obstore takes them apart from the others."""


@dataclass(frozen=True, slots=True)
class RootedStore:
    """A client and the prefix below it (`""` for none) at which a table's location begins."""

    client: ObjectStore
    prefix: str = ""
    folder: Path | None = None
    """Where the location lies on this machine's disk, None if it does not."""
    threads: ReadingThreads = field(default_factory=ReadingThreads)
    """In which files of a folder are read."""

    def key(self, below: str) -> str:
        """Return the client's key for a key below the location."""
        return f"{self.prefix}/{below}" if self.prefix else below


class ObjectStores:
    """Opens locations with the options, and keeps one client per bucket for all tables in it."""

    def __init__(self, options: StoreOptions | None = None) -> None:
        self._options = options or StoreOptions()
        self._clients: dict[str, ObjectStore] = {}
        self.threads = ReadingThreads()

    def open(self, location: str) -> RootedStore:
        """Return a client rooted at a location.

        Raises InvalidInput for an option that the store does not know and for a directory that does not exist.
        """
        canonical = canonical_location(location)
        scheme, _, rest = canonical.partition("://")
        if scheme == "memory":
            return RootedStore(MemoryStore())
        if scheme == "file":
            directory = _directory(canonical)
            return RootedStore(LocalStore(directory), folder=directory, threads=self.threads)
        bucket = rest.partition("/")[0]
        place = f"{scheme}://{bucket}"
        client = self._clients.get(place)
        if client is None:
            client = self._clients[place] = _connect(place, self._options.at(place))
        return RootedStore(client, decoded_path(canonical).strip("/"))


def _directory(canonical: str) -> Path:
    directory = Path(decoded_path(canonical))
    if not directory.is_dir():
        raise NoTable(f"there is no directory at {canonical}", field="location", allowed="a table's location")
    return directory


def _connect(place: str, options: Mapping[str, str]) -> ObjectStore:
    # The store checks the names itself; its types list them per provider, which a mapping of settings cannot promise.
    config: Any = {name: value for name, value in options.items() if name not in CLIENT_OPTIONS}
    client: Any = {name: value for name, value in options.items() if name in CLIENT_OPTIONS}
    retry: Any = {"max_retries": MAX_RETRIES, "retry_timeout": timedelta(seconds=RETRY_FOR_S)}
    try:
        store: ObjectStore = from_url(place, config=config, client_options=client, retry_config=retry)
    except (BaseError, ValueError) as problem:
        first_line = str(problem).split("\n", 1)[0]
        raise InvalidInput(
            f"no store can be opened for {place}: {first_line}; see LAKEWRIGHT_STORE_OPTIONS", field="options"
        ) from problem
    return store
