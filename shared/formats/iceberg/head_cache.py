"""Decoded metadata of the tables that were used last: they list every snapshot, so only what changed is read again."""

import threading
from collections import OrderedDict

from shared.formats.iceberg.metadata import TableHead

TABLES = 32
"""Tables whose metadata are kept: those that a process works on now, and some that come back soon."""


class HeadCache:
    """The newest metadata of each table; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heads: OrderedDict[str, tuple[str, TableHead]] = OrderedDict()

    def get(self, location: str) -> tuple[str, TableHead | None]:
        """Return identity and metadata of a table as they were kept, an empty text and None if none were."""
        with self._lock:
            return self._heads.get(location, ("", None))

    def put(self, location: str, identity: str, head: TableHead) -> None:
        """Keep the metadata of a table, which its identity distinguishes from any others, instead of earlier ones."""
        with self._lock:
            self._heads.pop(location, None)
            self._heads[location] = (identity, head)
            if len(self._heads) > TABLES:
                self._heads.popitem(last=False)
