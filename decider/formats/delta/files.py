"""Decodes an `add` or `remove` with few look-ups, because commits of 50,000 files are normal.

Every field that is used is checked, in one condition for the usual case; what exactly is wrong is found out only
where something is. The partition of a file is computed once for each spelling of its partition values.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from decider.formats.delta.damage import LogFile, shown
from shared.errors import InvalidInput
from shared.formats.delta import sort_range
from shared.layout.key_depth import KeyRange
from shared.partitions import WHOLE_TABLE, partition_key
from shared.paths.boundary import vector_leads_out
from shared.table import DataFile, PartitionColumn, PartitionKey, RemovedFile

_ROWS_FIRST = re.compile(r'\{\s*"numRecords"\s*:\s*(\d{1,18})\s*[,}]', re.ASCII)
"""The usual opening; eighteen digits are a number that surely fits into 64 bits."""


def rows_in(stats: str) -> int | None:
    """Return numRecords of a statistics text; None where it has none or cannot be read, for statistics are optional.

    They are half of a commit's bytes, and every known writer puts numRecords first; otherwise the text is parsed.
    """
    first = _ROWS_FIRST.match(stats)
    return int(first[1]) if first else _rows_anywhere(stats)


def _rows_anywhere(stats: str) -> int | None:
    """Parse the text: a column may be called numRecords as well, and only the outermost one counts rows."""
    try:
        parsed = json.loads(stats)
    except (ValueError, RecursionError):
        return None
    rows = parsed.get("numRecords") if isinstance(parsed, dict) else None
    return rows if type(rows) is int and rows >= 0 else None


Action = Mapping[str, Any]
"""The object of one action as the JSON decoder returns it."""

DV_STORAGE = frozenset({"u", "i", "p"})
"""Storage types of deletion vectors: a file named by a UUID, inline, a file named by its path."""


class FileDecoder:
    """Decodes the file actions of one log file against one set of partition columns.

    `sort_key`: column of which the ranges of files are read.
    """

    def __init__(
        self, columns: Sequence[PartitionColumn], log: LogFile, sort_key: PartitionColumn | None = None
    ) -> None:
        self._columns = columns
        self._sort_key = sort_key
        self._log = log
        self._partitions: dict[tuple[tuple[str, str | None], ...], PartitionKey] = {}
        self._no_tags: dict[str, str] = {}

    def add(self, action: Action, position: int, rows: int | None = None) -> DataFile:
        """Decode an `add`; `rows` is given where the number of rows was found outside of `stats`."""
        path, size, modified = action.get("path"), action.get("size"), action.get("modificationTime")
        if type(path) is not str or not path or type(size) is not int or size < 0 or type(modified) is not int:
            raise self._bad_add(action, position)
        stats = action.get("stats")
        if rows is None and stats is not None:
            if type(stats) is not str:
                raise self._log.wrong(position, "add.stats", stats, "a text")
            rows = rows_in(stats)
        vector = action.get("deletionVector")
        dv_id, deleted = self._vector(vector, position) if vector else (None, 0)
        tags = action.get("tags")
        return DataFile(
            path=path if path.isascii() else self._encodable(path, position),
            size_bytes=size,
            partition=self.partition(action.get("partitionValues"), position) if self._columns else WHOLE_TABLE,
            dv_id=dv_id,
            rows=rows,
            deleted_rows=deleted,
            modified_ms=modified,
            tags=self._tags(tags, position) if tags else self._no_tags,
            key_range=None if self._sort_key is None else _range(self._sort_key, stats),
        )

    def remove(self, action: Action, position: int) -> RemovedFile:
        """Decode a `remove`; size and partition stay None where the writer declares that it did not fill them in."""
        path, size = action.get("path"), action.get("size")
        if type(path) is not str or not path:
            raise self._log.wrong(position, "remove.path", path, "a text")
        if size is not None and (type(size) is not int or size < 0):
            raise self._log.wrong(position, "remove.size", size, "a number of bytes")
        vector = action.get("deletionVector")
        dv_id, deleted = self._vector(vector, position) if vector else (None, 0)
        # Old writers put 0 and {} for unknown values, and declared it with extendedFileMetadata=false.
        is_filled = action.get("extendedFileMetadata") is not False
        return RemovedFile(
            path=path if path.isascii() else self._encodable(path, position),
            dv_id=dv_id,
            size_bytes=size if is_filled else None,
            partition=self._partition_of_removed(action, position) if is_filled or not self._columns else None,
            deleted_rows=deleted,
            # The only sign that a writer repeats the tags: without it their absence has no meaning.
            tags=self._tags(action.get("tags") or {}, position) if action.get("extendedFileMetadata") is True else None,
            key_range=None if self._sort_key is None else _range(self._sort_key, action.get("stats")),
            # Spark's OPTIMIZE repeats the number of rows alone.
            has_bounds='"minValues"' in str(action.get("stats")),
        )

    def partition(self, values: object, position: int) -> PartitionKey:
        """Return the partition of partition values, computed once for each spelling that the file uses."""
        if type(values) is not dict:
            raise self._log.wrong(position, "partitionValues", values, "texts by partition column")
        try:
            known = self._partitions.get(spelling := tuple(values.items()))
        except TypeError:
            raise self._log.wrong(position, "partitionValues", values, "texts and nulls only") from None
        if known is None:
            known = self._partitions[spelling] = self._new_partition(values, position)
        return known

    def _new_partition(self, values: Mapping[str, Any], position: int) -> PartitionKey:
        if not all(value is None or type(value) is str for value in values.values()):
            raise self._log.wrong(position, "partitionValues", values, "texts and nulls only")
        try:
            partition = partition_key(self._columns, values)
        except (InvalidInput, ValueError, OverflowError) as problem:
            raise self._log.corrupt(position, f"partitionValues {shown(values)}: {problem}") from problem
        return PartitionKey(self._encodable(partition, position))

    def _partition_of_removed(self, action: Action, position: int) -> PartitionKey | None:
        """Return the partition of a removed file; None where its values are of other columns (an older layout).

        Spark leaves nulls out of the `partitionValues` of a `remove`, though not of an `add`: what is missing is null.
        """
        if not self._columns:
            return WHOLE_TABLE
        values = action.get("partitionValues")
        if values is None:
            return None
        if type(values) is dict:
            nulls: dict[str, object] = {column.physical: None for column in self._columns}
            if not values.keys() <= nulls.keys():
                return None
            values = nulls | values
        return self.partition(values, position)

    def _vector(self, vector: object, position: int) -> tuple[str, int]:
        """Return a deletion vector's unique id, built as Delta builds it, and the number of rows that it hides."""
        if not isinstance(vector, dict):
            raise self._log.wrong(position, "deletionVector", vector, "an object")
        storage, place, offset = vector.get("storageType"), vector.get("pathOrInlineDv"), vector.get("offset")
        cardinality = vector.get("cardinality")
        if not isinstance(storage, str) or storage not in DV_STORAGE:
            problem = f"deletionVector.storageType is {shown(storage)}, and only u, i and p are known"
            raise self._log.unsupported(position, problem)
        if type(place) is not str or not place:
            raise self._log.wrong(position, "deletionVector.pathOrInlineDv", place, "a text")
        if offset is not None and type(offset) is not int:
            raise self._log.wrong(position, "deletionVector.offset", offset, "a number of bytes, or nothing")
        if type(cardinality) is not int or cardinality < 0:
            raise self._log.wrong(position, "deletionVector.cardinality", cardinality, "a number of rows")
        if storage == "u" and vector_leads_out(place):
            raise self._log.unsupported(
                position, f"deletionVector.pathOrInlineDv {shown(place)} leads out of the table"
            )
        unique = f"{storage}{place}" if offset is None else f"{storage}{place}@{offset}"
        return self._encodable(unique, position), cardinality

    def _tags(self, tags: object, position: int) -> dict[str, str]:
        if not isinstance(tags, dict) or not all(value is None or type(value) is str for value in tags.values()):
            raise self._log.wrong(position, "add.tags", tags, "texts by name")
        return {name: value for name, value in tags.items() if value is not None}

    def _encodable(self, text: str, position: int) -> str:
        """Return the text unless it holds half a surrogate pair, which JSON can spell and no store can keep."""
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self._log.wrong(position, "a text", text, "valid Unicode") from None
        return text

    def _bad_add(self, action: Action, position: int) -> Exception:
        for name, expected in (("path", "a text"), ("size", "a number of bytes"), ("modificationTime", "milliseconds")):
            value = action.get(name)
            is_good = (type(value) is str and value) if name == "path" else type(value) is int
            if not is_good or (name == "size" and action["size"] < 0):
                return self._log.wrong(position, f"add.{name}", value, expected)
        raise AssertionError(f"nothing is wrong with {shown(action)}")


def _range(key: PartitionColumn, stats: object) -> KeyRange | None:
    """Return the range of the sort key by a statistics text; None where it has none or cannot be read."""
    try:
        statistics = json.loads(stats) if isinstance(stats, str) else None
    except (ValueError, RecursionError):
        return None
    return sort_range(key, statistics) if isinstance(statistics, dict) else None
