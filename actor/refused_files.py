"""Treatment of refused files in a run: it leaves out those that are remembered, and remembers those that it meets.

The actor's check is the one that counts: it reads the live files, so it forgets a refusal whose files, schema,
properties or release have changed, whatever the decider knew when it queued the job.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from actor.ports import GroupOutcome, GroupStatus, LivePartition, RewriteOutcome
from shared.errors import LakewrightError, RefusedFiles, Unsupported
from shared.jobs.payload import JobPayload
from shared.layout.planner import FileGroup
from shared.partition_refusals import FileRefusal, PartitionRefusals, TableFingerprint, live_ids
from shared.table import DataFile, FileKey


class RefusedInRun:
    """The refusals of one partition during a run; `now_ms` is the clock that dates them."""

    def __init__(self, remembered: str, now_ms: Callable[[], int], log: structlog.stdlib.BoundLogger) -> None:
        self._log = log
        self._remembered = remembered
        self._known = PartitionRefusals.decode(remembered)
        self._now_ms = now_ms
        self._new = 0
        self._version = -1
        self._tried: set[FileKey] = set()
        self.has_committed = False

    def left(self, live: LivePartition, payload: JobPayload) -> tuple[DataFile, ...]:
        """Return the live files that may be planned, and forget what does not hold for this snapshot any more."""
        self._version = live.version
        known = self._known.in_force(TableFingerprint.of(live.metadata, payload.policy))
        if known.refusals:
            known = known.among(live_ids(live.files)).after_hold(live.version)
        self._known = known
        if self._known.blocks(live.version, is_automatic=False):
            return ()
        return self._known.without(live.files)

    def note(self, outcome: RewriteOutcome, payload: JobPayload) -> None:
        """Remember the groups that a rewrite refused.

        The first time that files of a group are refused, only those are that the refusal names; if the rest of the
        group is refused, too, all of it is, so that each file is part of two attempts at most.
        """
        self.has_committed = self.has_committed or outcome.version is not None
        for end in outcome.groups:
            if end.status is not GroupStatus.REFUSED:
                continue
            error = end.error or Unsupported("the group was refused, and the engine does not say why")
            files = end.group.files
            if isinstance(error, RefusedFiles) and self._tried.isdisjoint(file.key for file in files):
                files = tuple(file for file in files if file.path in error.files) or files
            self._tried.update(file.key for file in end.group.files)
            self._remember(error, files, payload)

    def note_whole(self, refused: Unsupported, payload: JobPayload) -> None:
        """Remember that the partition as a whole is refused; where it could not be read, under the decider's terms."""
        if self._version < 0:
            self._known = self._known.in_force(TableFingerprint(*payload.fingerprint))
        self._remember(refused, (), payload)

    def _remember(self, error: LakewrightError, files: Sequence[DataFile], payload: JobPayload) -> None:
        self._known = self._known.added(error, files, payload.policy, now_ms=self._now_ms())
        self._new += 1
        one = self._known.refusals[-1]
        self._log.warning("files_refused", table=payload.name, reason=one.reason, files=one.count, message=one.message)

    @property
    def new(self) -> tuple[FileRefusal, ...]:
        """Refusals of this run, as far as they are remembered."""
        return self._known.refusals[-self._new :] if self._new else ()

    def to_remember(self, version: int, commit_step: int) -> str | None:
        """Return what is remembered from now on; None: the same as before. `version`: the newest of the table's known.

        A run that could not read its partition changes nothing that it did not add. commit_step: by how much versions
        grow with a commit.
        """
        if self._version < 0 and not self._new:
            return None
        after = self._known.after_run(
            max(version, self._version),
            has_committed=self.has_committed,
            has_refused=bool(self._new),
            commit_step=commit_step,
        )
        if not after.refusals and not self._new:
            after = replace(after, futile_runs=0, held_until=0)
        text = after.encode()
        return None if text == self._remembered else text


def refused_outcome(groups: Sequence[FileGroup], refused: RefusedFiles) -> RewriteOutcome:
    """Return the outcome of a rewrite that ended with a refusal: of the groups with the files that it names, or of all.

    The others were not written, and are planned again.
    """
    named = [group for group in groups if any(file.path in refused.files for file in group.files)] or list(groups)
    ends = tuple(
        GroupOutcome(group, GroupStatus.REFUSED, error=refused)
        if group in named
        else GroupOutcome(group, GroupStatus.SKIPPED)
        for group in groups
    )
    return RewriteOutcome(None, ends, prepare_ms=0, commit_ms=0)
