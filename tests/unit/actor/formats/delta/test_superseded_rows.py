"""Superseded rows are found by Spark; here is what becomes of the names that it shows."""

import json
from typing import Any

from actor.formats.delta.superseded_rows import FILE, SupersededRows


class Frame:
    """A frame of which only the rows as JSON matter."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self.rows = [json.dumps(row) for row in rows]

    def __getattr__(self, _name: str) -> Any:
        return lambda *_: self

    def toJSON(self) -> "Frame":  # noqa: N802 - Spark's name
        return self

    def collectAsList(self) -> list[str]:  # noqa: N802 - Spark's name
        return self.rows


def test_files_are_called_as_they_are_called_and_not_as_spark_escapes_them() -> None:
    names = ("a%20b.parquet", "a%2520b.parquet", "a+b.parquet", "\u00fc.parquet")
    rows = SupersededRows.__new__(SupersededRows)
    rows._scala = rows._functions = Frame()
    rows._ranked = Frame(*({FILE: name, "__lakewright_rows": place} for place, name in enumerate(names)))
    assert rows.counts() == {"a b.parquet": 0, "a%20b.parquet": 1, "a+b.parquet": 2, "\u00fc.parquet": 3}
