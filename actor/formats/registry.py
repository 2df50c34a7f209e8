"""The engines of this release: the one place of the actor that knows which table formats there are."""

from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from actor.engines import EngineSet
from actor.formats.delta.engine import EngineSettings, start_engine
from actor.formats.delta.self_test import SelfTestResult
from actor.formats.delta.transaction import TransactionSettings
from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings
from actor.formats.parquet.copy_rules import DEFAULT_LIMITS, CopyLimits
from actor.ports import TableEngine
from shared.boundary import Boundary
from shared.format_options import FormatOptions


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What engines may do, whatever the format.

    allow_s3: every writer of tables on S3 takes part in mutual exclusion. reserved_disk_bytes: space that a rewrite
    leaves free. min_row_group_bytes and min_column_chunk_bytes, for each column: of row
    groups that are copied into a final file, on average. secrets: texts that no message may contain. formats: which
    tables there are beside Delta's.
    """

    boundary: Boundary
    allow_s3: bool = False
    reserved_disk_bytes: int = TransactionSettings().reserved_disk_bytes
    min_row_group_bytes: int = DEFAULT_LIMITS.min_row_group_bytes
    min_column_chunk_bytes: int = DEFAULT_LIMITS.min_column_chunk_bytes
    secrets: tuple[str, ...] = field(default=(), repr=False)
    formats: FormatOptions = field(default_factory=FormatOptions)


def start_engines(spark: SparkSession, options: EngineOptions, *, scratch: str) -> tuple[EngineSet, SelfTestResult]:
    """Start every engine on one Spark application; each tests its rewrite on a table below `scratch`, a URI."""
    copy_limits = CopyLimits(options.min_row_group_bytes, options.min_column_chunk_bytes)
    settings = EngineSettings(
        allow_s3=options.allow_s3,
        transaction=TransactionSettings(
            reserved_disk_bytes=options.reserved_disk_bytes,
            copy_limits=copy_limits,
        ),
        secrets=options.secrets,
        boundary=options.boundary,
    )
    delta, tested = start_engine(spark, settings, scratch=scratch)
    engines: list[TableEngine] = [delta]
    if options.formats.has_iceberg:
        iceberg = IcebergEngineSettings(
            options.formats.catalogs,
            options.formats.iceberg_folders,
            secrets=options.secrets,
            boundary=options.boundary,
            copy_limits=copy_limits,
        )
        engines.append(IcebergEngine(spark, iceberg))
    return EngineSet(engines), tested
