"""What each operation of a writer does to the rows of a table: the law that rows are compared with.

The rows of a snapshot are those of its parent with its operation applied. A rewrite has no operation: it changes none.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from json import dumps, loads
from random import Random
from typing import Any, NamedTuple

OPERATION_KEY = "stress.operation"
"""Entry of a snapshot's summary that names the operation which made it."""

GROUPS = 3
"""Values of the partition column."""

MOST_ROWS = 40
"""Rows of one append, and so the ids that an operation reserves."""


SQL_WEIGHTS = {"append": 8, "delete": 3, "update": 3, "merge": 3, "overwrite": 1}
"""Kinds of operations that SQL does, and how often."""


class Row(NamedTuple):
    """One row: `g` is the partition, and `v` counts updates; several rows may have one `id`."""

    id: int
    g: int
    v: int


Rows = Counter[Row]


class Made(NamedTuple):
    """A snapshot as the law sees it: its parent, and the text of its operation (None: a rewrite)."""

    parent: int | None
    operation: str | None


def new_rows(what: Mapping[str, Any]) -> list[Row]:
    """Return the rows that an append writes, or those of its group that an overwrite writes."""
    rows = [Row(number, number % GROUPS, 0) for number in range(what["start"], what["start"] + what["count"])]
    return [row for row in rows if row.g == what["g"]] if what["kind"] == "overwrite" else rows


def apply(text: str | None, rows: Rows) -> Rows:
    """Return the rows after an operation, None being a rewrite; raises ValueError for an unknown one."""
    if text is None:
        return rows
    what: dict[str, Any] = loads(text)
    match what["kind"]:
        case "append":
            return rows + Counter(new_rows(what))
        case "delete":
            return Counter({row: count for row, count in rows.items() if not _is_selected(what, row)})
        case "update":
            changed: Rows = Counter()
            for row, count in rows.items():
                changed[row._replace(v=row.v + 1) if _is_selected(what, row) else row] += count
            return changed
        case "merge":
            wanted = range(what["start"], what["start"] + what["count"])
            merged: Rows = Counter()
            for row, count in rows.items():
                merged[row._replace(v=row.v + 10) if row.id in wanted else row] += count
            known = {row.id for row in rows}
            return merged + Counter(Row(number, number % GROUPS, 0) for number in wanted if number not in known)
        case "overwrite":
            kept = Counter({row: count for row, count in rows.items() if row.g != what["g"]})
            return kept + Counter(new_rows(what))
    raise ValueError(f"unknown operation {text}")


def rows_of(snapshots: Mapping[int, Made], snapshot: int | None) -> Rows:
    """Return the rows that a snapshot must have: the operations that lead to it, from the first one on."""
    texts: list[str | None] = []
    while snapshot is not None:
        made = snapshots[snapshot]
        texts.append(made.operation)
        snapshot = made.parent
    rows: Rows = Counter()
    for text in reversed(texts):
        rows = apply(text, rows)
    return rows


def difference(wanted: Rows, found: Rows) -> str:
    """Return which rows are missing and which are too many, empty where there are none."""
    if wanted == found:
        return ""
    missing, extra = wanted - found, found - wanted
    return (
        f"{missing.total()} rows missing, {extra.total()} too many: missing {_first(missing)}, too many {_first(extra)}"
    )


def is_in_parts(text: str) -> bool:
    """Whether an operation may be made by several snapshots of one commit, so that nothing may return to between."""
    return bool(loads(text).get("in_parts"))


def _first(rows: Iterable[Row]) -> list[tuple[int, int, int]]:
    return [tuple(row) for row in sorted(rows)[:5]]


def _is_selected(what: Mapping[str, Any], row: Row) -> bool:
    return row.id % what["of"] == what["is"]


def chosen(random: Random, weights: Mapping[str, int]) -> str:
    """Return one of these kinds at random."""
    return random.choices(list(weights), list(weights.values()))[0]


def random_operation(random: Random, start: int, weights: Mapping[str, int]) -> dict[str, Any]:
    """Return an operation of SQL of one of these kinds; `start` is the first of the ids that it reserves."""
    kind = chosen(random, weights)
    if kind in ("delete", "update"):
        of = random.choice([7, 11, 23, 41])
        return {"kind": kind, "of": of, "is": random.randrange(of)}
    if kind == "merge":
        return {"kind": kind, "start": max(0, start - random.randrange(1, 60)), "count": 30}
    return {"kind": kind, "start": start, "count": random.randrange(3, MOST_ROWS), "g": random.randrange(GROUPS)}


def encoded(what: Mapping[str, Any]) -> str:
    """Return the text of an operation as a snapshot's summary keeps it."""
    return dumps(what, separators=(",", ":"))
