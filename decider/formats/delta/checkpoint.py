"""A checkpoint is read in two steps: what the table is, then its live files; the rest of it is never decoded.

The partitions of files depend on the metadata, which may be in another row or another part. Tombstones, transactions
and minima and maxima make up most of a checkpoint, and Parquet lets us leave them where they are.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from decider.formats.delta.checkpoint_limits import DecodedBytes
from decider.formats.delta.damage import LogFile, parsed_lines, split_lines
from decider.formats.delta.files import FileDecoder
from decider.formats.delta.metadata import decode_metadata, decode_protocol
from shared.table import DataFile, PartitionColumn, TableMetadata, TableProtocol

BATCH_ROWS = 65_536
"""Rows decoded at a time, so that a checkpoint of millions of files is never in memory as Python objects twice."""

MAX_HEAD_ROWS = 100_000
"""Most rows of a part with metadata, protocol or a sidecar, which become Python objects at once."""

_HEAD = (
    "metaData.id",
    "metaData.format.provider",
    "metaData.schemaString",
    "metaData.partitionColumns",
    "metaData.configuration",
    "protocol",
    "sidecar.path",
    "checkpointMetadata.version",
)
_VECTOR = "deletionVector"
_FILE = (
    "add.path",
    "add.partitionValues",
    "add.size",
    "add.modificationTime",
    "add.tags",
    f"add.{_VECTOR}",
)
_PARSED_ROWS = "add.stats_parsed.numRecords"
_STATS = "add.stats"
DAMAGE = (pa.ArrowException, OSError, ValueError, KeyError, TypeError)
"""Exceptions that pyarrow raises for bytes that are no Parquet, or Parquet of another shape."""


@dataclass(frozen=True, slots=True)
class CheckpointPart:
    """One file of a checkpoint with its bytes; `decoded` counts what all files of the checkpoint take in memory."""

    log: LogFile
    data: memoryview
    decoded: DecodedBytes = field(default_factory=DecodedBytes)

    @property
    def is_json(self) -> bool:
        """V2 checkpoints may be written as JSON."""
        return self.log.name.endswith(".json")

    def lines(self) -> Sequence[bytes]:
        """Return the lines of a part that is JSON; raises Corrupt if it is too large."""
        try:
            self.decoded.charge_json(self.log.name, len(self.data))
        except ValueError as problem:
            raise self.log.corrupt(0, str(problem)) from problem
        return split_lines(bytes(self.data))

    def parquet(self, columns: Collection[str] = ()) -> pq.ParquetFile:
        """Open a part that is Parquet to decode these columns; raises one of `DAMAGE` if it is none, or too large."""
        return self.decoded.open(self.log.name, self.data, columns)


@dataclass(frozen=True, slots=True)
class CheckpointHead:
    """Metadata and protocol in a checkpoint, and the names of its sidecars below `_delta_log/_sidecars`."""

    metadata: TableMetadata
    protocol: TableProtocol
    sidecars: tuple[str, ...]


def read_head(parts: Sequence[CheckpointPart], sort_column: str | None = None) -> CheckpointHead:
    """Read metadata and protocol from the parts of one checkpoint; raises Corrupt unless each occurs exactly once.

    `sort_column` as in `decode_metadata`.
    """
    metadata: list[TableMetadata] = []
    protocol: list[TableProtocol] = []
    sidecars: list[str] = []
    for part in parts:
        for position, action in _head_actions(part):
            if action.get("metaData") is not None:
                metadata.append(decode_metadata(action["metaData"], part.log, position, sort_column))
            if action.get("protocol") is not None:
                protocol.append(decode_protocol(action["protocol"], part.log, position))
            if action.get("sidecar") is not None:
                sidecars.append(_sidecar(action["sidecar"], part.log, position))
            _check_version(action.get("checkpointMetadata"), part.log, position)
    if len(metadata) != 1 or len(protocol) != 1:
        found = f"{len(metadata)} metaData and {len(protocol)} protocol actions"
        raise parts[0].log.corrupt(0, f"the checkpoint has {found}; expected one of each")
    return CheckpointHead(metadata[0], protocol[0], tuple(sidecars))


def read_files(
    part: CheckpointPart, columns: Sequence[PartitionColumn], sort_key: PartitionColumn | None = None
) -> list[DataFile]:
    """Read the live files of one part or sidecar, with their ranges of the sort key if there is one."""
    decoder = FileDecoder(columns, part.log, sort_key)
    if not part.is_json:
        try:
            return list(_parquet_files(part, decoder, with_bounds=sort_key is not None))
        except DAMAGE as problem:
            raise part.log.corrupt(0, f"expected a checkpoint in Parquet: {problem}") from problem
    files: list[DataFile] = []
    for position, action in parsed_lines(part.lines(), part.log):
        add = action.get("add")
        if add is not None:
            if type(add) is not dict:
                raise part.log.wrong(position, "add", add, "an object")
            files.append(decoder.add(add, position))
    return files


def _head_actions(part: CheckpointPart) -> Iterator[tuple[int, dict[str, Any]]]:
    if part.is_json:
        yield from parsed_lines(part.lines(), part.log)
        return
    try:
        table = part.parquet(_HEAD).read(columns=list(_HEAD))
        # Nearly all rows are files, in which these columns are null; only the others become Python objects.
        masks = [column.is_valid() for column in table.columns]
        wanted = pc.indices_nonzero(reduce(pc.or_, masks)) if masks else pa.array([], pa.uint64())
        if len(wanted) > MAX_HEAD_ROWS:
            raise ValueError(f"{len(wanted)} rows are neither of files nor of removals")
        rows = table.take(wanted).to_pylist(maps_as_pydicts="strict")
    except DAMAGE as problem:
        raise part.log.corrupt(0, f"expected a checkpoint in Parquet: {problem}") from problem
    yield from zip((index + 1 for index in wanted.to_pylist()), rows, strict=True)


def _parquet_files(part: CheckpointPart, decoder: FileDecoder, *, with_bounds: bool) -> Iterator[DataFile]:
    """Yield the files of a Parquet part, a bounded number of rows at a time."""
    first = 1
    for adds in add_batches(part, with_rows=True, with_bounds=with_bounds):
        positions = [first + index for index, is_add in enumerate(adds.is_valid().to_pylist()) if is_add]
        first += len(adds)
        yield from decoded_adds(adds.filter(adds.is_valid()), positions, decoder)


def add_batches(part: CheckpointPart, *, with_rows: bool, with_bounds: bool = False) -> Iterator[pa.StructArray]:
    """Yield the `add` column of a Parquet part, null where a row has another action.

    `with_rows`: and row counts; `with_bounds`: and all statistics, as far as they are there as text.
    """
    file, columns = part.parquet(_FILE), list(_FILE)
    if "add" not in file.schema_arrow.names:
        return
    if with_rows:
        columns.append(_STATS if with_bounds else _rows_source(part))
        file = part.parquet(columns)
    for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=columns):
        yield batch.column("add")


def has_vectors(part: CheckpointPart) -> bool:
    """Return whether any file of a Parquet part has a deletion vector."""
    wanted = [f"add.{_VECTOR}.storageType"]
    file = part.parquet(wanted)
    if "add" not in file.schema_arrow.names or file.schema_arrow.field("add").type.get_field_index(_VECTOR) < 0:
        return False
    adds = file.read(columns=wanted).column("add").combine_chunks()
    vectors = pc.struct_field(adds.filter(adds.is_valid()), [_VECTOR])
    return bool(vectors.null_count < len(vectors))


def _rows_source(part: CheckpointPart) -> str:
    """Return the column to take the number of rows from: a plain number, unless some file lacks it there."""
    file = part.parquet(["add.size", _PARSED_ROWS])
    add = file.schema_arrow.field("add").type
    if not pa.types.is_struct(add):
        raise TypeError(f"the column add is {add}, not a struct")
    index = add.get_field_index("stats_parsed")
    parsed = add.field(index).type if index >= 0 else None
    if parsed is None or not pa.types.is_struct(parsed) or parsed.get_field_index("numRecords") < 0:
        return _STATS
    if add.get_field_index("stats") < 0:
        return _PARSED_ROWS
    adds = file.read(columns=["add.size", _PARSED_ROWS]).column("add").combine_chunks()
    counts = pc.struct_field(adds.filter(adds.is_valid()), ["stats_parsed", "numRecords"])
    return _STATS if counts.null_count else _PARSED_ROWS


def decoded_adds(adds: pa.StructArray, positions: Sequence[int], decoder: FileDecoder) -> Iterator[DataFile]:
    """Yield files from the columns of an `add` struct that has no nulls of its own."""
    columns: dict[str, list[Any]] = {
        field.name: _maps(adds.field(index)) if pa.types.is_map(field.type) else adds.field(index).to_pylist()
        for index, field in enumerate(adds.type)
    }
    counts: list[int | None] = [None] * len(adds)
    if "stats_parsed" in columns:
        counts = [stats and stats["numRecords"] for stats in columns.pop("stats_parsed")]
    for position, count, values in zip(positions, counts, zip(*columns.values(), strict=True), strict=True):
        yield decoder.add(dict(zip(columns, values, strict=True)), position, count)


def _maps(array: pa.MapArray) -> list[dict[str, str | None] | None]:
    """Return the rows of a map column as dictionaries, without one Python call per row into pyarrow."""
    keys, items = array.keys.to_pylist(), array.items.to_pylist()
    bounds = array.offsets.to_pylist()
    return [
        dict(zip(keys[start:end], items[start:end], strict=True)) if is_set else None
        for start, end, is_set in zip(bounds[:-1], bounds[1:], array.is_valid().to_pylist(), strict=True)
    ]


def _sidecar(action: object, log: LogFile, position: int) -> str:
    """Return the file name of a sidecar: they all lie in one directory, whatever path the writer put before it."""
    path = action.get("path") if isinstance(action, dict) else None
    name = unquote(path.rpartition("/")[2]) if isinstance(path, str) else ""
    if not name or "/" in name:
        raise log.wrong(position, "sidecar.path", path, "the name of a file")
    return name


def _check_version(action: object, log: LogFile, position: int) -> None:
    version = action.get("version") if isinstance(action, dict) else None
    if version is not None and version != log.version:
        raise log.corrupt(position, f"the checkpoint claims to be of version {version!r}")
