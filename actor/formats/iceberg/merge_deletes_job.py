"""Merges a table's delete files without rewriting data: few of them hide, in every data file, the rows that many hid.

Where the owner wants that, deletes by value are turned into positions before (`convert_deletes`).

What is committed is true of one snapshot, upon which alone it may be committed: where others commit in between, the
delete files are read again. Delete files that others add meanwhile stay as they are. A merged delete file names rows of
one data file; its sequence number is the greatest of those that it replaces there, so that it hides the same rows, and
none of a later file with the same path.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from actor.formats.iceberg import proof_request
from actor.formats.iceberg.conflicts import FAILURES
from actor.formats.iceberg.convert_deletes import Conversion
from actor.formats.iceberg.delete_groups import LiveDeletes, groups_of, named_in
from actor.formats.iceberg.deletes_target import DeletesTarget, FoundDeletes, MergedTable
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput
from actor.formats.iceberg.staged import NewDeletes, StagedGroup
from actor.formats.iceberg.value_groups import MOST_TRIED, LiveValues, value_groups, with_vectors
from actor.not_wanted import reason_not_wanted
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.proofread.model import Proof, Rewritten
from actor.rewrite.commit import Committer
from actor.rewrite.job_permission import JobPermission
from actor.rewrite.model import Blame, Verdict
from shared.errors import Conflict, Difference, LakewrightError, RefusedFiles, RetryableError, Unsupported
from shared.formats.iceberg.delete_merges import FIRST_WITH_VECTORS, superfluous
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.positions import newest_position
from shared.partitions import WHOLE_TABLE
from shared.paths.boundary import Boundary
from shared.refusals import RefusalReason
from shared.table import DataFile, DeleteKind, ExaminedTable

NOTHING = "no delete file is to be merged"
VALUES_TOO_MANY = "deletes by value apply to too many data files to be converted: compact the table first"
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


@dataclass(slots=True)
class _Known:
    """Knowledge of a run: of which delete files the rows say that they are of one data file, and refused groups.

    Groups are named by their delete files. Files never change. has_failed: what was left out may succeed later.
    """

    is_of_one: dict[str, bool] = field(default_factory=dict)
    refused: dict[frozenset[str], LakewrightError] = field(default_factory=dict)
    has_failed: bool = False

    @property
    def is_lasting(self) -> bool:
        """True if another run would refuse the same: nothing failed that may succeed, and nothing was left untried."""
        return not self.has_failed and sum(len(names) == 1 for names in self.refused) < MOST_TRIED


@dataclass(frozen=True, slots=True)
class _Look:
    """Groups that are due now, why others stay, and whether more are to be examined (`is_partial`).

    found: what the groups were found in; again: finds it in other metadata; written: writes what replaces the delete
    files of a group. waits_for_data: what stays may go once data files are removed.
    """

    point: str
    again: Callable[[TableHead], FoundDeletes | None]
    written: Callable[[InputGroup, TableHead], StagedGroup]
    found: FoundDeletes | None = None
    groups: Sequence[InputGroup] = ()
    reason: str = ""
    is_partial: bool = False
    waits_for_data: bool = True


@dataclass(frozen=True, slots=True)
class MergeDeletesJob:
    """One run on one table; `check` raises for a table that must not be touched.

    `prove` compares which rows are deleted before and after; it raises Difference, and RefusedFiles where it cannot.
    `clock_s` counts seconds, and `pause` waits for some. `conversion`: None where deletes by value stay.
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
    conversion: Conversion | None = None
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
        left: LakewrightError | None = None
        while head.current is not None:
            look = self._look(head)
            if look.found is None or not (look.groups or look.is_partial):
                reason, left = look.reason, self._left(look, head)
                break
            if self.control.should_stop() or len(commits) == MOST_COMMITS:
                return TableJobOutcome(version, metadata, tuple(commits), figures, is_complete=False)
            self.control.reached(look.point, figures["replaced"], figures["replaced"] + len(look.groups))
            if written := self._written(look, head):
                target = DeletesTarget(
                    self.table, self.check, head, self.job.mark().encode(), found=look.found, again=look.again
                )
                committer = Committer(target, JobPermission(self.control), clock_s=self.clock_s, pause=self.pause)
                made = committer.commit(written)
                lost = 0 if made.committed else lost + 1
                commits += [] if made.version is None else [made.version]
                self._count(made.committed, figures)
            if lost == MOST_LOST:
                raise Conflict(f"others changed the delete files of {self.job.location} each time", kind=Verdict.TAKEN)
            head = self.table.refresh()
            self.check(head)
        if left is not None and not commits:
            raise left
        lasting = left if isinstance(left, RefusedFiles) else None
        return TableJobOutcome(
            version, metadata, tuple(commits), figures, reason=reason if commits else NOTHING, left=lasting
        )

    def _count(self, committed: Iterable[StagedGroup], figures: Counter[str]) -> None:
        for one in committed:
            figures["replaced" if one.live.inputs else "removed"] += len(one.live.group.files)
            figures["written"] += len(one.deletes)
        self.control.measured(figures)

    def _look(self, head: TableHead) -> _Look:
        """Return what is due by value, and once that is done by position."""
        values = None if self.conversion is None else self._by_value(self.conversion, head)
        if values is not None and values.groups:
            return values
        found = self.deletes.look(head)
        look = _Look("merging", self.deletes.look, self._merged, found, reason=TOO_MANY)
        if found is not None:
            look = self._groups(look, found, head)
        if values is None:
            return look
        return replace(look, reason=_joined(values.reason, look.reason), waits_for_data=values.waits_for_data)

    def _by_value(self, conversion: Conversion, head: TableHead) -> _Look:
        """Return the deletes by value that can become positions now, and why others stay."""
        look = conversion.deletes.by_value
        found = look(head)
        if found is None:
            return _Look("converting", look, self._merged, reason=VALUES_TOO_MANY)
        unusable = conversion.unusable(found, head)
        usable = {one.path: one for one in found.deletes if one.path not in unusable}
        refused = [names for names in self._known.refused if not names.isdisjoint(usable)]
        groups = value_groups(found, usable.values(), refused)
        reason = _reason(len(groups.left), 0, self._refused_of(usable))
        waits_for_data = bool(reason)
        if unusable:
            name, why = next(iter(unusable.items()))
            reason = _joined(f"{len(unusable)} delete files by value stay, the first, {name}: {why}", reason)
        written = partial(self._converted, conversion, found)
        return _Look("converting", look, written, found, groups.groups, reason, waits_for_data=waits_for_data)

    def _refused_of(self, live: Collection[str]) -> list[LakewrightError]:
        """Return why groups of live delete files by value are refused; of several, if one was not refused alone."""
        refused = self._known.refused
        alone = {name for names in refused if len(names) == 1 for name in names}
        return [why for names, why in refused.items() if names <= {*live} and (len(names) == 1 or not names <= alone)]

    def _groups(self, look: _Look, found: LiveDeletes, head: TableHead) -> _Look:
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
        return replace(
            look,
            groups=[one for one in groups.groups if _names(one) not in refused],
            reason=_reason(
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
        self._known.has_failed |= isinstance(found, RetryableError)
        return found

    def _left(self, look: _Look, head: TableHead) -> LakewrightError | None:
        """Return why delete files stay, which is remembered; None: none do."""
        if not look.reason:
            return None
        first = next(iter(self._known.refused.values()), None)
        if isinstance(first, RetryableError):
            return first
        left = first if isinstance(first, RefusedFiles) else None
        left = left or RefusedFiles(f"{self.job.location}: {look.reason}", reason=RefusalReason.UNSUPPORTED)
        if self._known.is_lasting:
            left.examined = ExaminedTable(newest_position(head).digest, look.waits_for_data)
        return left

    def _require_within(self, head: TableHead, paths: Sequence[str]) -> None:
        """Raise Unsupported if one of these files lies where it must not be read or written."""
        self.boundary.check_files(head.location, [DataFile(path, 0, WHOLE_TABLE) for path in paths])
        self.boundary.check_links(head.location, paths)

    def _written(self, look: _Look, head: TableHead) -> list[StagedGroup]:
        """Write what replaces the delete files of groups; raises Difference if it does not delete the same rows.

        What cannot be read or compared is left out, and noted.
        """
        written = list[StagedGroup]()
        try:
            for group in _first_of(look.groups):
                try:
                    written.append(look.written(group, head) if group.inputs else StagedGroup(group, (), 0))
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
        files = [*zip(group.inputs, named, written, strict=True)]
        return self._proved(group, new, head, lambda: self.prove(proof_request.merged(head.location, files)))

    def _converted(self, conversion: Conversion, found: LiveValues, group: InputGroup, head: TableHead) -> StagedGroup:
        """Write positions for the deletes by value of a group; a vector replaces the old one of its data file, too."""
        applied = {one.path: one for file in group.inputs for one in file.deletes}
        self._require_within(head, [*(one.path for one in group.inputs), *applied])
        conversion.require_clear(group, found, head)
        values = [one for one in applied.values() if not one.is_positional]
        written = conversion.deletes.converted(group.inputs, values)
        new = [one for one in written if one is not None]
        replaced = with_vectors(group, written)
        return self._proved(replaced, new, head, partial(conversion.check, group, written, head))

    def _proved(
        self, group: InputGroup, new: Sequence[NewDeletes], head: TableHead, prove: Callable[[], Proof]
    ) -> StagedGroup:
        """Return a group with what was written for it; deletes this unless it is proved to hide the same rows."""
        try:
            self._require_within(head, [one.path for one in new])
            proof = prove()
        except BaseException:
            self.table.delete([one.path for one in new])
            raise
        return StagedGroup(group, (), 0, proof=proof, deletes=tuple(new))


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
    return _joined(*reasons)


def _joined(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))
