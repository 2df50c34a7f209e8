"""Merges a table's delete files without rewriting data: few of them hide, in every data file, the rows that many hid.

What is committed is true of one snapshot, upon which alone it may be committed: where others commit in between, the
delete files are read again, unless they only appended. Delete files that others add meanwhile stay as they are. A
merged delete file names rows of one data file; its sequence number is the greatest of those that it replaces there, so
that it hides the same rows, and none of a later file with the same path.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Protocol

from actor.formats.iceberg import proof_request
from actor.formats.iceberg.commit import SnapshotTarget, StoredTable
from actor.formats.iceberg.delete_groups import DeleteGroup, DeletesChange, LiveDeletes, MergedDeletes, groups_of
from actor.formats.iceberg.inputs import AppliedDelete, LiveInput
from actor.formats.iceberg.late_rows import SetAside
from actor.formats.iceberg.staged import NewDeletes
from actor.not_wanted import reason_not_wanted
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.proofread.model import Proof, Rewritten, weakest
from actor.rewrite.commit import Committer
from actor.rewrite.job_permission import JobPermission
from actor.rewrite.model import Attempt, Verdict
from shared.errors import Conflict
from shared.formats.iceberg.delete_merges import FIRST_WITH_VECTORS, superfluous
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import PROOFREAD_KEY
from shared.formats.iceberg.positions import newest_position
from shared.layout.commit_metadata import CommitMetadata

NOTHING = "no delete file is superfluous"

MOST_FILES = 500
"""Data files of one commit: a delete file is written for each, at some milliseconds on a disk and more in a store."""

MOST_LOST = 3
"""Commits in a row from which others kept every group."""

_APPEND = "append"


class MergedTable(StoredTable, Protocol):
    """A table whose delete files can be merged; methods raise what Iceberg raises."""

    def live_deletes(self, head: TableHead) -> LiveDeletes:
        """Return the delete files of the newest snapshot of these metadata."""

    def merged(
        self, inputs: Sequence[LiveInput], deletes: Sequence[Sequence[AppliedDelete]]
    ) -> Sequence[NewDeletes | None]:
        """Write the rows that delete files name in each data file; None: they name none of its rows."""

    def commit_deletes(self, change: DeletesChange, summary: Mapping[str, str]) -> None:
        """Make a change in one snapshot, if the one that it holds upon is the newest one still.

        Raises NotAsked where it failed before the catalog was asked.
        """

    def head(self) -> TableHead:
        """Return the metadata as they were last read, or as a commit of this process has left them."""


@dataclass(frozen=True, slots=True)
class MergeDeletesJob:
    """One run on one table; `check` raises for a table that must not be touched.

    `prove` compares which rows are deleted before and after, and raises Difference. `clock_s` counts seconds, and
    `pause` waits for some.
    """

    table: MergedTable
    job: TableJob
    control: TableJobControl
    check: Callable[[TableHead], None]
    prove: Callable[[Rewritten], Proof]
    clock_s: Callable[[], float] = time.monotonic
    pause: Callable[[float], object] = time.sleep

    def run(self) -> TableJobOutcome:
        """Merge delete files until none is superfluous, some data files in each commit.

        Raises Conflict if others were first each time, LeaseLost before the commit that it forbids, RetryableError if
        the outcome of a commit is unknown, and whatever reading and writing raise.
        """
        head = self.table.refresh()
        self.check(head)
        version, metadata = newest_position(head).version, head.metadata
        reason = reason_not_wanted(self.job, metadata)
        if reason:
            return TableJobOutcome(version, metadata, reason=reason)
        figures, commits, lost = {"replaced": 0, "written": 0, "removed": 0}, list[int](), 0
        while head.current is not None:
            found = self.table.live_deletes(head)
            groups = _groups(found, head)
            if not groups:
                break
            if self.control.should_stop():
                return TableJobOutcome(version, metadata, tuple(commits), figures, is_complete=False)
            self.control.reached("merging", figures["replaced"], figures["replaced"] + len(groups))
            mine = self._mark().encode()
            target = DeletesTarget(self.table, self.check, head, mine, found)
            permission = JobPermission(self.control)
            committer = Committer(target, permission, clock_s=self.clock_s, pause=self.pause)
            made = committer.commit(self._written([*_first_of(groups)], head))
            lost = 0 if made.committed else lost + 1
            if lost == MOST_LOST:
                raise Conflict(f"others changed the delete files of {self.job.location} each time", kind=Verdict.TAKEN)
            commits += [] if made.version is None else [made.version]
            figures = _counted(figures, made.committed)
            self.control.measured(figures)
            head = self.table.refresh()
            self.check(head)
        return TableJobOutcome(version, metadata, tuple(commits), figures, reason="" if commits else NOTHING)

    def _mark(self) -> CommitMetadata:
        job, now_ms = self.job, time.time_ns() // 1_000_000
        return CommitMetadata(job.origin, mode=job.kind, started_ms=now_ms, traceparent=job.trace or None)

    def _written(self, groups: Sequence[DeleteGroup], head: TableHead) -> list[MergedDeletes]:
        """Write what replaces the delete files of groups; raises Difference if it does not delete the same rows."""
        pairs = [(group, file, group.named_in(file)) for group in groups for file in group.inputs]
        merged = self.table.merged([file for _, file, _ in pairs], [named for *_, named in pairs]) if pairs else ()
        written = [(file, named, new) for (_, file, named), new in zip(pairs, merged, strict=True)]
        proof = None
        if written:
            try:
                proof = self.prove(proof_request.merged(head.location, written))
            except BaseException:
                self.table.delete([new.path for new in merged if new is not None])
                raise
        new: dict[DeleteGroup, list[NewDeletes]] = {group: [] for group in groups}
        for (group, _, named), one in zip(pairs, merged, strict=True):
            if one is not None:
                new[group].append(replace(one, sequence=max(delete.sequence for delete in named)))
        return [
            MergedDeletes(group, (), 0, proof=proof if group.inputs else None, deletes=tuple(deletes))
            for group, deletes in new.items()
        ]


class DeletesTarget(SnapshotTarget):
    """`actor.rewrite.ports.CommitTarget` of merged delete files; `found`: all that the snapshot of `head` has."""

    def __init__(
        self,
        table: MergedTable,
        check: Callable[[TableHead], None],
        head: TableHead,
        user_metadata: str,
        found: LiveDeletes,
    ) -> None:
        super().__init__(table, head, user_metadata)
        self._table = table
        self._check = check
        self._found = found

    def begin(self, offered: tuple[MergedDeletes, ...]) -> Attempt[MergedDeletes]:
        """Read the newest metadata; groups of which others changed a delete file or a data file are left out."""
        head = self.base = self.refresh()
        self._check(head)
        if head.protocol.min_writer != self.head.protocol.min_writer:
            raise Conflict(f"the format version of {self.location} changed meanwhile", kind=Verdict.CHANGED)
        if not _has_same_deletes(head, self._found.snapshot):
            self._found = self._table.live_deletes(head)
        kept = tuple(one for one in offered if one.live.is_as_found(self._found))
        left = {one.live.group: SetAside.INPUT_GONE for one in offered if one not in kept}
        removed = {delete.path: delete for one in kept for delete in one.live.sources}
        added = tuple(delete for one in kept for delete in one.deletes)
        return Attempt(kept, DeletesChange(head.current or 0, tuple(removed.values()), added), set_aside=left)

    def commit(self, attempt: Attempt[MergedDeletes]) -> int | None:
        """Commit one snapshot, and return its version by the metadata that the commit has left."""
        proofs = [one.proof for one in attempt.groups if one.live.inputs]
        proofread = {PROOFREAD_KEY: weakest(proofs)} if proofs else {}
        self._table.commit_deletes(attempt.base, self.own_summary() | proofread)
        return self.version_in(self._table.head())


def _groups(found: LiveDeletes, head: TableHead) -> list[DeleteGroup]:
    version = head.protocol.min_writer
    wanted = superfluous(found.files, version).names
    return groups_of(found, wanted, has_vectors=version >= FIRST_WITH_VECTORS)


def _first_of(groups: Sequence[DeleteGroup]) -> Iterator[DeleteGroup]:
    files = 0
    for one in groups:
        files += len(one.inputs)
        if files > MOST_FILES and files > len(one.inputs):
            return
        yield one


def _has_same_deletes(head: TableHead, snapshot: int) -> bool:
    """Return whether all snapshots after one are appends: they remove nothing, and no delete is as new."""
    chain = list(head.chain())
    later = list(takewhile(lambda one: one.id != snapshot, chain))
    return len(later) < len(chain) and all(one.operation == _APPEND for one in later)


def _counted(figures: Mapping[str, int], committed: Sequence[MergedDeletes]) -> dict[str, int]:
    merged = [one for one in committed if one.live.inputs]
    return {
        "replaced": figures["replaced"] + sum(len(one.live.sources) for one in merged),
        "written": figures["written"] + sum(len(one.deletes) for one in merged),
        "removed": figures["removed"] + len(committed) - len(merged),
    }
