"""One rewrite from request to outcome: what happens, in which order, on a table of any format.

Outputs are written first, while no attempt to commit is open; then groups whose inputs changed meanwhile are set aside,
and the rest is committed at once. So Lakewright and other writers can get into each other's way for as short as a
commit takes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from actor.attempts import COMMIT_S
from actor.outcomes import not_written
from actor.ports import Control, GroupOutcome, GroupStatus, RewriteOutcome, RewriteRequest
from actor.rewrite.checks import MIB, free_bytes, require_free_space
from actor.rewrite.commit import CommitResult, Committer
from actor.rewrite.model import L, S, Staged
from actor.rewrite.ports import CommitTarget, GroupWriter, LiveGroups
from actor.rewrite.write import Workshop, WriteResult
from shared.layout.planner import FileGroup
from shared.paths.boundary import Boundary

FILES_WRITTEN = "files_written"
COMMITTED = "committed"


@dataclass(frozen=True, slots=True)
class RewriteSettings:
    """How rewrites work, whatever the format; see each field."""

    write_threads: int = 2  # Of groups, each of which needs a core at a time; more only share them.
    commit_s: float = COMMIT_S  # Others may be first for so long; then what was written is lost.
    reserved_disk_bytes: int = 256 * MIB  # Left free on a local disk: the table's own writers need it.


@dataclass(frozen=True, slots=True)
class ExactRewrite(Generic[L, S]):
    """One rewrite of an opened table; `clock_s` counts seconds, `free_bytes` the room on a table's disk."""

    files: LiveGroups[L]
    writer: GroupWriter[L, S]
    target: CommitTarget[S]
    boundary: Boundary
    settings: RewriteSettings
    clock_s: Callable[[], float] = time.monotonic
    free_bytes: Callable[[str], int | None] = free_bytes

    def run(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        """Replace the groups' files; groups whose inputs are not live return CONFLICTED, those not begun SKIPPED.

        Groups that are refused return REFUSED; those that fail for themselves return FAILED if others are written.

        Raises:
            LeaseLost: the control forbade the commit; nothing was committed, our files are deleted.
            Conflict: metadata changed so that the written files no longer fit, or others won every attempt.
            Corrupt: rows in and rows out differ; nothing was committed.
            Unsupported: a file lies where it must not be read or written; nothing was read.
            RetryableError: Spark failed, the disk is full, outputs are missing before the commit, or the outcome of the
                commit is unknown and the table does not show it.
        """
        started_s = self.clock_s()
        planned = [file for group in request.groups for file in group.files]
        self.boundary.check_files(self.files.folder, planned)
        self.boundary.check_links(self.files.folder, (file.path for file in planned))
        live = self.files.resolve(request.groups)
        self.boundary.check_links(self.files.folder, (path for one in live for path in one.delete_files))
        input_bytes = sum(one.group.bytes for one in live)
        reserved = self.settings.reserved_disk_bytes
        require_free_space(self.files.folder, input_bytes, reserved_bytes=reserved, free_bytes=self.free_bytes)
        committer = Committer(self.target, control, clock_s=self.clock_s)
        workshop = Workshop(
            self.target.location,
            self.files,
            self.writer,
            self.target.failures,
            committer,
            self.settings.write_threads,
            control.should_stop,
        )
        writes = workshop.write_groups(live)
        written_s = self.clock_s()
        commit = self._commit(writes, committer, control)
        return self._outcome(request, writes, commit, (started_s, written_s))

    def _commit(self, writes: WriteResult[S], committer: Committer[S], control: Control) -> CommitResult[S]:
        if not writes.written:
            return CommitResult()
        try:
            outputs = [output.file for one in writes.written for output in one.outputs]
            self.boundary.check_files(self.files.folder, outputs)
            control.reached(FILES_WRITTEN)
        except BaseException:
            committer.discard(writes.written)
            raise
        landing = committer.commit(writes.written, within_s=self.settings.commit_s)
        if landing.version is not None:
            control.reached(COMMITTED)
        return landing

    def _outcome(
        self, request: RewriteRequest, writes: WriteResult[S], commit: CommitResult[S], times_s: tuple[float, float]
    ) -> RewriteOutcome:
        """`times_s`: when the rewrite began, and when its files were written."""
        started_s, written_s = times_s
        landed = {one.live.group: _landed(one) for one in commit.committed}
        skipped = {group: GroupOutcome(group, GroupStatus.SKIPPED) for group in writes.skipped}
        known = landed | skipped | {group: not_written(group, error) for group, error in writes.failed}
        groups = [known.get(group) or _conflicted(group, commit.set_aside.get(group, "")) for group in request.groups]
        return RewriteOutcome(
            version=commit.version,
            groups=tuple(groups),
            prepare_ms=round((written_s - started_s) * 1000),
            commit_ms=round((self.clock_s() - written_s) * 1000),
            conflicts=commit.conflicts,
            follows=None if commit.version is None else self.target.follows(commit.version),
        )


def _conflicted(group: FileGroup, because: str) -> GroupOutcome:
    return GroupOutcome(group, GroupStatus.CONFLICTED, conflicted_because=because)


def _landed(group: Staged[Any, Any]) -> GroupOutcome:
    return GroupOutcome(
        group.live.group,
        GroupStatus.COMMITTED,
        tuple(output.file for output in group.outputs),
        group.rows,
        is_copied=group.encoded_because is None,
        encoded_because=group.encoded_because or "",
        by_column=group.by_column,
        proof=group.proof,
        late_rows=group.late_rows,
    )
