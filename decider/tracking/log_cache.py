"""The logs that this process has open: a reader per table, the least recently used closed first."""

from collections import OrderedDict
from collections.abc import Callable

from decider.formats.table_format import TableReader

OPEN_LOGS = 1_000
"""Logs kept open; an open log is a client object of a few kilobytes."""


class LogCache:
    """Opens logs on demand and keeps the last used ones."""

    def __init__(self, open_table: Callable[[str], TableReader]) -> None:
        self._open_table = open_table
        self._open: OrderedDict[str, TableReader] = OrderedDict()

    def at(self, location: str) -> TableReader:
        """Return the reader of the log at a location."""
        reader = self._open.pop(location, None) or self._open_table(location)
        self._open[location] = reader
        if len(self._open) > OPEN_LOGS:
            self._open.popitem(last=False)
        return reader
