"""Spark's sessions: they start, a test that times out ends only its own, tasks are local, threads keep theirs apart."""

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from actor.jvm.scala import Scala, jvm_context, jvm_session
from actor.jvm.sessions import Sessions, changed
from tests.support import java_sources
from tests.support.delta_lab import DeltaLab
from tests.support.time_limits import VARIABLE, scaled
from tests.support.waiting import until

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


@pytest.mark.long("care")
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


def test_what_ctrl_c_does_is_left_to_who_starts_spark(spark: Any) -> None:
    """PySpark's own handler cancels every job and raises at the first Ctrl-C, in place of a graceful stop."""
    assert not spark.sparkContext._jsc.sc().isStopped()
    handler = signal.getsignal(signal.SIGINT)
    assert not str(getattr(handler, "__module__", "")).startswith("pyspark"), handler


POOL = "spark.scheduler.pool"


def test_a_setting_that_was_there_has_its_value_again_and_one_that_was_not_is_gone(spark: Any) -> None:
    session, values = spark.newSession(), {"spark.sql.caseSensitive": "false", "spark.lakewright.of-a-test": "1"}
    session.conf.set("spark.sql.caseSensitive", "true")
    with suppress(ZeroDivisionError), changed(Scala(spark), session, values):
        assert {name: session.conf.get(name) for name in values} == values
        1 / 0  # noqa: B018 - whatever fails meanwhile
    assert session.conf.get("spark.sql.caseSensitive") == "true"
    assert session.conf.get("spark.lakewright.of-a-test", None) is None


def test_a_thread_that_was_bound_twice_has_the_outer_session_again(lab: DeltaLab) -> None:
    """One thread owns a session, writes a group and commits: Delta signs a commit with what the active session says."""
    scala, sessions = lab.engine._scala, lab.engine._sessions
    of_thread = scala.resolve("org.apache.spark.sql.classic.SparkSession").getActiveSession
    context, before = jvm_context(lab.spark), of_thread()
    with sessions.lease(tag="outer") as outer, sessions.lease(tag="inner") as inner, sessions.bound(outer):
        with sessions.bound(inner):
            assert of_thread().get().equals(jvm_session(inner.session))
            assert context.getLocalProperty(POOL) == inner.pool
        assert of_thread().get().equals(jvm_session(outer.session))
        assert context.getLocalProperty(POOL) == outer.pool
    assert of_thread().equals(before)
    assert context.getLocalProperty(POOL) is None


@pytest.mark.parametrize("way", ["read", "write"])
def test_a_session_that_has_analyzed_no_query_finds_columns_by_id(spark: Any, way: str) -> None:
    """Delta turns it on with the first query that a session analyzes, and its first rewrite comes before that."""
    with Sessions(Scala(spark), spark).lease(tag="first") as owned:
        assert owned.session.conf.get(f"spark.sql.parquet.fieldId.{way}.enabled") == "true"


HELD_TASK = """
package io.lakewright;

import io.lakewright.spark.LocalTasks;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.apache.spark.api.java.function.Function;

public final class HeldTask implements Function {
  private final Semaphore running;
  private final CountDownLatch end;

  public HeldTask(Semaphore running, CountDownLatch end) {
    this.running = running;
    this.end = end;
  }

  public Object call(Object nothing) throws Exception {
    running.release();
    end.await();
    running.acquire();
    return LocalTasks.isCancelled() ? "cancelled" : "done";
  }
}
"""


class Tasks:
    """Tasks that run until they are let go, each in a thread that has a job's tag."""

    def __init__(self, lab: DeltaLab, stack: ExitStack) -> None:
        self._scala = lab.engine._scala
        self._context = jvm_context(lab.spark)
        self._running = self._scala.resolve("java.util.concurrent.Semaphore")(0)
        self._ends: list[Any] = []
        self.cores = int(self._context.defaultParallelism())
        self._threads = stack.enter_context(ThreadPoolExecutor(self.cores + 2))
        stack.callback(self.let_go)  # Before the threads are joined, whatever failed.

    @property
    def running(self) -> int:
        return int(self._running.availablePermits())

    def start(self, tag: str) -> "Future[str]":
        end = self._scala.resolve("java.util.concurrent.CountDownLatch")(1)
        self._ends.append(end)
        task = self._scala.resolve("io.lakewright.HeldTask")(self._running, end)

        def run() -> str:
            self._context.addJobTag(tag)
            try:
                return str(self._scala.local_tasks.call(self._context, task))
            finally:
                self._context.removeJobTag(tag)

        return self._threads.submit(run)

    def cancel(self, tag: str) -> None:
        self._scala.local_tasks.cancel(tag)

    def let_go(self) -> None:
        for end in self._ends:
            end.countDown()


@pytest.fixture
def tasks(lab: DeltaLab, tmp_path: Path) -> Iterator[Tasks]:
    (tmp_path / "HeldTask.java").write_text(HELD_TASK)
    java_sources.compile_sources(lab.spark, [tmp_path / "HeldTask.java"], tmp_path / "classes")
    with ExitStack() as stack:
        yield Tasks(lab, stack)


def test_no_more_run_at_once_than_there_are_cores_and_a_job_that_waits_can_be_cancelled(tasks: Tasks) -> None:
    held = [tasks.start("job-held") for _ in range(tasks.cores)]
    until("each core has a task", lambda: tasks.running == tasks.cores, seconds=60)
    cancelled, later = tasks.start("job-cancelled"), tasks.start("job-later")

    def is_over() -> bool:
        tasks.cancel("job-cancelled")  # Again and again: it may not have been waiting yet.
        return cancelled.done()

    until("it ends although each core is taken", is_over, seconds=60)
    with pytest.raises(Py4JJavaError, match="cancelled before it began"):
        cancelled.result()
    assert (tasks.running, later.done()) == (tasks.cores, False)

    tasks.let_go()
    assert [one.result(scaled(60)) for one in (*held, later)] == ["done"] * (tasks.cores + 1)
    assert tasks.running == 0


def test_a_job_that_runs_is_told_of_its_cancel_and_no_other_is(tasks: Tasks) -> None:
    first, other = tasks.start("job-1"), tasks.start("job-2")
    until("both run", lambda: tasks.running == min(2, tasks.cores), seconds=60)
    tasks.cancel("job-1")
    tasks.let_go()
    assert (first.result(scaled(60)), other.result(scaled(60))) == ("cancelled", "done")

    again = tasks.start("job-1")
    tasks.let_go()
    assert again.result(scaled(60)) == "done", "a cancel holds for what runs, not for what the job runs later"
