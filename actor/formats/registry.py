"""The engines of this release: the one place of the actor that knows which table formats there are."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from actor.engines import EngineSet
from actor.formats.delta.engine import EngineSettings, start_engine
from actor.formats.delta.named_tables import NamedTables
from actor.formats.delta.self_test import SelfTestResult
from actor.formats.delta.transaction import TransactionSettings
from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings
from actor.formats.parquet.copy_rules import DEFAULT_LIMITS, CopyLimits
from actor.formats.qbeast.engine import QbeastEngine, QbeastEngineSettings
from actor.formats.qbeast.self_test import self_test as qbeast_self_test
from actor.formats.qbeast.spark import QbeastSparkSettings
from actor.formats.qbeast.spark import start_spark as start_qbeast_spark
from actor.jvm.java import PARALLEL_COLLECTOR
from actor.ports import TableEngine
from shared.boundary import Boundary
from shared.format_options import FormatOptions
from shared.unity.catalog import UnityCatalog


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What engines may do, whatever the format.

    allow_s3: every writer of tables on S3 takes part in mutual exclusion. reserved_disk_bytes: space that a rewrite
    leaves free. min_row_group_bytes and min_column_chunk_bytes, for each column: of row
    groups that are copied into a final file, on average. secrets: texts that no message may contain. formats: which
    tables there are beside Delta's. parallel_groups: groups of a job that are written at once.
    """

    boundary: Boundary
    allow_s3: bool = False
    reserved_disk_bytes: int = TransactionSettings().reserved_disk_bytes
    min_row_group_bytes: int = DEFAULT_LIMITS.min_row_group_bytes
    min_column_chunk_bytes: int = DEFAULT_LIMITS.min_column_chunk_bytes
    secrets: tuple[str, ...] = field(default=(), repr=False)
    formats: FormatOptions = field(default_factory=FormatOptions)
    parallel_groups: int = TransactionSettings().write_threads


@dataclass(frozen=True, slots=True)
class IndexEngineOptions:
    """What the engine of indexes is started with; `library_jar` is the jar of Qbeast's library.

    secrets: texts that no message may contain. unity: catalogs that know tables by name.
    """

    boundary: Boundary
    library_jar: Path
    ivy_dir: Path
    master: str
    driver_memory: str
    collector: tuple[str, ...] = PARALLEL_COLLECTOR
    secrets: tuple[str, ...] = field(default=(), repr=False)
    spark_options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    unity: Mapping[str, UnityCatalog] = field(default_factory=dict, repr=False, hash=False)


def start_index_engine(
    options: IndexEngineOptions, *, scratch: Path, java_home: Path
) -> tuple[SparkSession, EngineSet, int]:
    """Start the library's own Spark and its engine, which runs no other jobs than those on indexes.

    Returns how long its test took in ms, on a table below `scratch`; raises PermanentError where that failed.
    """
    spark_settings = QbeastSparkSettings(
        scratch,
        options.ivy_dir,
        options.library_jar,
        options.master,
        options.driver_memory,
        options.collector,
        options=options.spark_options,
    )
    spark = start_qbeast_spark(spark_settings, java_home=java_home)
    engine = QbeastEngine(spark, QbeastEngineSettings(secrets=options.secrets, boundary=options.boundary))
    inside = Boundary(roots=(scratch.resolve().as_uri(),), real_path=os.path.realpath)
    took_ms = qbeast_self_test(
        spark, QbeastEngine(spark, QbeastEngineSettings(boundary=inside)), scratch.resolve().as_uri()
    )
    named = NamedTables(engine, options.unity)
    return spark, EngineSet([named], partition_kinds=engine.partition_kinds), took_ms


def start_engines(spark: SparkSession, options: EngineOptions, *, scratch: str) -> tuple[EngineSet, SelfTestResult]:
    """Start every engine on one Spark application; each tests its rewrite on a table below `scratch`, a URI."""
    copy_limits = CopyLimits(options.min_row_group_bytes, options.min_column_chunk_bytes)
    settings = EngineSettings(
        allow_s3=options.allow_s3,
        transaction=TransactionSettings(
            write_threads=options.parallel_groups,
            reserved_disk_bytes=options.reserved_disk_bytes,
            copy_limits=copy_limits,
        ),
        secrets=options.secrets,
        boundary=options.boundary,
    )
    delta, tested = start_engine(spark, settings, scratch=scratch)
    engines: list[TableEngine] = [NamedTables(delta, options.formats.unity)]
    if options.formats.has_iceberg:
        iceberg = IcebergEngineSettings(
            options.formats.iceberg_catalogs,
            options.formats.iceberg_folders,
            secrets=options.secrets,
            boundary=options.boundary,
            copy_limits=copy_limits,
            write_threads=options.parallel_groups,
        )
        engines.append(IcebergEngine(spark, iceberg))
    return EngineSet(engines), tested
