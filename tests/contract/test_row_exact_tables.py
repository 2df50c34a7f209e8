"""Rows are hidden in what a rewrite wrote, and others go on: every reader sees the rows that have to be there."""

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.row_exact.afterwards import HIDDEN, play_afterwards
from tests.row_exact.playing import Model
from tests.support.long_suites import beyond

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from actor.proofread.proofreader import Proofreader
    from tests.row_exact.on_delta import DeltaEngines
    from tests.row_exact.on_iceberg import IcebergEngines

pytestmark = pytest.mark.spark

SEED = 11
DELTA_KINDS = ("plain", "feed", "days", "mapped", "clocked", "checkpointed")
ICEBERG_KINDS = ("v2, shared", "v3", "v2", "v2, days", "v2, upserts", "v3, days", "v2 to v3")


@pytest.fixture(scope="module")
def delta(spark: "SparkSession", proofreader: "Proofreader") -> "DeltaEngines":
    from tests.interop.engines.kernel import compile_kernel
    from tests.row_exact.on_delta import DeltaEngines

    return DeltaEngines(spark, proofreader, compile_kernel(spark))


@pytest.fixture
def iceberg(spark: "SparkSession", proofreader: "Proofreader", tmp_path: Path) -> "IcebergEngines":
    from tests.row_exact.on_iceberg import IcebergEngines

    return IcebergEngines(spark, proofreader, tmp_path)


@pytest.mark.parametrize("way", ["copied", "by column"])
@pytest.mark.parametrize(("kind", "how"), beyond(2, [(kind, how) for kind in DELTA_KINDS for how in HIDDEN]))
def test_what_others_do_to_a_delta_table_after_rows_were_hidden(
    delta: "DeltaEngines", tmp_path: Path, kind: str, how: str, way: str
) -> None:
    from tests.row_exact.on_delta import KINDS, OnDelta

    play_afterwards(OnDelta(delta, tmp_path / "t", Model(Random(SEED)), KINDS[kind]), how, way)


@pytest.mark.parametrize("way", ["copied", "encoded"])
@pytest.mark.parametrize("kind", beyond(2, ICEBERG_KINDS, "iceberg"))
def test_what_others_do_to_an_iceberg_table_after_rows_were_hidden(
    iceberg: "IcebergEngines", kind: str, way: str
) -> None:
    from tests.row_exact.on_iceberg import KINDS, OnIceberg

    play_afterwards(OnIceberg(iceberg, "t", Model(Random(SEED)), KINDS[kind]), "late", way)
