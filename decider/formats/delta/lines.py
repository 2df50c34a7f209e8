"""A JSON file of the log is read line by line, each line one object; a line that is not is damage with its place.

orjson reads the lines, more than twice as fast as the standard library. What it refuses is read again by the standard
library, so that both accept the same lines, and damage is reported in one way: a lone half of a surrogate pair or NaN
in a field that is not used is no reason to refuse a table.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from decider.formats.delta.damage import LogFile

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
