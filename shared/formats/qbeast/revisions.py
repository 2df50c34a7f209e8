"""Revisions of a Qbeast index: columns and cube size that files are indexed by, from a table's properties.

Most fields are only needed to index rows. Unknown ones are ignored, as the library does.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.errors import Corrupt
from shared.formats.qbeast.cubes import CubeSpace
from shared.formats.qbeast.names import LAST_REVISION, NOT_INDEXED, REVISION_PREFIX
from shared.whole_numbers import whole_number

_TRANSFORMER = "Transformer"
_LIBRARY_NAMES = {"hash": "hashing", "stringhistogram": "histogram"}
"""How the library's option `columnsToIndex` names a transformer whose class has another name."""


@dataclass(frozen=True, slots=True)
class IndexedColumn:
    """A column that rows are indexed by; `kind` is how its values are mapped, such as `linear` or `hashing`."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Revision:
    """One state of the index's parameters; `desired_cube_size` is in rows."""

    id: int
    desired_cube_size: int
    columns: tuple[IndexedColumn, ...]

    @property
    def space(self) -> CubeSpace:
        """The space of its columns."""
        return CubeSpace(len(self.columns))


@dataclass(frozen=True, slots=True)
class Revisions:
    """All revisions of a table by number; `last`: the newest one, 0 where none is indexed yet."""

    last: int
    by_id: Mapping[int, Revision]

    def get(self, revision: int) -> Revision | None:
        """Return a revision that files can be indexed under, None if there is none of this number."""
        return self.by_id.get(revision) if revision > NOT_INDEXED else None


def decode_revisions(configuration: Mapping[str, str]) -> Revisions:
    """Read the revisions from a table's properties; raises Corrupt where one cannot be read or the last is missing."""
    last = _number(LAST_REVISION, configuration.get(LAST_REVISION, ""))
    found = {}
    for key, text in configuration.items():
        if key.startswith(REVISION_PREFIX):
            number = _number(key, key.removeprefix(REVISION_PREFIX))
            found[number] = _revision(number, key, text)
    if last != NOT_INDEXED and last not in found:
        raise Corrupt(f"{LAST_REVISION} is {last}, but the table has no property {REVISION_PREFIX}{last}")
    return Revisions(last, found)


def _revision(number: int, key: str, text: str) -> Revision:
    try:
        raw = json.loads(text)
        columns = tuple(_column(one) for one in raw["columnTransformers"])
        size = raw["desiredCubeSize"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
        raise Corrupt(f"{key} cannot be read as a revision: {problem!r}") from problem
    if type(size) is not int or size < 1 or not columns:
        raise Corrupt(f"{key}: expected a positive desiredCubeSize, and columnTransformers")
    return Revision(number, size, columns)


def _column(raw: Mapping[str, Any]) -> IndexedColumn:
    kind = str(raw["className"]).rpartition(".")[2].removesuffix(_TRANSFORMER).lower()
    return IndexedColumn(str(raw["columnName"]), _LIBRARY_NAMES.get(kind, kind))


def _number(key: str, text: str) -> int:
    found = whole_number(text)
    if found is None:
        raise Corrupt(f"{key}: {text!r} is no number of a revision")
    return found
