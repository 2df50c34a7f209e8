"""Reading a partition or a table at the newest version: from the cache where that is exact, else from the snapshot.

A small table is listed as a whole the first time, so that the next job on it finds its partition without listing
anything, whichever partition that is.
"""

from dataclasses import dataclass
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_adds
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.preflight import check_files, check_table
from actor.formats.delta.read_cache import CachedRead, ReadCache, caught_up
from actor.formats.delta.snapshot import list_partition
from actor.rewrite.checks import check_identity
from shared.table import PartitionKey

WHOLE_TABLE_FILES = 2_000
"""Files up to which a table is listed as a whole: some 2 MB of JSON, little beside the Spark job that lists them."""

FILES_IN_DRIVER = 10_000
"""Live files of a whole table that are listed without a Spark job, where the log permits it."""


@dataclass(frozen=True, slots=True)
class PartitionSnapshot:
    """One partition's live files at one version, and the shape of the table they belong to."""

    version: int
    shape: TableShape
    files: tuple[LoggedFile, ...]


def read_partition(
    log: TableLog, partition: PartitionKey, cache: ReadCache, *, table_uuid: str = ""
) -> PartitionSnapshot:
    """Read a partition at the newest version; raises Unsupported for a table or files that must not be rewritten.

    Raises OtherTable where the table's id is not `table_uuid` (empty: any).
    """
    snapshot = log.snapshot()
    shape, version = log.shape(snapshot), log.version(snapshot)
    check_identity(log.location, shape.metadata, table_uuid)
    check_table(log.location, shape.metadata, shape.protocol)
    seen = _caught_up(log, cache, shape, version, partition) or _listed(log, snapshot, shape, partition)
    cache.put(log.location, seen)
    files = seen.of(partition)
    check_files(log.location, tuple(logged.file for logged in files))
    return PartitionSnapshot(version, shape, files)


def read_table(log: TableLog, snapshot: Any, cache: ReadCache) -> tuple[LoggedFile, ...]:
    """Return all live files of the newest snapshot; the files of a small table are cached."""
    shape, version = log.shape(snapshot), log.version(snapshot)
    seen = _caught_up(log, cache, shape, version, None) or _listed_whole(log, snapshot, shape)
    if len(seen.files) <= WHOLE_TABLE_FILES:
        cache.put(log.location, seen)
    return tuple(seen.files.values())


def _caught_up(
    log: TableLog, cache: ReadCache, shape: TableShape, version: int, partition: PartitionKey | None
) -> CachedRead | None:
    known = cache.get(log.location, partition)
    return None if known is None else caught_up(log, known, shape, version=version)


def _listed_whole(log: TableLog, snapshot: Any, shape: TableShape) -> CachedRead:
    version = log.version(snapshot)
    digest = log.digest(version)
    few = log.few_files(snapshot, FILES_IN_DRIVER)
    found = decode_adds(log.files(snapshot) if few is None else few, shape.metadata.partition_columns)
    if few is not None:
        log.cache(snapshot)
    return CachedRead(None, version, digest, shape, {logged.key: logged for logged in found})


def _listed(log: TableLog, snapshot: Any, shape: TableShape, partition: PartitionKey) -> CachedRead:
    """List the whole table if it is small, else the partition."""
    version, columns = log.version(snapshot), shape.metadata.partition_columns
    digest = log.digest(version)
    few = log.few_files(snapshot, WHOLE_TABLE_FILES)
    found = list_partition(log, snapshot, columns, partition) if few is None else decode_adds(few, columns)
    log.cache(snapshot)
    listed = partition if few is None else None
    return CachedRead(listed, version, digest, shape, {logged.key: logged for logged in found})
