"""Running a plan on the spot, with an actor's own engine: exactly its groups, each commit whole or not at all.

There are no leases here, so nothing forbids a commit; the table is protected as always, by Delta's own
transaction, the inputs checked again before it, and rows in compared with rows out. A request to stop is heard
between groups: what is written by then is committed, and the rest was never touched.

The engine of an actor for the life of one command: Java and jars are prepared on demand, and it proves itself first.

If Delta's inner API is not what we know, an actor falls back to OPTIMIZE, which takes other files than were shown;
here that would break a promise, so it is refused.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from actor.engines import EngineSet
from actor.formats.registry import start_engines
from actor.jvm.java import find_java
from actor.jvm.spark import stop_session
from actor.ports import GroupStatus, RewriteOutcome, RewriteRequest, TableEngine
from services.actor.scratch import scratch_dir
from services.actor.settings import actor_settings
from services.actor.spark import engine_options, start_spark
from services.bootstrap import prepare
from services.cli.local.plan import LocalPlan, batches
from services.logs import configure_logs
from services.paths import java_search
from services.private import private_dir
from shared.errors import Conflict, LakewrightError, RefusedFiles
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup, Plan
from shared.policy.policy import RowGroupCopy
from shared.table import CommitOrigin, PartitionKey

GROUPS_PER_COMMIT = 8
"""Groups that share a commit, as in an actor: more save commits, fewer lose less to a conflict."""

ALONE = 1
"""The token of a run that no other can take over."""


@dataclass(slots=True)
class LocalRun:
    """Progress of a run; sizes in bytes, times in milliseconds. `failure` ended it early.

    `refused` groups stay as they are for the reason of the first `refusal`; the others go on.
    """

    job: str
    versions: list[int] = field(default_factory=list)
    landed: int = 0
    stale: int = 0
    skipped: int = 0
    rows: int = 0
    bytes_replaced: int = 0
    bytes_written: int = 0
    prepare_ms: int = 0
    commit_ms: int = 0
    failure: LakewrightError | None = None
    refused: int = 0
    refusal: LakewrightError | None = None

    def describe(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {
            "job": self.job,
            "versions": self.versions,
            "groups_committed": self.landed,
            "groups_conflicted": self.stale,
            "groups_skipped": self.skipped,
            "groups_refused": self.refused,
            "refusal": str(self.refusal) if self.refusal else None,
            "rows": self.rows,
            "bytes_replaced": self.bytes_replaced,
            "bytes_written": self.bytes_written,
            "prepare_ms": self.prepare_ms,
            "commit_ms": self.commit_ms,
            "error": str(self.failure) if self.failure else None,
        }


@dataclass(frozen=True, slots=True)
class RunListener:
    """Hooks of a run: a batch has `begun`, `reached` a point or `ended` with its bytes; `stopping` is polled."""

    stopping: Callable[[], bool]
    begun: Callable[[Plan, int], None] = lambda _plan, _groups: None
    reached: Callable[[str], None] = lambda _point: None
    ended: Callable[[int, int], None] = lambda _groups, _bytes: None


@dataclass(frozen=True, slots=True)
class _LocalControl:
    """`actor.ports.Control` of a run without a lease."""

    steps: RunListener

    def may_commit(self) -> None:
        """Let every commit pass: there is no lease that could be lost."""

    def should_stop(self) -> bool:
        return self.steps.stopping()

    def reached(self, point: str) -> None:
        self.steps.reached(point)


@dataclass(frozen=True, slots=True)
class LocalRunner:
    """Rewrites the groups of a plan into `run`, which holds what was done however this ends."""

    made: LocalPlan
    engine: TableEngine
    steps: RunListener
    run: LocalRun

    def go(self) -> None:
        """Run to the end, to a request to stop, or to a failure, which is kept; a conflict only makes groups stale."""
        seen: PartitionKey | None = None
        for number, (one, groups) in enumerate(batches(self.made, GROUPS_PER_COMMIT), 1):
            if self.run.failure is not None or self.steps.stopping():
                self.run.skipped += len(groups)
                continue
            self.steps.begun(one, len(groups))
            try:
                if one.partition != seen:
                    # Refuses a table that must not be changed, and caches the files, which saves another listing.
                    self.engine.read_partition(self.made.location, one.partition, table_uuid=self.made.table_uuid)
                    seen = one.partition
                self._note(self._rewrite(one, groups, number))
            except Conflict:
                self.run.stale += len(groups)
            except RefusedFiles as refused:
                self.run.refused += len(groups)
                self.run.refusal = self.run.refusal or refused
            except LakewrightError as failure:
                self.run.skipped += len(groups)
                self.run.failure = failure
            self.steps.ended(len(groups), sum(group.bytes for group in groups))

    def _rewrite(self, one: Plan, groups: tuple[FileGroup, ...], number: int) -> RewriteOutcome:
        mark = CommitMetadata(
            origin=CommitOrigin(self.run.job, ALONE),
            partition=one.partition,
            round=number,
            mode=max(group.mode for group in groups),
            started_ms=time.time_ns() // 1_000_000,
            size_levels=self.made.policy.size_levels,
            partition_files=one.before.files,
            partition_small_files=one.before.small_files,
        )
        policy = self.made.policy
        request = RewriteRequest(
            self.made.location,
            groups,
            mark.encode(),
            self.made.table_uuid,
            may_copy=policy.row_group_copy is RowGroupCopy.AUTO,
            full_bytes=policy.size_levels.full_bytes,
            proofread=policy.proofread,
            carry_below=policy.delete_ratio_threshold,
        )
        return self.engine.rewrite(request, _LocalControl(self.steps))

    def _note(self, outcome: RewriteOutcome) -> None:
        run = self.run
        run.prepare_ms += outcome.prepare_ms
        run.commit_ms += outcome.commit_ms
        if outcome.version is not None:
            run.versions.append(outcome.version)
        for end in outcome.groups:
            match end.status:
                case GroupStatus.COMMITTED:
                    run.landed += 1
                    run.rows += end.rows or 0
                    run.bytes_replaced += end.group.bytes
                    run.bytes_written += sum(file.size_bytes for file in end.outputs)
                case GroupStatus.CONFLICTED:
                    run.stale += 1
                case GroupStatus.SKIPPED:
                    run.skipped += 1
                case GroupStatus.REFUSED:
                    run.refused += 1
                    run.refusal = run.refusal or end.error
                case GroupStatus.FAILED:
                    run.skipped += 1
                    run.failure = run.failure or end.error


@contextmanager
def alone_engine(report: Callable[[str], None]) -> Iterator[EngineSet]:
    """Start Spark in this process and stop it at the end; `report` gets the name of each step.

    Raises InvalidInput without a usable Java, PermanentError if jars cannot be fetched, there is no scratch space of
    our own, Spark does not start, or the exact rewrite does not work with what is installed.
    """
    configure_logs("warning")
    settings = actor_settings(os.environ)
    prepare(os.environ, report)
    java = find_java(java_search(os.environ))
    with scratch_dir(private_dir(Path(tempfile.gettempdir()) / f"lakewright-{os.getuid()}")) as scratch:
        report("starting Spark")
        spark = start_spark(settings, scratch=scratch, java=java)
        try:
            report("trying an exact rewrite on a scratch table")
            engines, _ = start_engines(spark, engine_options(settings), scratch=scratch.resolve().as_uri())
            yield engines
        finally:
            stop_session(spark)
