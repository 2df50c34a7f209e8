"""One claimed job on a table as a whole, such as vacuum: the engine runs it in one call, under the job's lease.

It excludes no other job of its table: rewrites go on beside it, in other slots. One that is refused, as after a
difference between what it wrote and what it read, is remembered by its kind, and not tried again for every commit.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from actor.engines import EngineSet
from actor.leased_run import LeasedRun, Report, stopped_result
from actor.ports import TableJob, TableJobOutcome
from actor.slot_queue import HeldJob
from shared import tracing
from shared.errors import RefusedFiles
from shared.formats.registry import support_of
from shared.jobs.payload import JobPayload
from shared.partition_refusals import PartitionRefusals, TableFingerprint
from shared.policy.properties import policy_digest
from shared.prices import Usage
from shared.queue.model import RunResult
from shared.run_counters import RunCounter, runs_of_kind
from shared.table import CommitOrigin
from shared.tracing import Attribute


@dataclass(slots=True)
class TableJobReport:
    """Report of a table job; its figures are also counters of the table, as `KIND_FIGURE`.

    so_far: figures of a job that has not ended, or failed.
    """

    kind: str
    payload: JobPayload
    outcome: TableJobOutcome | None = None
    so_far: Mapping[str, int] = field(default_factory=dict)

    @property
    def cost_bytes(self) -> int:
        """Bytes of the data files that it replaced: what a rewrite is charged with; 0 for all other kinds."""
        return self._changes.get("bytes_replaced", 0)

    @property
    def satisfied_version(self) -> int:
        """The version that it read, unless it stopped before its end or the table's properties have changed."""
        done = self.outcome
        if done is None or not done.is_complete:
            return -1
        is_same = policy_digest(done.metadata.configuration) == self.payload.policy_digest
        return done.version if is_same else -1

    def counters(self) -> dict[str, int]:
        """Counters that this run adds to the funnel; a dry run has only counted what it would do."""
        figures = {f"{self.kind}_{name}": count for name, count in self._changes.items() if count}
        return {RunCounter.JOBS_RUN: 1, runs_of_kind(self.kind): 1, **figures}

    def measures(self) -> dict[str, int]:
        """Measures for the decider: none, because its predictions are not calibrated."""
        return {}

    @property
    def usage(self) -> Usage:
        """Usage of the store by the job, as far as it rewrote files."""
        changed = self._changes
        return Usage(
            bytes_read=self.cost_bytes,
            bytes_written=changed.get("bytes_written", 0),
            reads=changed.get("files_replaced", 0),
            writes=changed.get("files_written", 0) + (len(self.outcome.commits) if self.outcome else 0),
        )

    def encode(self, usage: Usage) -> str:
        """Write the report as JSON text; usage: all that the run used."""
        done = self.outcome
        report = {
            "table": self.payload.name,
            "reason": self.payload.reason,
            "versions": list(done.commits) if done else [],
            "seen_version": done.version if done else -1,
            "measured": dict(self._figures),
            "usage": usage.encode(),
            "is_complete": done.is_complete if done else False,
            "left_out": done.reason if done else "",
        }
        return json.dumps(report, separators=(",", ":"))

    @property
    def _changes(self) -> Mapping[str, int]:
        """The figures of a run that changed the table; none of a dry run."""
        return {} if self.payload.options.get("dry_run") else self._figures

    @property
    def _figures(self) -> Mapping[str, int]:
        return self.outcome.figures if self.outcome else self.so_far


@dataclass(frozen=True, slots=True)
class TableJobProgress:
    """The worker's implementation of `actor.ports.TableJobControl`."""

    revalidate: Callable[[], None]
    must_stop: Callable[[], bool]
    set_progress: Callable[[str], None]
    hook: Callable[[str], None]
    figures: dict[str, int] = field(default_factory=dict)

    def may_change(self) -> None:
        """Raise LeaseLost unless the job may still change the table."""
        self.revalidate()

    def should_stop(self) -> bool:
        """Return whether the job ends after the current step."""
        return self.must_stop()

    def reached(self, point: str, done: int = 0, total: int = 0) -> None:
        """Report progress with the next heartbeat."""
        share = round(done / total, 3) if total else 0.0
        self.set_progress(json.dumps({"point": point, "done": done, "total": total, "share": share}))
        self.hook(point)

    def measured(self, figures: Mapping[str, int]) -> None:
        """Keep the figures so far."""
        self.figures.update(figures)


class TableJobRun(LeasedRun):
    """One run of a table job."""

    def __init__(self, held: HeldJob, engines: EngineSet) -> None:
        super().__init__(held)
        self._engines = engines
        self._report: TableJobReport | None = None
        self._refusals = held.claim.refusals

    @property
    def result(self) -> Report | None:
        """The report as far as it goes."""
        return self._report

    @property
    def refusals(self) -> str | None:
        """Refusals to remember of the table as a whole; None: nothing new."""
        return None if self._refusals == self.claim.refusals else self._refusals

    def fail(self, failure: Exception) -> None:
        """End the job; a refusal is remembered."""
        super().fail(failure)
        if isinstance(failure, RefusedFiles) and self.verdict is RunResult.CANCELLED:
            self._remember(failure, is_futile=True)

    def _remember(self, refused: RefusedFiles | None, *, is_futile: bool) -> None:
        """Note that the job was refused, if not `is_futile` a part of it, or no longer is."""
        claim, known = self.claim, PartitionRefusals.decode(self.claim.refusals)
        if self._report is None or (refused is None and not known.jobs):
            return
        if refused is not None:
            known = known.in_force(TableFingerprint(*self._report.payload.fingerprint))
        now_ms = time.time_ns() // 1_000_000
        step = support_of(self._report.payload.format).commit_step
        self._refusals = known.after_job(
            claim.key.kind, refused, claim.version, now_ms=now_ms, is_futile=is_futile, commit_step=step
        ).encode()

    def work(self, control: TableJobProgress) -> None:
        """Run the job to its end."""
        claim = self.claim
        payload = JobPayload.decode(claim.payload)
        tracing.describe(self.span, {Attribute.TABLE: payload.name})
        self._report = TableJobReport(claim.key.kind, payload, so_far=control.figures)
        engine = self._engines.of(payload.format)
        job = TableJob(
            kind=claim.key.kind,
            location=payload.location,
            policy=payload.policy,
            origin=CommitOrigin(claim.id, claim.token),
            table_uuid=payload.table_uuid,
            even_if_disabled=payload.even_if_disabled,
            policy_digest=payload.policy_digest,
            options=payload.options,
            trace=tracing.context_of(self.span),
            decided_ms=payload.decided_ms,
        )
        done = self._report.outcome = engine.run_table_job(job, control)
        self.is_over = True
        if done.commits:
            self._remember(done.left, is_futile=False)
        self.verdict = RunResult.DONE if done.is_complete else stopped_result(self.lease.stop_reason)
