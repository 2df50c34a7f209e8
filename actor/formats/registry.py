"""The engines of this release: the one place of the actor that knows which table formats there are."""

from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from actor.engines import EngineSet
from actor.formats.delta.engine import EngineSettings, start_engine
from actor.formats.delta.named_tables import NamedTables
from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings
from actor.formats.parquet.copy_rules import DEFAULT_LIMITS, CopyLimits
from actor.ports import TableEngine
from actor.proofread.proofreader import Proofreader, ProofreadSettings
from actor.rewrite.run import RewriteSettings
from shared.formats.options import FormatOptions
from shared.paths.boundary import Boundary
from shared.paths.store_options import StoreOptions


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Options of engines, whatever the format.

    allow_s3: every writer of tables on S3 takes part in mutual exclusion. reserved_disk_bytes: space that a rewrite
    leaves free. copy_limits: of outputs whose row groups are
    copied. secrets: texts that no message may contain. formats: which
    tables there are beside Delta's. parallel_groups: groups of a job that are written at once.
    stores: options of object stores.
    """

    boundary: Boundary
    allow_s3: bool = False
    reserved_disk_bytes: int = RewriteSettings().reserved_disk_bytes
    copy_limits: CopyLimits = DEFAULT_LIMITS
    secrets: tuple[str, ...] = field(default=(), repr=False)
    formats: FormatOptions = field(default_factory=FormatOptions)
    parallel_groups: int = RewriteSettings().write_threads
    stores: StoreOptions = field(default_factory=StoreOptions, repr=False)


def start_engines(spark: SparkSession, options: EngineOptions, *, scratch: str) -> tuple[EngineSet, int]:
    """Start every engine on one Spark application; Delta's tests its rewrite on a table below `scratch`, a URI.

    Returns how long that took in ms; raises PermanentError where it failed.
    """
    rewrite = RewriteSettings(options.parallel_groups, reserved_disk_bytes=options.reserved_disk_bytes)
    proofreader = Proofreader(ProofreadSettings(stores=options.stores))
    settings = EngineSettings(
        allow_s3=options.allow_s3,
        rewrite=rewrite,
        copy_limits=options.copy_limits,
        secrets=options.secrets,
        boundary=options.boundary,
        proofreader=proofreader,
    )
    delta, took_ms = start_engine(spark, settings, scratch=scratch)
    engines: list[TableEngine] = [NamedTables(delta, options.formats.unity)]
    if options.formats.has_iceberg:
        iceberg = IcebergEngineSettings(
            options.formats.iceberg_catalogs,
            options.formats.iceberg_folders,
            secrets=options.secrets,
            boundary=options.boundary,
            copy_limits=options.copy_limits,
            rewrite=rewrite,
        )
        engines.append(IcebergEngine(spark, iceberg, proofreader))
    return EngineSet(engines), took_ms
