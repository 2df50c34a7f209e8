"""Damage is reported with its position: table, file of the log, line, and what was expected there.

Guessing would make the state wrong forever, and a report without a position cannot be acted on.
"""

from dataclasses import dataclass

from shared.errors import Corrupt, NoTable, Unsupported

SHOWN_CHARS = 80
"""Characters of a damaged value that a message quotes; the value may be megabytes long."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a table's log: `name` is its key below `_delta_log`, `version` the one it belongs to."""

    location: str
    version: int
    name: str

    def corrupt(self, position: int, problem: str) -> Corrupt:
        """Return the error for damage; positions count lines of JSON and rows of Parquet from 1, 0 means the whole."""
        return Corrupt(f"{self._place(position)}: {problem}")

    def unsupported(self, position: int, problem: str) -> Unsupported:
        """Return the error for something that is well-formed but not understood here."""
        return Unsupported(f"{self._place(position)}: {problem}", field="table", allowed="Delta tables read by path")

    def wrong(self, position: int, field: str, found: object, expected: str) -> Corrupt:
        """Return the error for a field that holds something else than it must."""
        return self.corrupt(position, f"{field} is {shown(found)}, expected {expected}")

    def _place(self, position: int) -> str:
        unit = "row" if self.name.endswith(".parquet") else "line"
        spot = f", {unit} {position}" if position else ""
        return f"{self.location}: version {self.version}, _delta_log/{self.name}{spot}"


def shown(value: object) -> str:
    """Return a value as a message quotes it: shortened, and `missing` for None."""
    if value is None:
        return "missing"
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def no_log(location: str) -> NoTable:
    """Return the error for a log that does not define its version."""
    return NoTable(f"{location}: there is no Delta log", field="location", allowed="a directory with a _delta_log")
