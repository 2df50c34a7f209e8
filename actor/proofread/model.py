"""Requests to a proofreader and its answers: plain values, which travel to a process of their own.

The caller states what the table's format says: which columns there are, and how files name them; which rows are
deleted. The reader knows no format and no log.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from shared.run_counters import RunCounter


class ColumnsUnclear(Exception):  # noqa: N818 - the name describes the event
    """The format does not say which of a file's columns is which."""


class CannotRead(Exception):  # noqa: N818
    """A reader does not read a file, a type or a value; another one may."""


class FoundBy(StrEnum):
    """How the columns of files are found: by field ids (Iceberg, Delta's mode `id`), or by names."""

    ID = "id"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the table, as files store it.

    kind: `boolean`, `int8` to `int64`, `float`, `double`, `decimal(P,S)`, `string`, `binary`, `fixed(N)`, `uuid`,
    `date`, `time`, `timestamp`, `timestamptz`, `timestamp_ns`, `timestamptz_ns`, `variant`, `struct`, `list`, `map`, or
    any other word, which no reader reads; a `row_id` and a `row_version` that a file lacks are `ProofFile`'s.
    id: field id, None where the format gives none. shown: what people call it, if files call it otherwise.
    mapped: names that a name mapping allows for a field without id. default: initial default as the format's JSON.
    children: the fields of a struct; the element; key and value.
    """

    name: str
    kind: str
    id: int | None = None
    mapped: tuple[str, ...] = ()
    default: str | None = None
    children: tuple["Field", ...] = ()
    shown: str = ""


class DeleteForm(StrEnum):
    """In which form deleted rows are named."""

    DELTA_VECTOR = "delta_vector"  # `text` is the descriptor's JSON.
    PUFFIN_VECTOR = "puffin_vector"  # A blob at `offset` of `size_bytes`.
    POSITIONS = "positions"  # A Parquet file of Iceberg with paths and positions.
    EQUALITY = "equality"  # A Parquet file of Iceberg with values of the fields `key_ids`.
    OTHERS = "others"  # All rows but those at the positions of `text`, a JSON array.
    OVER = "over"  # Rows with a lesser value of a column; `text` is a JSON array of its name and of the bound.
    OLDER = "older"  # Rows for which `Rewritten.newest` finds a newer one.


@dataclass(frozen=True, slots=True)
class Deletes:
    """Deleted rows of a file; `rows` is how many the metadata say, None where they do not."""

    form: DeleteForm
    path: str = ""
    text: str = ""
    offset: int = 0
    size_bytes: int = 0
    rows: int | None = None
    key_ids: tuple[int, ...] = ()


OLDER = Deletes(DeleteForm.OLDER)


@dataclass(frozen=True, slots=True)
class ProofFile:
    """A Parquet file with the deletes that apply to it; `path` is a location that the reader can open.

    A location is a path or an address (`/a`, `file:/a`, `s3://b/a`, `s3a://b/a`) in which nothing is percent-encoded.

    rows: stored rows by the metadata, None where they do not say. constants: values of fields (by id) that the
    file lacks and whose value its partition has, as the text in a default's JSON: dates and times in ISO form, bytes
    in hex. first_row_id: where the table gives ids to rows.
    sequence: what rows inherit as the number of their last update.
    """

    path: str
    size_bytes: int
    rows: int | None = None
    deletes: tuple[Deletes, ...] = ()
    constants: Mapping[int, str | None] = field(default_factory=dict, hash=False)
    first_row_id: int | None = None
    sequence: int | None = None


@dataclass(frozen=True, slots=True)
class NewestRows:
    """Rule by which only the newest row of a key stays: columns as files name them, those that they all lack left out.

    beside: live files of the partition in which no row is older; newer ones may lie there.
    """

    keys: tuple[str, ...]
    sequence: tuple[str, ...]
    delete_marker: str | None = None
    beside: tuple[ProofFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A group to proofread.

    table: its location, for messages. copied: its row groups were copied as bytes. newest: which rows of files with
    deletes of the form `OLDER` stay.
    """

    table: str
    partition: str
    columns: tuple[Field, ...]
    found_by: FoundBy
    inputs: tuple[ProofFile, ...]
    outputs: tuple[ProofFile, ...]
    copied: bool = False
    newest: NewestRows | None = None

    @property
    def read_files(self) -> tuple[ProofFile, ...]:
        """All data files that a reader opens."""
        return (*self.inputs, *self.outputs, *(self.newest.beside if self.newest else ()))

    def at_places(self, chosen: Iterable[Sequence[int]], places: Sequence[int]) -> "Rewritten":
        """Return the group as if it held the rows at these positions of each input, and at these places of its output.

        Raises ValueError for a group with several outputs.
        """
        (output,) = self.outputs
        inputs = tuple(_only(file, rows) for file, rows in zip(self.inputs, chosen, strict=True))
        return replace(self, inputs=inputs, outputs=(_only(output, places),))


def _only(file: ProofFile, positions: Sequence[int]) -> ProofFile:
    return replace(file, deletes=(Deletes(DeleteForm.OTHERS, text=json.dumps(list(positions))),))


class Reading(StrEnum):
    """Means by which a group was compared."""

    ROWS = "rows"
    BYTES = "bytes"
    NONE = "none"  # Not compared: switched off, or no reader can read it.


PROOF_COUNTERS: Mapping[Reading, RunCounter] = {
    Reading.ROWS: RunCounter.GROUPS_PROOFREAD_BY_ROWS,
    Reading.BYTES: RunCounter.GROUPS_PROOFREAD_BY_BYTES,
    Reading.NONE: RunCounter.GROUPS_UNVERIFIED,
}


@dataclass(frozen=True, slots=True)
class Proof:
    """Result of proofreading a group in which nothing differs.

    unverified_because: why it was not compared; empty if it was. reader: which one; cpu_ms: what it took.
    """

    reading: Reading
    rows: int | None = None
    unverified_because: str = ""
    reader: str = ""
    cpu_ms: int = 0

    @property
    def figures(self) -> Mapping[str, int]:
        """Figures that it adds to the counters of a run."""
        return {PROOF_COUNTERS[self.reading]: 1, RunCounter.PROOFREAD_CPU_MS: self.cpu_ms}

    def joined(self, other: "Proof") -> "Proof":
        """Return what both comparisons of one group found; unverified if one of them is."""
        weaker = other if other.unverified_because else self
        return replace(weaker, cpu_ms=self.cpu_ms + other.cpu_ms)


def weakest(proofs: Iterable[Proof | None]) -> str:
    """Return what all groups of a commit were compared by at least, as its metadata say it."""
    found = {Reading.NONE if one is None else one.reading for one in proofs}
    if Reading.NONE in found:
        return "unverified"
    return str(Reading.BYTES if Reading.BYTES in found else Reading.ROWS)
