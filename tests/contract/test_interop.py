"""The laboratory at its small size: no engine finds other rows, types or answers after our rewrite than before it."""

import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")
pytest.importorskip("duckdb", reason="DuckDB and Polars are in the group `dev`")

from pyspark.sql import SparkSession

from actor.formats.delta.engine import DeltaEngine
from tests.interop.laboratory import Laboratory, Staff
from tests.interop.plan import Planned, small, whole
from tests.interop.staff import staff
from tests.interop.verdicts import Verdict


@pytest.fixture(scope="module")
def crew(spark: SparkSession, engine: DeltaEngine) -> Staff:
    return staff(spark, engine)


@pytest.mark.spark
@pytest.mark.parametrize("planned", list(small()), ids=lambda planned: planned.name)
def test_all_engines_agree_with_the_model_after_our_rewrite(crew: Staff, tmp_path: Path, planned: Planned) -> None:
    began = time.monotonic()

    results = list(Laboratory(crew, tmp_path).run(planned.case, planned.creator, planned.round))

    counts = Counter(result.verdict for result in results)
    print(f"{planned.name}: {dict(counts)} in {time.monotonic() - began:.1f} s")
    ours = [str(result) for result in results if result.verdict in (Verdict.OURS, Verdict.REFUSED)]
    assert not ours, "\n".join(ours)
    assert counts[Verdict.AGREES] > 30, "the laboratory compared something"


def test_every_round_of_the_whole_run_has_a_name_of_its_own() -> None:
    names = [planned.name for planned in whole()]

    assert len(set(names)) == len(names) > 50
