"""One test that times out in the middle of a call into the JVM fails alone: the next one has another Spark."""

from pathlib import Path

import pytest

from tests.support.time_limits import VARIABLE, scaled

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]

SUITE = """
import pytest
from pyspark import SparkContext

seen = []


@pytest.fixture(scope="module")
def frame(spark):
    return spark.range(7)


@pytest.mark.timeout(2, func_only=True)
def test_times_out_in_the_jvm(engine, spark, frame):
    seen.append((spark, engine))
    # It ends before the next test calls: then its answer would be taken for that of the next call.
    spark._jvm.java.lang.Thread.sleep(4_000)


def test_the_next_has_another_spark(engine, spark, frame):
    assert seen[0] != (spark, engine)
    assert engine.is_alive()
    assert frame.count() == 7
    spark.sparkContext._gateway.proc.kill()
    spark.sparkContext._gateway.proc.wait()


def test_a_jvm_that_died_is_stopped_without_an_error():
    assert not SparkContext._gateway
"""


@pytest.mark.long("crashes")
def test_a_timeout_in_a_jvm_call_ends_that_spark_and_the_next_test_has_another(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv(VARIABLE, "1")  # Its limit of two seconds strikes in a call of four.
    pytester.makeconftest('pytest_plugins = ["tests.contract.conftest", "tests.support.interrupted"]')
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_subprocess("-p", "no:xdist", "-p", "no:cacheprovider", "-rA", timeout=scaled(240))
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*Failed: Timeout (>2.0s)*"])
