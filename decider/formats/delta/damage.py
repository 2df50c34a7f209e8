"""Files of the log are read line by line, and damage is reported with its position: table, file, line, expectation.

Guessing would make the state wrong forever, and a report without a position cannot be acted on. orjson reads the
lines, more than twice as fast as the standard library. What it refuses is read again by the standard library, so that
both accept the same lines, and damage is reported in one way: a lone half of a surrogate pair or NaN in a field that is
not used is no reason to refuse a table.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

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


MAX_DAMAGED_BYTES = 16 * 1024 * 1024
"""Longest line that is read a second time, which takes ten times the memory; no writer has so long a one."""

_SPACES = b" \t\r"


def split_lines(data: bytes) -> Sequence[bytes]:
    """Return the lines of a JSON file of the log; only line feeds end a line, for texts may hold other breaks."""
    return data.split(b"\n")


def parsed_lines(lines: Iterable[bytes], log: LogFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the position, from 1 on, and the object of each line that is not blank; raises Corrupt for other lines.

    Integers beyond 64 bits come out as floats: Delta has none, so that where a number is needed they are refused.
    """
    for position, line in enumerate(lines, 1):
        try:
            action = orjson.loads(line)
        except orjson.JSONDecodeError:
            if not line.strip(_SPACES):
                continue
            action = _read_slowly(line, log, position)
        if type(action) is not dict:
            raise log.wrong(position, "the line", line.decode(), "one JSON object")
        yield position, action


def _read_slowly(line: bytes, log: LogFile, position: int) -> Any:
    if len(line) >= MAX_DAMAGED_BYTES:
        raise log.corrupt(position, f"expected one JSON object, found {len(line)} bytes that are none")
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError as problem:
        raise log.corrupt(position, f"expected UTF-8: {problem}") from problem
    except (ValueError, RecursionError) as problem:
        raise log.corrupt(position, f"expected one JSON object, found damage: {problem}") from problem
