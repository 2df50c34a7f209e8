"""Caches of an actor for Delta tables and for its executors, which all of its jobs share."""

from dataclasses import dataclass, field

from actor.formats.delta.footers import SchemaCache
from actor.formats.delta.read_cache import ReadCache
from actor.formats.delta.snapshot_cache import SnapshotCache
from actor.formats.parquet.classes import ParquetClasses


@dataclass(frozen=True, slots=True)
class DeltaCaches:
    """Live files and snapshots of tables, schemas of files, and whether executors take our classes."""

    reads: ReadCache = field(default_factory=ReadCache)
    snapshots: SnapshotCache = field(default_factory=SnapshotCache)
    schemas: SchemaCache = field(default_factory=SchemaCache)
    classes: ParquetClasses = field(default_factory=ParquetClasses)
