"""A table without Delta: its version is the length of a file, a commit is a line in the log of the run that made it.

As in a real table, its own log decides who was first: a commit is refused once a later run of the job has committed.
"""

import fcntl
import random
import time
from collections.abc import Callable
from pathlib import Path

from actor.ports import Control, EngineDeath, GroupOutcome, GroupStatus, LivePartition, RewriteOutcome, RewriteRequest
from shared import commit_metadata
from shared.job_payload import JobPayload, PredictedCost
from shared.partitions import WHOLE_TABLE
from shared.policy import MIB, Policy
from shared.properties import policy_digest
from shared.queue.model import Claim
from shared.table import DataFile, PartitionKey, TableMetadata, TableProtocol

SMALL = tuple(DataFile(f"f{number}", 100_000, WHOLE_TABLE, rows=1) for number in range(8))
FAILS, IS_BUSY = 0.02, 0.08
"""Probability that a rewrite fails, and that the partition's writers add files faster than one job may follow."""

Note = Callable[..., None]


def payload(location: Path) -> str:
    """Return what a job for the table at this place says about it."""
    policy, predicted = Policy(target_bytes=8 * MIB), PredictedCost(8, 7, 800_000)
    return JobPayload(str(location), location.name, policy, "chaos", predicted, policy_digest({})).encode()


class FileTable:
    """Implements `actor.ports.TableEngine` for a worker of one slot."""

    format = "files"

    def __init__(self, note: Note, reached: Callable[[Claim, str], None], seed: int) -> None:
        self._note = note
        self._reached = reached
        self._random = random.Random(seed)
        self._has_work = False
        self._is_busy = False
        self._version = -1
        self._claim: Claim | None = None

    def begin(self, claim: Claim) -> None:
        """Forget the run before; this one will find something to do."""
        self._claim = claim
        self._has_work = True
        self._is_busy = self._random.random() < IS_BUSY

    def read_partition(self, location: str, partition: PartitionKey, *, table_uuid: str = "") -> LivePartition:
        """Return eight small files, or none if this run has rewritten them."""
        self._version = Path(location).stat().st_size - 1
        files = SMALL if self._has_work or self._is_busy else ()
        # Reading takes its time, in which commits come that this run does not see.
        time.sleep(self._random.uniform(0, 0.01))
        return LivePartition(self._version, TableMetadata("t", (), {}), TableProtocol(1, 2), files)

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        """Take a moment, and commit unless the lease or a later run forbids it."""
        assert self._claim is not None
        mark = commit_metadata.decode(request.user_metadata)
        assert mark is not None
        assert mark.started_ms is not None
        true_ms = time.clock_gettime_ns(time.CLOCK_REALTIME) // 1_000_000
        self._note("files_written", self._claim, clock_off_ms=mark.started_ms - true_ms)
        time.sleep(self._random.uniform(0, 0.02))
        control.reached("files_written")
        control.may_commit()
        self._reached(self._claim, "confirmed")
        if self._random.random() < FAILS:
            raise OSError("the disk is full, for once")
        if not self._commit(Path(request.location), self._claim):
            stale = tuple(GroupOutcome(group, GroupStatus.CONFLICTED) for group in request.groups)
            return RewriteOutcome(None, stale, 1, 1, conflicts=1)
        self._has_work = False
        control.reached("committed")
        landed = tuple(GroupOutcome(group, GroupStatus.COMMITTED) for group in request.groups)
        return RewriteOutcome(self._version, landed, 1, 1)

    def _commit(self, location: Path, claim: Claim) -> bool:
        with location.with_suffix(f".{claim.key.partition}").open("a+") as last:
            fcntl.flock(last, fcntl.LOCK_EX)
            last.seek(0)
            if int(last.read() or 0) > claim.token:
                return False
            last.truncate(0)
            last.write(str(claim.token))
            self._note("committed", claim, seen=self._version)
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
