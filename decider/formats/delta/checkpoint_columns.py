"""A checkpoint is read into columns: of a million files only the unusual ones become Python objects.

A file is unusual if it has a deletion vector, or anything that a column cannot hold. It is decoded by the code that
reads files one by one, which also finds out what is wrong where something is; so there is one rule for each field.

Replaying a log over a checkpoint in columns: only files that later commits name are searched in it.

A replay in columns gives up, and the log is replayed file by file, where a file occurs twice in the checkpoint, because
then its order counts; or where the partition columns changed, because then every file moves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from decider.formats.delta.checkpoint import (
    DAMAGE,
    CheckpointPart,
    add_batches,
    decoded_adds,
    has_vectors,
    read_files,
)
from decider.formats.delta.files import FileDecoder
from decider.formats.delta.replay import SnapshotReplay
from decider.state.file_columns import COLUMNS, FileColumns
from shared.errors import Corrupt
from shared.layout.cells.tags import CELL_TAG
from shared.layout.file_selection import GENERATED_TAG
from shared.layout.partition_stats import CUBE_TAG, IDLE_COMPACTED_TAG
from shared.partitions import WHOLE_TABLE
from shared.paths.boundary import SUSPICIOUS_PATH
from shared.paths.data_paths import PathKey, canonical_path, path_key
from shared.table import Commit, DataFile, PartitionColumn, PartitionKey

_TEXTS = pa.map_(pa.string(), pa.string())
_TYPES = {"path": pa.string(), "size": pa.int64(), "modificationTime": pa.int64(), "partitionValues": _TEXTS}
"""Types of the fields of a usual file; `tags` may be missing."""

_NUMBER = "^[0-9]+$"
_SMALL_NUMBER = "^[0-9]{1,18}$"
"""Numbers of up to eighteen digits surely fit into 64 bits."""


@dataclass(frozen=True, slots=True)
class PartFiles:
    """Files of one part or sidecar of a checkpoint: the usual ones in columns, the others as values."""

    columns: FileColumns = field(default_factory=FileColumns)
    others: Sequence[DataFile] = ()


def read_columns(
    part: CheckpointPart, columns: Sequence[PartitionColumn], sort_key: PartitionColumn | None = None
) -> PartFiles:
    """Read the live files of one part or sidecar; raises what `read_files` raises. With a sort key, none in columns."""
    if not part.is_json and sort_key is None:
        reading = _PartReader(columns, FileDecoder(columns, part.log))
        try:
            for adds in add_batches(part, with_rows=has_vectors(part)):
                reading.take(adds.filter(adds.is_valid()))
            return reading.files()
        except (Corrupt, *DAMAGE):
            pass  # The code below reports damage with its position.
    return PartFiles(others=read_files(part, columns, sort_key))


class _PartReader:
    """Collects the batches of one part."""

    def __init__(self, columns: Sequence[PartitionColumn], decoder: FileDecoder) -> None:
        self._columns = columns
        self._decoder = decoder
        self._tables: list[pa.Table] = []
        self._numbers: dict[PartitionKey, int] = {}
        self._others: list[DataFile] = []

    def take(self, adds: pa.StructArray) -> None:
        """Take a batch of `add` structs, none of them null."""
        adds.validate(full=True)
        fields = {one.name: adds.field(index) for index, one in enumerate(adds.type)}
        tags = fields.get("tags", pa.nulls(len(adds), _TEXTS))
        has_usual_types = tags.type == _TEXTS and all(fields[name].type == kind for name, kind in _TYPES.items())
        if not has_usual_types or (self._columns and not _has_uniform_keys(fields["partitionValues"])):
            self._decode(adds)
            return
        usual = _is_usual(fields, tags)
        self._decode(adds.filter(pc.invert(usual)))
        columns = [
            fields["path"],
            self._partitions(fields["partitionValues"]),
            fields["size"],
            fields["modificationTime"],
            pc.is_valid(_tag(tags, IDLE_COMPACTED_TAG)),
            pc.is_valid(_tag(tags, CUBE_TAG)),
            pc.is_valid(_tag(tags, CELL_TAG)),
            _generated_ms(tags),
        ]
        self._tables.append(pa.Table.from_arrays(columns, schema=COLUMNS).filter(usual))

    def files(self) -> PartFiles:
        """Return everything taken."""
        table = pa.concat_tables([COLUMNS.empty_table(), *self._tables])
        return PartFiles(FileColumns(table, tuple(self._numbers)), self._others)

    def _decode(self, adds: pa.StructArray) -> None:
        self._others += decoded_adds(adds, [0] * len(adds), self._decoder)

    def _partitions(self, values: pa.MapArray) -> pa.Array:
        """Return the number of each file's partition; each spelling of partition values is read once."""
        if not self._columns:
            return pa.repeat(pa.scalar(self._number(WHOLE_TABLE), pa.int64()), len(values))
        keys, items = _entries(values)
        width = len(keys) // len(values)
        names = keys.slice(0, width).to_pylist()
        columns = _every(items, width)
        spellings, index = _distinct(columns)
        partitions = (self._decoder.partition(dict(zip(names, one, strict=True)), 0) for one in spellings)
        return pa.array([self._number(partition) for partition in partitions], pa.int64()).take(index)

    def _number(self, partition: PartitionKey) -> int:
        return self._numbers.setdefault(partition, len(self._numbers))


def _is_usual(fields: dict[str, pa.Array], tags: pa.MapArray) -> pa.BooleanArray:
    """Return which files have a path, numbers that are not negative, and no deletion vector."""
    generated = _tag(tags, GENERATED_TAG)
    large = pc.and_(
        pc.match_substring_regex(generated, _NUMBER), pc.invert(pc.match_substring_regex(generated, _SMALL_NUMBER))
    )
    conditions = [
        pc.greater(pc.binary_length(fields["path"]), 0),
        pc.greater_equal(fields["size"], 0),
        pc.greater_equal(fields["modificationTime"], 0),
        pc.invert(pc.fill_null(large, fill_value=False)),
    ]
    if "deletionVector" in fields:
        conditions.append(pc.is_null(fields["deletionVector"]))
    return pc.fill_null(reduce(pc.and_, conditions), fill_value=False)


def _tag(tags: pa.MapArray, name: str) -> pa.StringArray:
    """Return the value of a tag for each file, null without it; of a name that occurs twice, the last one counts."""
    return pc.map_lookup(tags, pa.scalar(name), "last")


def _generated_ms(tags: pa.MapArray) -> pa.Int64Array:
    values = _tag(tags, GENERATED_TAG)
    is_number = pc.fill_null(pc.match_substring_regex(values, _SMALL_NUMBER), fill_value=False)
    return pc.cast(pc.if_else(is_number, values, pa.scalar(None, pa.string())), pa.int64())


def _entries(values: pa.MapArray) -> tuple[pa.Array, pa.Array]:
    """Return the keys and the items of all maps, one after the other."""
    first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
    return values.keys.slice(first, last - first), values.items.slice(first, last - first)


def _has_uniform_keys(values: pa.MapArray) -> bool:
    """Return whether all maps have the same keys in the same order, each once, as every known writer leaves them."""
    keys, _ = _entries(values)
    width = len(keys) // len(values) if len(values) else 0
    widths = pc.min_max(pc.subtract(values.offsets.slice(1), values.offsets.slice(0, len(values)))).as_py()
    names = keys.slice(0, width).to_pylist()
    if not width or widths != {"min": width, "max": width} or len(set(names)) < width:
        return False
    return all(pc.all(pc.equal(one, name)).as_py() for one, name in zip(_every(keys, width), names, strict=True))


def _every(entries: pa.Array, width: int) -> list[pa.Array]:
    """Return the first entries of all maps, the second ones and so on; kernels of Arrow let other threads run."""
    maps = pa.FixedSizeListArray.from_arrays(entries, width)
    return [pc.list_element(maps, nth) for nth in range(width)]


def _distinct(columns: Sequence[pa.Array]) -> tuple[list[tuple[Any, ...]], pa.Array]:
    """Return the distinct rows of these columns, and for each row which of them it is."""
    rows: list[tuple[Any, ...]] = [()]
    index = pa.repeat(pa.scalar(0, pa.int64()), len(columns[0]))
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        values = encoded.dictionary.to_pylist()
        codes = pc.add(pc.multiply(index, len(values)), encoded.indices).dictionary_encode()
        pairs = (divmod(code, len(values)) for code in codes.dictionary.to_pylist())
        rows = [(*rows[before], values[now]) for before, now in pairs]
        index = codes.indices.cast(pa.int64())
    return rows, index


_MAY_HAVE_OTHER_SPELLINGS = r"^/|:|\./|//|/\.$|%[0-9A-F]?[a-f]"
"""Matches each path that is not the canonical spelling, and a few that are."""


class ColumnReplay(SnapshotReplay):
    """A replay whose `snapshot` has the files that are not in columns; `remaining` are the others."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[FileColumns] = []
        self._named: set[PathKey] = set()

    def read(
        self, part: CheckpointPart, columns: Sequence[PartitionColumn], sort_key: PartitionColumn | None
    ) -> PartFiles:
        """Read the live files of a part of a checkpoint."""
        return read_columns(part, columns, sort_key)

    def take(self, files: PartFiles) -> None:
        """Take the files of a part of a checkpoint as live."""
        self._parts.append(files.columns)
        self.add(files.others)

    def apply(self, commit: Commit) -> None:
        """Apply the next commit; what it removes or adds is no longer live by the checkpoint."""
        self._named.update(map(path_key, commit.removed))
        self._named.update(map(path_key, commit.added))
        super().apply(commit)

    def remaining(self) -> FileColumns | None:
        """Return the files in columns that are live; None if the log has to be replayed file by file."""
        files = FileColumns.concatenated(self._parts)
        if not len(files.table):
            return files
        paths = _canonical(files.table["path"])
        named = {path for path, dv_id in self._named if dv_id is None}
        also_in_others = {path for path, dv_id in self._files if dv_id is None} - named
        is_twice = pc.count_distinct(paths).as_py() < len(paths) or pc.any(_among(paths, also_in_others)).as_py()
        if self.has_moved_columns or is_twice:
            return None
        return FileColumns(files.table.filter(pc.invert(_among(paths, named))), files.partitions)


def _among(paths: pa.ChunkedArray, wanted: set[str]) -> pa.ChunkedArray:
    return pc.is_in(paths, value_set=pa.array(list(wanted), pa.string()))


def _canonical(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the canonical spelling of each path; Python spells only those that may have another one."""
    doubtful = pc.match_substring_regex(paths, _MAY_HAVE_OTHER_SPELLINGS)
    if not pc.any(doubtful).as_py():
        return paths
    spelled = pa.array(map(canonical_path, paths.filter(doubtful).to_pylist()), pa.string())
    return pc.replace_with_mask(paths, doubtful.combine_chunks(), spelled)


def suspicious_files(columns: FileColumns) -> list[DataFile]:
    """Return the files whose paths may lead out of the table, with nothing but these paths."""
    paths = columns.table["path"]
    found = paths.filter(pc.match_substring_regex(paths, SUSPICIOUS_PATH))
    return [DataFile(path, 0, WHOLE_TABLE) for path in found.to_pylist()]
