"""Finds the whole commands in an increment of an append-only file, whatever stands between and behind them."""

import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

Data = bytes | mmap.mmap

_MAX_LINE_BYTES = 1_024
"""Longest line of a number or annotation that the servers write and read (AOF_ANNOTATION_LINE_MAX_LEN)."""
_ZEROS_AT_ONCE = 65_536
_END = b"\r\n"


class Ending(StrEnum):
    """The bytes behind the last whole command: nothing, the beginning of one, or something else."""

    WHOLE = "whole"
    TORN = "torn"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Commands:
    """Ranges of whole commands; a transaction counts with its end only, and zeros are between ranges."""

    ranges: tuple[tuple[int, int], ...]
    ending: Ending

    @property
    def total_bytes(self) -> int:
        """Return the bytes of all whole commands."""
        return sum(end - start for start, end in self.ranges)

    @property
    def has_zeros(self) -> bool:
        """Return whether zeros stand before or between commands."""
        return [start for start, _ in self.ranges] not in ([], [0])


def read_commands(data: Data) -> Commands:
    """Read an increment to its end, or to what is neither a command nor zeros."""
    ranges: list[tuple[int, int]] = []
    start = at = 0
    transaction: int | None = None
    ending = Ending.WHOLE
    while at < len(data):
        if data[at] == 0:
            ranges.append((start, at))
            start = at = _behind_zeros(data, at)
            continue
        found = _command(data, at)
        if isinstance(found, Ending):
            ending = found
            break
        if found.name == b"MULTI":
            transaction = at
        elif found.name == b"EXEC":
            transaction = None
        at = found.end
    ranges.append((start, at))
    if transaction is not None and ending is Ending.WHOLE:
        ending = Ending.TORN
    return Commands(tuple(_until(ranges, at if transaction is None else transaction)), ending)


@dataclass(frozen=True, slots=True)
class _Command:
    name: bytes
    end: int


def _command(data: Data, at: int) -> _Command | Ending:
    """Return the command or annotation at a position, or what is there instead."""
    if data[at : at + 1] == b"#":
        line_end = data.find(_END, at, at + _MAX_LINE_BYTES)
        return _Command(b"", line_end + 2) if line_end >= 0 else _no_line(data, at)
    parts = _number(data, at, b"*")
    if isinstance(parts, Ending):
        return parts
    (count, at), name = parts, b""
    for number in range(count):
        length = _number(data, at, b"$")
        if isinstance(length, Ending):
            return length
        size, at = length
        if at + size + 2 > len(data):
            return Ending.TORN
        if data[at + size : at + size + 2] != _END:
            return Ending.DAMAGED
        name = name if number else bytes(data[at : at + min(size, _MAX_LINE_BYTES)]).upper()
        at += size + 2
    return _Command(name, at)


def _number(data: Data, at: int, mark: bytes) -> tuple[int, int] | Ending:
    """Return the number in a line that begins with a mark, and where the next line begins."""
    if data[at : at + 1] not in (mark, b""):
        return Ending.DAMAGED
    line_end = data.find(_END, at, at + _MAX_LINE_BYTES)
    if line_end < 0:
        return _no_line(data, at)
    digits = bytes(data[at + 1 : line_end])
    return (int(digits), line_end + 2) if digits.isdigit() else Ending.DAMAGED


def _no_line(data: Data, at: int) -> Ending:
    return Ending.TORN if len(data) - at < _MAX_LINE_BYTES else Ending.DAMAGED


def _behind_zeros(data: Data, at: int) -> int:
    while at < len(data):
        some = bytes(data[at : at + _ZEROS_AT_ONCE])
        rest = some.lstrip(b"\0")
        at += len(some) - len(rest)
        if rest:
            break
    return at


def _until(ranges: Iterable[tuple[int, int]], limit: int) -> Iterator[tuple[int, int]]:
    for start, end in ranges:
        if start < min(end, limit):
            yield start, min(end, limit)
