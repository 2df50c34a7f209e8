"""Tasks of a local driver: no more at once than it has cores; a cancel reaches those that run and those that wait."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from actor.jvm.scala import jvm_context
from tests.support import java_sources
from tests.support.delta_lab import DeltaLab
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = pytest.mark.spark

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
