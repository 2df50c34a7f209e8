"""Merges a table's delete files without rewriting data: few of them hide, in every data file, the rows that many hid.

What is committed is true of one snapshot, upon which alone it may be committed: where others commit in between, the
delete files are read again. Delete files that others add meanwhile stay as they are. A merged delete file names rows of
one data file; its sequence number is the greatest of those that it replaces there, so that it hides the same rows, and
none of a later file with the same path.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from actor.formats.iceberg import proof_request
from actor.formats.iceberg.commit import SnapshotTarget, StoredTable
from actor.formats.iceberg.conflicts import FAILURES
from actor.formats.iceberg.delete_groups import DeletesChange, LiveDeletes, groups_of, named_in
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.late_rows import SetAside
from actor.formats.iceberg.staged import NewDeletes, StagedGroup
from actor.not_wanted import reason_not_wanted
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.proofread.model import Proof, Rewritten
from actor.rewrite.commit import Committer
from actor.rewrite.job_permission import JobPermission
from actor.rewrite.model import Attempt, Blame, Verdict
from shared.errors import Conflict, Difference, LakewrightError, RefusedFiles, RetryableError, Unsupported
from shared.formats.iceberg.delete_merges import FIRST_WITH_VECTORS, superfluous
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import PROOFREAD_KEY
from shared.formats.iceberg.positions import newest_position
from shared.partitions import WHOLE_TABLE
from shared.paths.boundary import Boundary
from shared.refusals import RefusalReason
from shared.table import DataFile, DeleteKind

NOTHING = "no delete file is to be merged"
TOO_MANY = "the delete files apply to too many data files to be merged: compact the table first"

MOST_FILES = 500
"""Data files of one commit: a delete file is written for each, at some milliseconds on a disk and more in a store.

At most so many delete files that apply to no data file are read between two commits."""

MOST_COMMITS = 100
"""Commits of one run; another goes on where it ends."""

MOST_LOST = 3
"""Commits in a row from which others kept every group."""


class TableDeletes(Protocol):
    """The delete files of a table; methods raise what Iceberg raises."""

    def look(self, head: TableHead) -> LiveDeletes | None:
        """Return the deletes of the newest snapshot of these metadata; None: they are too many to hold."""

    def is_of_one_file(self, delete: AppliedDelete, path: str) -> bool:
        """Return whether a file of positions names rows of this data file alone, as its rows say."""

    def merged(
        self, inputs: Sequence[LiveInput], deletes: Sequence[Sequence[AppliedDelete]]
    ) -> Sequence[NewDeletes | None]:
        """Write the rows that delete files of one look name in each data file; None: they name none of its rows."""


class MergedTable(StoredTable, Protocol):
    """A table whose delete files can be merged; methods raise what Iceberg raises."""

    def commit_deletes(self, change: DeletesChange, summary: Mapping[str, str]) -> None:
        """Make a change in one snapshot, if the one that it holds upon is the newest one still.

        Raises NotAsked where it failed before the catalog was asked.
        """

    def head(self) -> TableHead:
        """Return the metadata as they were last read, or as a commit of this process has left them."""


@dataclass(slots=True)
class _Known:
    """Knowledge of a run: of which delete files the rows say that they are of one data file, and refused groups.

    Groups are named by their delete files. Files never change.
    """

    is_of_one: dict[str, bool] = field(default_factory=dict)
    refused: dict[frozenset[str], LakewrightError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Look:
    """Groups to be merged now, why others stay, and whether more are to be examined (`is_partial`)."""

    groups: Sequence[InputGroup] = ()
    reason: str = ""
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class MergeDeletesJob:
    """One run on one table; `check` raises for a table that must not be touched.

    `prove` compares which rows are deleted before and after; it raises Difference, and RefusedFiles where it cannot.
    `clock_s` counts seconds, and `pause` waits for some.
    """

    table: MergedTable
    deletes: TableDeletes
    job: TableJob
    control: TableJobControl
    check: Callable[[TableHead], None]
    boundary: Boundary
    prove: Callable[[Rewritten], Proof]
    clock_s: Callable[[], float] = time.monotonic
    pause: Callable[[float], object] = time.sleep
    _known: _Known = field(default_factory=_Known, init=False)

    def run(self) -> TableJobOutcome:
        """Merge delete files until none is left to be merged, some data files in each commit.

        What cannot be read or compared is left out. Raises RefusedFiles if all stay for that or another reason,
        Difference, Conflict if others were first each time, LeaseLost before the commit that it forbids, RetryableError
        if the outcome of a commit is unknown, and whatever reading and writing raise.
        """
        head = self.table.refresh()
        self.check(head)
        version, metadata = newest_position(head).version, head.metadata
        reason = reason_not_wanted(self.job, metadata)
        if reason:
            return TableJobOutcome(version, metadata, reason=reason)
        figures, commits, lost = Counter({"replaced": 0, "written": 0, "removed": 0}), list[int](), 0
        while head.current is not None:
            found = self.deletes.look(head)
            look = _Look(reason=TOO_MANY) if found is None else self._groups(found, head)
            if found is None or not (look.groups or look.is_partial):
                reason = look.reason
                break
            if self.control.should_stop() or len(commits) == MOST_COMMITS:
                return TableJobOutcome(version, metadata, tuple(commits), figures, is_complete=False)
            self.control.reached("merging", figures["replaced"], figures["replaced"] + len(look.groups))
            if written := self._written([*_first_of(look.groups)], head):
                target = DeletesTarget(self, head, self.job.mark().encode(), found)
                committer = Committer(target, JobPermission(self.control), clock_s=self.clock_s, pause=self.pause)
                made = committer.commit(written)
                lost = 0 if made.committed else lost + 1
                commits += [] if made.version is None else [made.version]
                self._count(made.committed, figures)
            if lost == MOST_LOST:
                raise Conflict(f"others changed the delete files of {self.job.location} each time", kind=Verdict.TAKEN)
            head = self.table.refresh()
            self.check(head)
        if reason and not commits:
            raise self._remembered(reason)
        return TableJobOutcome(version, metadata, tuple(commits), figures, reason=reason if commits else NOTHING)

    def _count(self, committed: Iterable[StagedGroup], figures: Counter[str]) -> None:
        for one in committed:
            figures["replaced" if one.live.inputs else "removed"] += len(one.live.group.files)
            figures["written"] += len(one.deletes)
        self.control.measured(figures)

    def _groups(self, found: LiveDeletes, head: TableHead) -> _Look:
        version = head.protocol.min_writer
        wanted = superfluous(found.files, version)
        only = {one.name: one.of for one in found.files if one.kind is DeleteKind.POSITION and one.of}
        # That it is of one data file may follow from bounds alone, which may be cut.
        doubtful = {one.path: one for one in found.unapplied if one.path in only}
        known, refused = self._known.is_of_one, self._known.refused
        unread = [one for path, one in doubtful.items() if path not in known]
        for one in unread[:MOST_FILES]:
            if self.control.should_stop():
                break
            known[one.path] = self._is_of_one(one, only[one.path], head)
        removed = tuple(one for one in found.unapplied if one.path not in doubtful or known.get(one.path))
        groups = groups_of(replace(found, unapplied=removed), wanted.names, has_vectors=version >= FIRST_WITH_VECTORS)
        kept = [path for path in doubtful if known.get(path) is False]
        return _Look(
            [one for one in groups.groups if _names(one) not in refused],
            _reason(
                len(groups.left | wanted.left),
                len(kept),
                [refused[_names(one)] for one in groups.groups if _names(one) in refused],
            ),
            is_partial=not known.keys() >= doubtful.keys(),
        )

    def _is_of_one(self, delete: AppliedDelete, path: str, head: TableHead) -> bool:
        """Return whether a delete file names rows of this data file alone; not if it cannot be read."""
        try:
            self._require_within(head, [delete.path])
            return self.deletes.is_of_one_file(delete, path)
        except Exception as error:  # noqa: BLE001 - raised again if it says something of other files
            self._refusal(error)
            return False

    def _refusal(self, error: Exception) -> LakewrightError:
        """Return why a group stays as it is; raises a Difference, and what says something of other groups."""
        if isinstance(error, LakewrightError):
            found, is_of_one = error, isinstance(error, Unsupported) and not isinstance(error, Difference)
        else:
            found = FAILURES.translate(error, self.job.location)
            is_of_one = isinstance(found, Unsupported) or FAILURES.blame(error) is not Blame.ALL
        if not is_of_one:
            raise error
        return found

    def _remembered(self, reason: str) -> LakewrightError:
        """Return the error of a run that left all as it is: as a refusal, it holds the next one."""
        first = next(iter(self._known.refused.values()), None)
        if isinstance(first, (RefusedFiles, RetryableError)):
            return first
        return RefusedFiles(f"{self.job.location}: {reason}", reason=RefusalReason.UNSUPPORTED)

    def _require_within(self, head: TableHead, paths: Sequence[str]) -> None:
        """Raise Unsupported if one of these files lies where it must not be read or written."""
        self.boundary.check_files(head.location, [DataFile(path, 0, WHOLE_TABLE) for path in paths])
        self.boundary.check_links(head.location, paths)

    def _written(self, groups: Iterable[InputGroup], head: TableHead) -> list[StagedGroup]:
        """Write what replaces the delete files of groups; raises Difference if it does not delete the same rows.

        What cannot be read or compared is left out, and noted.
        """
        written = list[StagedGroup]()
        try:
            for group in groups:
                try:
                    written.append(self._merged(group, head) if group.inputs else StagedGroup(group, (), 0))
                except Exception as error:  # noqa: BLE001 - raised again unless it says nothing of the other groups
                    self._known.refused[_names(group)] = self._refusal(error)
        except BaseException:
            self.table.delete([path for one in written for path in one.paths])
            raise
        return written

    def _merged(self, group: InputGroup, head: TableHead) -> StagedGroup:
        self._require_within(head, [*(one.path for one in group.inputs), *(one.path for one in group.group.files)])
        named = [named_in(group, one) for one in group.inputs]
        written = self.deletes.merged(group.inputs, named)
        new = [
            replace(one, sequence=max(delete.sequence for delete in those))
            for one, those in zip(written, named, strict=True)
            if one is not None
        ]
        try:
            self._require_within(head, [one.path for one in new])
            proof = self.prove(proof_request.merged(head.location, [*zip(group.inputs, named, written, strict=True)]))
        except BaseException:
            self.table.delete([one.path for one in new])
            raise
        return StagedGroup(group, (), 0, proof=proof, deletes=tuple(new))


class DeletesTarget(SnapshotTarget):
    """`actor.rewrite.ports.CommitTarget` of merged delete files; `found`: all that the snapshot of `head` has."""

    def __init__(self, job: MergeDeletesJob, head: TableHead, user_metadata: str, found: LiveDeletes) -> None:
        super().__init__(job.table, head, user_metadata)
        self._job = job
        self._found = found

    def begin(self, offered: tuple[StagedGroup, ...]) -> Attempt[StagedGroup]:
        """Read the newest metadata; groups of which others changed a delete file or a data file are left out."""
        head = self.base = self.refresh()
        self._job.check(head)
        if head.protocol.min_writer != self.head.protocol.min_writer:
            raise Conflict(f"the format version of {self.location} changed meanwhile", kind=Verdict.CHANGED)
        if head.current != self._found.snapshot:
            self._found = (self._job.deletes.look(head) if head.current is not None else None) or LiveDeletes(0)
        live = self._found.those_in(one.live for one in offered)
        kept = tuple(one for one in offered if one.live.group in live)
        named = self._found.by_name
        removed = tuple(named[file.path] for one in kept for file in one.live.group.files)
        change = DeletesChange(self._found.snapshot, removed, tuple(new for one in kept for new in one.deletes))
        left = {one.live.group: SetAside.INPUT_GONE for one in offered if one.live.group not in live}
        return Attempt(kept, change, set_aside=left)

    def commit(self, attempt: Attempt[StagedGroup]) -> int | None:
        """Commit one snapshot, and return its version by the metadata that the commit has left."""
        merged = [one for one in attempt.groups if one.live.inputs]
        summary = self.summary(merged)
        if not merged:
            del summary[PROOFREAD_KEY]  # What hides no row had not to be read.
        self._job.table.commit_deletes(attempt.base, summary)
        return self.version_in(self._job.table.head())


def _first_of(groups: Sequence[InputGroup]) -> Iterator[InputGroup]:
    files = 0
    for one in groups:
        files += max(len(one.inputs), 1)
        if files > MOST_FILES and files > len(one.inputs):
            return
        yield one


def _names(group: InputGroup) -> frozenset[str]:
    return frozenset(one.path for one in group.group.files)


def _reason(left: int, kept: int, refused: Sequence[LakewrightError]) -> str:
    """Return why so many delete files, and groups of them, stay."""
    large = "they name too many rows, or rows of too many data files, for one commit"
    doubtful = "they cannot be read, or name rows of another data file than their bounds say"
    reasons = (
        f"{left} delete files stay, for {large}" if left else "",
        f"{kept} delete files that apply to no data file stay, for {doubtful}" if kept else "",
        f"{len(refused)} groups of delete files are refused, the first: {refused[0]}" if refused else "",
    )
    return "; ".join(filter(None, reasons))
