"""The delete files that apply to data files, as one call describes them (`IcebergDeletes.java`)."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import orjson
from py4j.java_gateway import JavaObject

from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.inputs import AppliedDelete, Listed
from shared.formats.iceberg.delete_merges import LiveDelete
from shared.formats.iceberg.deletes import can_name_rows
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.partitions import Spec
from shared.table import DeleteKind, PartitionKey


class PartitionKeys:
    """The keys of partitions under the specs of these metadata."""

    def __init__(self, scala: IcebergScala, head: TableHead) -> None:
        self._scala = scala
        self._specs = head.specs

    def of(self, spec: int, values: Sequence[Any] | None, file: Any) -> PartitionKey:
        """Return the key of these values; None: JSON does not have one of them, and Java's object is asked."""
        return self._asked(self._specs[spec], file()) if values is None else self._specs[spec].key(values)

    def _asked(self, spec: Spec, file: Any) -> PartitionKey:
        values = file.partition()
        any_class = self._scala.resolve("java.lang.Class").forName("java.lang.Object")
        return spec.key([_value(values.get(index, any_class)) for index in range(len(spec.fields))])


class ListedDeletes:
    """Java's list of delete files, and which of them applies to each of the data files that it was asked for."""

    def __init__(self, keys: PartitionKeys, listed: Any) -> None:
        self._keys = keys
        self._listed = listed
        self._partitions: dict[int, PartitionKey] = {}
        self._described: dict[tuple[int, bool, bool, bool], AppliedDelete] = {}

    @cached_property
    def _found(self) -> dict[str, Any]:
        found: dict[str, Any] = orjson.loads(self._listed.text())
        return found

    @property
    def removed(self) -> frozenset[str]:
        """Paths of data files and names of delete files that were removed."""
        return frozenset(self._found["removed"])

    @property
    def twice(self) -> Sequence[str]:
        """Paths of data files and names of delete files that are live twice."""
        return list(self._found["twice"])

    def of(
        self, place: int, path: str, sequence: int | None = None, *, is_ours: bool = False
    ) -> tuple[AppliedDelete, ...]:
        """Return the deletes of the data file at a place among the files that were asked for.

        sequence: the number of the snapshot that added it, None if that is not known; is_ours: a rewrite of ours did.
        """
        found: list[AppliedDelete] = []
        for first, count in self._found["applied"][place]:
            after = first + count
            if self._alone[first].is_positional:
                found += (self._applied(number, path, sequence, is_ours=is_ours) for number in range(first, after))
            else:  # By value, they are the same for each data file.
                found += self._alone[first:after]
        return tuple(found)

    @cached_property
    def _alone(self) -> Sequence[AppliedDelete]:
        """Each delete file without a data file, by its number."""
        return [self._applied(number, "", None, is_ours=False) for number in range(len(self._found["files"]))]

    def unapplied(self) -> tuple[AppliedDelete, ...]:
        """Return those that are live and apply to no data file."""
        return tuple(self._alone[number] for number in self._found["unapplied"])

    def by_value(self) -> tuple[AppliedDelete, ...]:
        """Return those that are by value."""
        return tuple(one for one in self._alone if not one.is_positional)

    def all(self) -> Iterator[LiveDelete]:
        """Yield what is known of each delete file without its data files."""
        for number, (name, _, rows, _, _, only, _, key_ids, file_format, _) in enumerate(self._found["files"]):
            yield LiveDelete(name, _kind(key_ids, file_format), only or "", self._partition(number), rows)

    def _partition(self, number: int) -> PartitionKey:
        if number not in self._partitions:
            spec, values = self._found["files"][number][3:5]
            self._partitions[number] = self._keys.of(spec, values, Listed(self._listed, number).get)
        return self._partitions[number]

    def _applied(self, number: int, path: str, file_sequence: int | None, *, is_ours: bool) -> AppliedDelete:
        name, size, rows, spec, _, only, sequence, key_ids, file_format, offset = self._found["files"][number]
        kind = _kind(key_ids, file_format)
        is_own = only == path
        is_later = kind is not DeleteKind.EQUALITY and not can_name_rows(sequence, file_sequence)
        key = number, is_own, is_later, is_later and is_ours
        if key not in self._described:  # One of them may apply to each of thousands of data files.
            self._described[key] = AppliedDelete(
                name,
                kind,
                rows,
                # A file of positions may name a row twice.
                is_exact=kind is DeleteKind.VECTOR and is_own,
                is_of_one_file=is_own,
                partition=self._partition(number),
                may_name_rows=not is_later,
                is_of_earlier=is_later and is_ours,
                key_ids=tuple(key_ids or ()),
                is_parquet=file_format == "parquet",
                offset=offset if kind is DeleteKind.VECTOR else 0,
                size_bytes=size,
                sequence=sequence,
                spec=spec,
                listed=Listed(self._listed, number),
            )
        return self._described[key]


def _kind(key_ids: Sequence[int] | None, file_format: str) -> DeleteKind:
    if key_ids:
        return DeleteKind.EQUALITY
    return DeleteKind.VECTOR if file_format == "puffin" else DeleteKind.POSITION


def _value(value: Any) -> Any:
    """Return a partition value as Python's; of Java's objects only byte buffers and UUIDs arrive as such.

    py4j gives its objects every attribute, so that only the class distinguishes them.
    """
    if not isinstance(value, JavaObject):
        return value
    is_text = str(value.getClass().getName()) == "java.util.UUID"
    return str(value.toString()) if is_text else bytes(value.array())
