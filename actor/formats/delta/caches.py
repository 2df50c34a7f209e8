"""Caches of an actor for Delta tables and for its executors, which all of its jobs share."""

from dataclasses import dataclass, field

from actor.formats.delta.footers import SchemaCache
from actor.formats.delta.read_cache import ReadCache
from actor.formats.delta.snapshot_cache import SnapshotCache
from actor.formats.parquet.classes import ParquetClasses


@dataclass(frozen=True, slots=True)
class DeltaCaches:
    """Live files and snapshots of tables, schemas of files, and whether executors take our classes.

    index_rules: types of keys and rules of indexes by which Spark has counted the same rows as tasks.
    """

    reads: ReadCache = field(default_factory=ReadCache)
    snapshots: SnapshotCache = field(default_factory=SnapshotCache)
    schemas: SchemaCache = field(default_factory=SchemaCache)
    classes: ParquetClasses = field(default_factory=ParquetClasses)
    index_rules: set[tuple[str, str]] = field(default_factory=set)
