"""Footers of Parquet files: how columns are stored, with which codec, and the exact bounds of outputs.

Only footers are read, several at once, by the library that Spark itself reads them with: no Spark job.
"""

import json
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.chunk_bounds import Bounds, decode_bounds
from actor.formats.delta.columns import Column, leaves
from actor.formats.delta.footer_reader import FooterReader
from actor.formats.delta.log import TableLog
from actor.formats.parquet.file_columns import FileSchema, decode_schema
from actor.jvm.scala import Scala

_AT_ONCE = "parquet.metadata.read.parallelism"
_THREADS = "8"  # Requests to the store at a time: its latency is the cost, and a footer is small.
_BATCH = 64  # Footers that the JVM holds at once: the footer of a wide file takes some hundred kilobytes.
MAX_CACHED_SCHEMAS = 500
"""Schemas whose columns are cached, some 10 KB each: tables have one or a few."""

_WITH_ROW_GROUPS = False  # parquet-java's flag asks to skip them.


@dataclass(frozen=True, slots=True)
class Storage:
    """How a set of files is stored: each distinct schema once, and the bytes of files under each codec."""

    schemas: tuple[tuple[Column, ...], ...]
    codec_bytes: Mapping[str, int]


class SchemaCache:
    """Columns by the digest of the files' schema (`FooterSummary.schema`). Safe to use from several threads."""

    def __init__(self, max_schemas: int = MAX_CACHED_SCHEMAS) -> None:
        self._max_schemas = max_schemas
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[Column, ...]] = OrderedDict()

    def get(self, digest: str) -> tuple[Column, ...] | None:
        """Return the columns of this schema, None if it is not cached."""
        with self._lock:
            if digest in self._known:
                self._known.move_to_end(digest)
            return self._known.get(digest)

    def put(self, digest: str, columns: tuple[Column, ...]) -> None:
        """Cache a schema, and evict the one that was not used for the longest time."""
        with self._lock:
            self._known[digest] = columns
            while len(self._known) > self._max_schemas:
                self._known.popitem(last=False)


class Footers:
    """How files of one table are stored, by what `reader` reads of them. Safe to use from several threads."""

    def __init__(self, scala: Scala, log: TableLog, reader: FooterReader, cache: SchemaCache | None = None) -> None:
        self._scala = scala
        self._log = log
        self._reader = reader
        self._cache = cache or SchemaCache()
        self._schemas: dict[str, tuple[Column, ...]] = {}

    def columns(self, digest: str, file: LoggedFile) -> tuple[Column, ...]:
        """Return the leaf columns of the schema with this digest; read from this file, which has it, if not cached."""
        known = self._cache.get(digest)
        if known is None:
            known = self._columns(self._footer(file))
            self._cache.put(digest, known)
        return known

    def storage(self, files: Sequence[LoggedFile]) -> Storage:
        """Return how these files are stored."""
        described = self._reader.describe(files)
        if not all(one.schema for one in described.files):
            return self._storage_by_parquet_java(files)
        by_schema = {one.schema: logged for one, logged in zip(described.files, files, strict=True)}
        codec_bytes: Counter[str] = Counter()
        for one, logged in zip(described.files, files, strict=True):
            if one.codecs and one.codecs[0]:
                codec_bytes[one.codecs[0]] += logged.file.size_bytes
        schemas = dict.fromkeys(self.columns(digest, logged) for digest, logged in by_schema.items())
        return Storage(tuple(schemas), codec_bytes)

    def _storage_by_parquet_java(self, files: Sequence[LoggedFile]) -> Storage:
        """Read the same of files whose footers our class does not read, such as encrypted ones.

        Raises what parquet-java raises for a file that it cannot read, either.
        """
        schemas: dict[tuple[Column, ...], None] = {}
        codec_bytes: Counter[str] = Counter()
        for logged, footer in zip(files, self._read(files), strict=True):
            schemas[self._columns(footer)] = None
            codec = _codec(footer)
            if codec is not None:
                codec_bytes[codec] += logged.file.size_bytes
        return Storage(tuple(schemas), codec_bytes)

    def read_each(self, files: Sequence[LoggedFile]) -> None:
        """Read at once what `bounds` says of each of these files."""
        self._reader.read_each(files)

    def bounds(self, file: LoggedFile, wanted: Iterable[Column]) -> dict[Column, Bounds]:
        """Return the exact bounds of columns of one file; a column whose footer leaves any out is left out."""
        columns, schema = self._described(file)
        leaves = dict(zip(columns, schema.leaves, strict=True))
        found = {column: decode_bounds(leaves[column], column) for column in wanted}
        return {column: bounds for column, bounds in found.items() if bounds is not None}

    def _described(self, file: LoggedFile) -> tuple[tuple[Column, ...], FileSchema]:
        found = self._reader.describe([file]).schemas
        if found:
            ((digest, schema),) = found.items()
            return self.columns(digest, file), schema
        footer = self._footer(file)  # As `_storage_by_parquet_java`.
        described = self._scala.resolve("io.lakewright.parquet.ParquetColumns.described")(footer)
        return self._columns(footer), decode_schema(json.loads(self._scala.to_json(described)))

    def _columns(self, footer: Any) -> tuple[Column, ...]:
        text = str(footer.getFileMetaData().getSchema().toString())
        known = self._schemas.get(text)
        if known is None:
            metadata = self._scala.resolve("org.apache.parquet.hadoop.metadata.ParquetMetadata")
            bare = metadata(footer.getFileMetaData(), self._scala.java_list(()))
            known = leaves(json.loads(metadata.toJSON(bare))["fileMetaData"]["schema"], text)
            self._schemas[text] = known
        return known

    def _footer(self, file: LoggedFile) -> Any:
        (footer,) = self._read([file])
        return footer

    def _read(self, files: Sequence[LoggedFile]) -> Iterator[Any]:
        """Yield the footers in the order of the files."""
        reader = self._scala.resolve("org.apache.parquet.hadoop.ParquetFileReader")
        for some in _batches(files):
            statuses = self._scala.java_list(self._status(logged) for logged in some)
            for footer in reader.readAllFootersInParallel(self._conf, statuses, _WITH_ROW_GROUPS).toArray():
                yield footer.getParquetMetadata()

    def _status(self, logged: LoggedFile) -> Any:
        """Return what the log records about a file, which saves a request to the store."""
        size, modified = logged.file.size_bytes, logged.file.modified_ms
        is_directory, replication, block_size = False, 1, 1 << 27
        path = self._log.data_path(logged.key)
        file_status = self._scala.resolve("org.apache.hadoop.fs.FileStatus")
        return file_status(size, is_directory, replication, block_size, modified, path)

    @cached_property
    def _conf(self) -> Any:
        """A configuration of its own: the table's is shared by all that read its log."""
        conf = self._scala.resolve("org.apache.hadoop.conf.Configuration")(self._log.hadoop_conf)
        conf.set(_AT_ONCE, _THREADS)
        return conf


def _batches(files: Sequence[LoggedFile]) -> Iterator[Sequence[LoggedFile]]:
    for start in range(0, len(files), _BATCH):
        yield files[start : start + _BATCH]


def _codec(footer: Any) -> str | None:
    """Return the codec of a file's first column, as a rule the codec of all; None for a file without rows."""
    blocks = footer.getBlocks()
    if not blocks.size() or not blocks.get(0).getColumns().size():
        return None
    return str(blocks.get(0).getColumns().get(0).getCodec().name()).lower()
