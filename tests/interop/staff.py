"""The engines of the laboratory, put together on one Spark."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from actor.proofread.model import Proof, Reading, Rewritten
from actor.proofread.proofreader import Proofreader, _raise_difference
from actor.proofread.task import ReadEnding, Work
from shared.policy.policy import Proofread
from tests.interop.engines.delta_rs import DatasetReader, DeltaRsWriter, QueryReader
from tests.interop.engines.duck import DuckDbFiles, DuckDbReader, DuckDbWriter
from tests.interop.engines.kernel import KernelReader, KernelWriter, compile_kernel
from tests.interop.engines.polars_ import PolarsReader, PolarsWriter
from tests.interop.engines.protocol import Reader, Writer
from tests.interop.engines.spark import SparkReader, SparkWriter
from tests.interop.laboratory import Staff
from tests.interop.rewriting import EngineRewrite

_LAB_CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",  # VACUUM with no retention at all.
    "spark.databricks.delta.vacuum.parallelDelete.enabled": "false",
}


def lab_session(spark: SparkSession, **conf: str) -> SparkSession:
    """A session of the laboratory's own: what it sets must not reach the engine under test."""
    session = spark.newSession()
    for name, value in (_LAB_CONF | conf).items():
        session.conf.set(name, value)
    return session


def staff(
    spark: SparkSession,
    engine: DeltaEngine,
    *,
    readers: Sequence[Reader] = (),
    writers: Sequence[Writer] = (),
    creators: Mapping[str, Writer] | None = None,
) -> Staff:
    """Everybody who works with the locked packages, and those given.

    Spark writes timestamps as microseconds, which is what other engines understand; as a creator it does so under the
    name `spark`, and under `spark, INT96` as it does by itself.
    """
    kernel = compile_kernel(spark)
    sparks = SparkWriter(lab_session(spark, **{"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}))
    by_default = SparkWriter(lab_session(spark))
    zstd = SparkWriter(lab_session(spark, **{"spark.sql.parquet.compression.codec": "zstd"}))
    return Staff(
        creators={
            "spark": sparks,
            "spark, INT96": by_default,
            "spark, ZSTD": zstd,
            "deltalake": DeltaRsWriter(),
            "deltalake, ZSTD": DeltaRsWriter(compression="ZSTD"),
            **(creators or {}),
        },
        writers=(
            sparks, DeltaRsWriter(), KernelWriter(kernel, spark), DuckDbWriter(), PolarsWriter(), *writers,
        ),
        readers=(
            SparkReader(lab_session(spark)), KernelReader(kernel), DatasetReader(), QueryReader(), DuckDbReader(),
            DuckDbFiles(), PolarsReader(), *readers,
        ),
        spark=sparks,
        rewrite=EngineRewrite(engine),
    )  # fmt: skip


class BothReaders(Proofreader):
    """Compares rows of every group; `seen` counts how groups ended, by reader: `duckdb rows`, `pyarrow same`."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def check(self, group: Rewritten, mode: Proofread, *, fingerprint: str = "", tag: str = "") -> Proof:
        """As an actor does for `always`; raises Difference for what either reader finds."""
        return super().check(group, Proofread.ALWAYS, fingerprint=fingerprint, tag=tag)

    def _check_rows(self, group: Rewritten, tag: str) -> Proof:
        proof = super()._check_rows(group, tag)
        again = self._ask(Work.ROWS_AGAIN, group, tag)
        if again.ending is ReadEnding.DIFFERENT:
            _raise_difference(group, replace(again, text=f"by the second reader: {again.text}"))
        self.seen[f"{proof.reader or 'neither'} {proof.reading}"] += 1
        self.seen[f"pyarrow {again.ending}"] += 1
        if again.ending is ReadEnding.UNREADABLE and proof.reading is Reading.NONE:
            self.seen["read by neither"] += 1
        return proof
