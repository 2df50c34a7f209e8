"""The columns of Parquet files as their footers list them: a tree of fields, and counts and bounds of each leaf.

Files of one schema share one tree, whose counts and bounds are over all of them (`ParquetColumns.java`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from actor.formats.parquet.footer_summary import FooterSummary, decode_summary

_OLD_ELEMENTS = ("array", "_tuple")
"""Names, or ends of names, of a repeated group that is the element itself, as writers before the format's rule do."""


@dataclass(frozen=True, slots=True)
class LeafCounts:
    """Values and nulls of a leaf, and its bounds as text (bytes in hex).

    values: entries, nulls and empty lists included. nulls: None if a row group does not say. is_bounded:
    every row group with values has bounds; they are None where no value is known.
    """

    values: int = 0
    nulls: int | None = None
    is_bounded: bool = False
    least: str | None = None
    greatest: str | None = None


@dataclass(frozen=True, slots=True)
class ParquetField:
    """A field of a file's schema; names of types are parquet-java's.

    repetition: REQUIRED, OPTIONAL or REPEATED. physical: type of a leaf, empty for a group; length: of fixed bytes.
    """

    name: str
    id: int | None = None
    repetition: str = "OPTIONAL"
    logical: str = ""
    physical: str = ""
    length: int = 0
    leaf: LeafCounts | None = None
    children: tuple["ParquetField", ...] = ()

    @property
    def element(self) -> "ParquetField | None":
        """The element of a list, which older writers do not wrap; None if this is no list."""
        if self.repetition == "REPEATED" and not self.children:
            return self
        if len(self.children) != 1 or self.children[0].repetition != "REPEATED":
            return None
        (repeated,) = self.children
        is_itself = len(repeated.children) != 1 or repeated.name.endswith(_OLD_ELEMENTS)
        return repeated if is_itself else repeated.children[0]

    @property
    def entry(self) -> "tuple[ParquetField, ParquetField] | None":
        """Key and value of a map, None if this is none."""
        if len(self.children) != 1 or len(self.children[0].children) != 2:  # noqa: PLR2004 - key and value
            return None
        key, value = self.children[0].children
        return key, value

    def each(self) -> Iterator["ParquetField"]:
        """Yield the field and all below it."""
        yield self
        for child in self.children:
            yield from child.each()


@dataclass(frozen=True, slots=True)
class FileSchema:
    """The schema of files: their top-level fields."""

    fields: tuple[ParquetField, ...]

    @property
    def leaves(self) -> tuple[LeafCounts, ...]:
        """The counts of each leaf column, in their order."""
        return tuple(one.leaf for field in self.fields for one in field.each() if one.leaf is not None)

    @property
    def has_ids(self) -> bool:
        """True if any field has an id; readers then find no column by its name."""
        return any(one.id is not None for field in self.fields for one in field.each())


@dataclass(frozen=True, slots=True)
class DescribedFiles:
    """Files in the order in which they were asked for, and the schemas that they have, by digest."""

    files: tuple[FooterSummary, ...]
    schemas: Mapping[str, FileSchema]


def decode_described(read: Mapping[str, Any]) -> DescribedFiles:
    """Decode what the JVM found in the footers of files."""
    return DescribedFiles(
        tuple(map(decode_summary, read["files"])),
        {digest: decode_schema(one) for digest, one in read["schemas"].items()},
    )


def decode_schema(read: Mapping[str, Any]) -> FileSchema:
    """Decode one schema that the JVM found."""
    return FileSchema(tuple(map(_field, read["fields"])))


def _field(read: Mapping[str, Any]) -> ParquetField:
    given = dict(read)
    leaf, children = given.pop("leaf", None), given.pop("children", ())
    return ParquetField(
        leaf=None if leaf is None else LeafCounts(**leaf), children=tuple(map(_field, children)), **given
    )
