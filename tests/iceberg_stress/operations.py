"""What each operation of the stress does to the rows of a table: the law that every snapshot is checked against.

A snapshot's rows are those of its parent with its operation applied. A rewrite has no operation: it changes nothing.
"""

from collections import Counter
from collections.abc import Mapping
from json import dumps, loads
from random import Random
from typing import Any, NamedTuple

OPERATION_KEY = "stress.operation"
"""Entry of a snapshot's summary that names the operation which made it."""

GROUPS = 3
"""Values of the partition column."""


class Row(NamedTuple):
    """One row: `g` is the partition, `id` is not unique, and `v` counts updates."""

    id: int
    g: int
    v: int


Rows = Counter[Row]


def appended(start: int, count: int) -> list[Row]:
    """Return the rows that an append of `count` ids from `start` on writes."""
    return [Row(number, number % GROUPS, 0) for number in range(start, start + count)]


def apply(text: str | None, rows: Rows) -> Rows:
    """Return the rows after an operation, None being a rewrite; raises ValueError for an unknown one."""
    if text is None:
        return rows
    what: dict[str, Any] = loads(text)
    match what["kind"]:
        case "append":
            return rows + Counter(appended(what["start"], what["count"]))
        case "delete":
            return Counter({row: count for row, count in rows.items() if not _is_meant(what, row)})
        case "update":
            changed: Rows = Counter()
            for row, count in rows.items():
                changed[row._replace(v=row.v + 1) if _is_meant(what, row) else row] += count
            return changed
        case "merge":
            meant = range(what["start"], what["start"] + what["count"])
            merged: Rows = Counter()
            for row, count in rows.items():
                merged[row._replace(v=row.v + 10) if row.id in meant else row] += count
            known = {row.id for row in rows}
            return merged + Counter(Row(number, number % GROUPS, 0) for number in meant if number not in known)
        case "overwrite":
            kept = Counter({row: count for row, count in rows.items() if row.g != what["g"]})
            return kept + Counter(row for row in appended(what["start"], what["count"]) if row.g == what["g"])
    raise ValueError(f"unknown operation {text}")


def follows_from(text: str | None, before: Rows, after: Rows) -> bool:
    """Return whether a snapshot's rows follow from its parent's; some deletes are made by several snapshots."""
    if text is not None and loads(text).get("in_parts"):
        return apply(text, before) == apply(text, after) and not after - before
    return apply(text, before) == after


def _is_meant(what: Mapping[str, Any], row: Row) -> bool:
    return row.id % what["of"] == what["is"]


def random_operation(random: Random, start: int) -> dict[str, Any]:
    """Return an operation; `start` is the next unused id."""
    kind = random.choices(["append", "delete", "update", "merge", "overwrite"], [10, 3, 3, 3, 1])[0]
    if kind in ("delete", "update"):
        of = random.choice([7, 11, 23, 41])
        return {"kind": kind, "of": of, "is": random.randrange(of)}
    if kind == "merge":
        return {"kind": kind, "start": max(0, start - random.randrange(1, 60)), "count": 30}
    return {"kind": kind, "start": start, "count": random.randrange(3, 40), "g": random.randrange(GROUPS)}


def encoded(what: Mapping[str, Any]) -> str:
    """Return the text of an operation as a snapshot's summary keeps it."""
    return dumps(what, separators=(",", ":"))
