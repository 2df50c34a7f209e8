"""A table without Delta: its version is the length of a file, a commit is a line in the log of the run that made it.

As in a real table, its own log decides who was first: a commit is refused once a later run of the job has committed.
"""

import fcntl
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from actor.ports import (
    Control,
    EngineDeath,
    GroupOutcome,
    GroupStatus,
    LivePartition,
    RewriteOutcome,
    RewriteRequest,
    TableJob,
    TableJobControl,
    TableJobOutcome,
)
from shared.jobs.payload import JobPayload, PredictedCost
from shared.layout import commit_metadata
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB, Policy
from shared.policy.properties import policy_digest
from shared.queue.model import Claim
from shared.table import DataFile, PartitionKey, TableMetadata, TableProtocol

SMALL = tuple(DataFile(f"f{number}", 100_000, WHOLE_TABLE, rows=1) for number in range(8))
FAILS, IS_BUSY = 0.02, 0.08
"""Probability that a rewrite fails, and that the partition's writers add files faster than one job may follow."""

OUTPUTS, SCRATCH = "outputs", "scratch"
"""Files beside the tables that every rewrite writes, as others write data files and temporary ones."""

Note = Callable[..., None]


def payload(location: Path) -> str:
    """Return what a job for the table at this place says about it."""
    policy, predicted = Policy(target_bytes=8 * MIB), PredictedCost(8, 7, 800_000)
    return JobPayload(str(location), location.name, policy, "chaos", predicted, policy_digest({})).encode()


@dataclass(slots=True)
class _Run:
    """What a run finds in its partition."""

    claim: Claim
    is_busy: bool
    has_work: bool = True
    version: int = -1


class FileTable:
    """Implements `actor.ports.TableEngine` for a worker of one slot, whose jobs may share a commit."""

    format = "files"
    table_kinds: tuple[str, ...] = ()

    def __init__(self, note: Note, reached: Callable[[Claim, str], None], seed: int) -> None:
        self._note = note
        self._reached = reached
        self._random = random.Random(seed)
        self._runs: dict[str, _Run] = {}

    def begin(self, claims: Sequence[Claim]) -> None:
        """Forget the runs before; these will find something to do."""
        self._runs = {claim.key.partition: _Run(claim, self._random.random() < IS_BUSY) for claim in claims}

    def read_partition(self, location: str, partition: PartitionKey, *, table_uuid: str = "") -> LivePartition:
        """Return eight small files, or none if this run has rewritten them."""
        run = self._runs[partition]
        run.version = Path(location).stat().st_size - 1
        files = tuple(replace(file, partition=partition) for file in SMALL) if run.has_work or run.is_busy else ()
        # Reading takes its time, in which commits come that this run does not see.
        time.sleep(self._random.uniform(0, 0.01))
        return LivePartition(run.version, TableMetadata("t", (), {}), TableProtocol(1, 2), files)

    def run_table_job(self, job: TableJob, control: TableJobControl) -> TableJobOutcome:
        """There is none: only jobs on partitions are queued."""
        raise NotImplementedError

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        """Take a moment, and commit unless the lease or a later run forbids it."""
        mark = commit_metadata.decode(request.user_metadata)
        assert mark is not None
        assert mark.started_ms is not None
        runs = {partition: self._runs[partition] for partition in {group.partition for group in request.groups}}
        assert {(run.claim.id, run.claim.token) for run in runs.values()} == {(o.job, o.token) for o in mark.origins}
        true_ms = time.clock_gettime_ns(time.CLOCK_REALTIME) // 1_000_000
        for run in runs.values():
            self._note("files_written", run.claim, clock_off_ms=mark.started_ms - true_ms)
        time.sleep(self._random.uniform(0, 0.02))
        self._write(Path(request.location).parent, runs)
        control.reached("files_written")
        control.may_commit()
        for run in runs.values():
            self._reached(run.claim, "confirmed")
        if self._random.random() < FAILS:
            raise OSError("failed, for once")
        landed = {partition for partition, run in runs.items() if self._commit(Path(request.location), run)}
        ends = tuple(
            GroupOutcome(group, GroupStatus.COMMITTED if group.partition in landed else GroupStatus.CONFLICTED)
            for group in request.groups
        )
        if not landed:
            return RewriteOutcome(None, ends, 1, 1, conflicts=1)
        control.reached("committed")
        version = max(runs[partition].version for partition in landed)
        return RewriteOutcome(version, ends, 1, 1, conflicts=len(runs) - len(landed))

    def _write(self, folder: Path, runs: Mapping[PartitionKey, _Run]) -> None:
        """Write what a rewrite writes before its commit; raises OSError where a disk is full."""
        try:
            for name in (SCRATCH, OUTPUTS):
                (folder / name).write_bytes(b"rows")
        except OSError as problem:
            for run in runs.values():
                self._note("failed", run.claim, why=str(problem))
            raise

    def _commit(self, location: Path, run: _Run) -> bool:
        claim = run.claim
        with location.with_suffix(f".{claim.key.partition}").open("a+") as last:
            fcntl.flock(last, fcntl.LOCK_EX)
            last.seek(0)
            if int(last.read() or 0) > claim.token:
                return False
            last.truncate(0)
            last.write(str(claim.token))
            self._note("committed", claim, seen=run.version)
            run.has_work = False
            return True

    def terminate(self) -> EngineDeath | None:
        """Never requested: this engine lives as long as its process."""
        return None

    def is_alive(self) -> bool:
        """Say yes: it is a file."""
        return True

    def cancel(self, job: str) -> None:
        """Do nothing: a rewrite takes milliseconds."""

    def find_commit(self, location: str, *, job: str, token: int, since_version: int) -> int | None:
        """Return None: nothing depends on it."""
        return None
