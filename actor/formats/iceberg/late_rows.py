"""Rows of inputs that others deleted by position while a group was rewritten: the commit hides the same rows.

What counts is which rows are deleted, not which files name them: others may have put delete files together, or deleted
rows of other files in one that applies to the whole partition. Later deletes by value apply to the output as they did
to the inputs, for it keeps the sequence number of the snapshot that was read.

A delete file for late rows gets the number of the snapshot that adds it: below that of its output it would hide
nothing, and below that of the snapshot it would be taken for one that cannot name rows of a file so new. Iceberg lets a
rewrite add delete files only where it removes some: those that name late rows go, and what they name in other files is
written again, under their own number.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from actor.formats.iceberg.inputs import AppliedDelete, LiveInput
from actor.formats.iceberg.staged import NewDeletes, StagedGroup
from actor.rewrite.late_rows import MOST_ROWS, LateRows, Positions, RowMap
from shared.formats.iceberg.deletes import deletes_id
from shared.layout.planner import FileGroup
from shared.refusals import Explained
from shared.table import DeleteKind

MAX_DELETES_READ = 100
"""New or lost delete files that are read for a group before a commit; more make it stale.

They take milliseconds each on a disk and a second together on a slow store, in which others commit again."""

Naming = tuple[AppliedDelete, ...]
"""The delete files that name late rows of a group."""

Late = LateRows[StagedGroup, Naming]


class SetAside(Explained):
    """Why a group is not committed, though what was written of it is right: it is planned again."""

    NO_HISTORY = "no_history", "The snapshot of the read was rolled back, or has expired."
    INPUT_GONE = "input_gone", "An input was removed."
    MANY_DELETE_FILES = "many_delete_files", f"More than {MAX_DELETES_READ} delete files of an input are new."
    MANY_ROWS = "many_rows", f"More than {MOST_ROWS:,} rows, or they are named in a delete file of more."
    ROWS_RETURNED = "rows_returned", "Rows that were deleted at the read are visible again."
    NO_ROW_MAP = "no_row_map", "Equality deletes left out rows at the read, or Spark's plan states no order of rows."
    NO_ROW_LEFT = "no_row_left", "All rows of the output are deleted."
    NOT_COMPARED = "not_compared", "No reader could compare late rows, or others deleted more each time."


class _SetAsideError(Exception):
    def __init__(self, reason: SetAside) -> None:
        super().__init__(reason)
        self.reason = reason


class DeleteFiles(Protocol):
    """The delete files of a table; methods raise what Iceberg raises."""

    def named(self, path: str, deletes: Sequence[AppliedDelete]) -> Sequence[int] | None:
        """Return the positions in a data file that delete files name, ascending; None if they are too many to hold."""

    def hide(self, output: Any, places: Sequence[int]) -> NewDeletes:
        """Write what hides the rows at these places of an output, which is Iceberg's object."""

    def without(self, shared: AppliedDelete, paths: Sequence[str]) -> NewDeletes | None:
        """Write what a delete file names besides rows of these files, under its number; None if that is nothing."""

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files that no snapshot refers to; what cannot be deleted is logged."""


class IcebergRowHider:
    """Finds and hides the late rows of the groups of one rewrite."""

    def __init__(self, files: DeleteFiles) -> None:
        self._files = files
        self._known: dict[tuple[str, frozenset[str]], Sequence[int]] = {}
        self._written: dict[_Content, NewDeletes | None] = {}  # For the newest attempt.

    def find(self, group: StagedGroup, newest: Mapping[str, LiveInput]) -> Late | SetAside | None:
        """Return the late rows of a group, None if there are none, or why the group cannot be committed.

        newest: the inputs that are live in the snapshot from which the commit is to be validated.
        """
        if any(one.path not in newest for one in group.live.inputs):
            return SetAside.INPUT_GONE
        pairs = [(one, newest[one.path]) for one in group.live.inputs]
        changed = [(then, now) for then, now in pairs if then.positional != now.positional]
        if len({name for then, now in changed for name in then.positional ^ now.positional}) > MAX_DELETES_READ:
            return SetAside.MANY_DELETE_FILES
        try:
            if any(_lost_values(then, now) for then, now in pairs) and self._row_map(group).output_rows != group.rows:
                return SetAside.ROWS_RETURNED
            hidden = {then.path: self._hidden(then, now) for then, now in changed}
            if not any(hidden.values()):
                return None
            positions = [hidden.get(one.path, ()) for one in group.live.inputs]
            row_map, places = self._mapped(group, positions)
            return LateRows(group, self._naming(changed, hidden), row_map, positions, places)
        except _SetAsideError as found:
            return found.reason

    def _hidden(self, then: LiveInput, now: LiveInput) -> Sequence[int]:
        """Return the rows of an input that were deleted since it was read."""
        is_grown = then.positional <= now.positional
        after = {*self._rows(then.path, _new(then, now) if is_grown else now.by_position)}
        if is_grown and not after:
            return ()  # As mostly: new delete files name rows of other files.
        before = {*self._rows(then.path, then.by_position)}
        if not is_grown and not before <= after:
            raise _SetAsideError(SetAside.ROWS_RETURNED)
        return sorted(after - before)

    def _rows(self, path: str, deletes: Sequence[AppliedDelete]) -> Sequence[int]:
        key = (path, frozenset(one.path for one in deletes))
        if deletes and key not in self._known:
            found = self._files.named(path, deletes)
            if found is None:
                raise _SetAsideError(SetAside.MANY_ROWS)
            self._known[key] = found
        return self._known.get(key, ())

    def _mapped(self, group: StagedGroup, hidden: Positions) -> tuple[RowMap, tuple[int, ...]]:
        """Return where the output has the rows of the inputs, and where it has these."""
        row_map, outputs = self._row_map(group), group.outputs
        named = zip(row_map.rows, row_map.omitted, hidden, strict=True)
        is_odd = any(one >= rows for rows, *positions in named for some in positions for one in some[-1:])
        # Where the output has fewer rows, deletes by value left some out, and no file says which.
        is_whole = len(outputs) == 1 and row_map.output_rows == group.rows == outputs[0].file.rows
        if is_odd or not is_whole or not group.in_order:
            raise _SetAsideError(SetAside.NO_ROW_MAP)
        places = tuple(row_map.places(hidden))
        if len(places) > MOST_ROWS:
            raise _SetAsideError(SetAside.MANY_ROWS)
        if len(places) == row_map.output_rows:
            raise _SetAsideError(SetAside.NO_ROW_LEFT)  # A file without a visible row is not worth its commit.
        return row_map, places

    def _row_map(self, group: StagedGroup) -> RowMap:
        inputs = group.live.inputs
        return RowMap(tuple(one.rows for one in inputs), [self._rows(one.path, one.by_position) for one in inputs])

    def _naming(self, changed: Sequence[tuple[LiveInput, LiveInput]], hidden: Mapping[str, Sequence[int]]) -> Naming:
        """Return the delete files that name late rows, each once; each of them is new."""
        found = {
            one.path: one
            for then, now in changed
            if hidden[then.path]
            for one in _new(then, now)
            if {*hidden[then.path]}.intersection(self._rows(then.path, [one]))
        }
        if any(one.rows > MOST_ROWS for one in found.values()):
            raise _SetAsideError(SetAside.MANY_ROWS)
        return tuple(found.values())

    def make_good(self, late: Sequence[Late], replaced: Sequence[str]) -> dict[FileGroup, StagedGroup]:
        """Hide the late rows of groups; return each as it is committed, by its group.

        replaced: paths of all files that the commit replaces. What the delete files that go name in others is written
        with the first group. What was written for the attempt before is taken again where it is the same. What raises
        has left no other file that it knows of.
        """
        before, self._written = self._written, {}
        try:
            own = [self._hidden_in(one, before) for one in late]
            rests = [self._rest(shared, replaced, before) for shared in named_by(late)]
        except BaseException:
            self._files.delete(
                [new.path for key, new in self._written.items() if new is not None and key not in before]
            )
            raise
        kept = tuple(rest for rest in rests if rest is not None)
        made = [
            _as_committed(one, (new, *(kept if one is late[0] else ()))) for one, new in zip(late, own, strict=True)
        ]
        return {one.live.group: one for one in made}

    def _hidden_in(self, late: Late, before: Mapping["_Content", NewDeletes | None]) -> NewDeletes:
        output = late.group.outputs[0]
        content = (output.file.path, late.places)
        new = before.get(content) or self._files.hide(output.raw, late.places)
        self._written[content] = new
        return new

    def _rest(
        self, shared: AppliedDelete, replaced: Sequence[str], before: Mapping["_Content", NewDeletes | None]
    ) -> NewDeletes | None:
        """Return what holds the rows that a delete file names in files which are not replaced; None: it names none."""
        if shared.kind is not DeleteKind.POSITION or shared.is_of_one_file:
            return None
        content = (shared.path, tuple(replaced))
        rest = before[content] if content in before else self._files.without(shared, replaced)
        self._written[content] = rest
        return rest


_Content = tuple[str, tuple[int, ...] | tuple[str, ...]]
"""Purpose of a file that was written: an output and places to hide in it, or a delete file and paths to leave out."""


def _new(then: LiveInput, now: LiveInput) -> Naming:
    return tuple(one for one in now.by_position if one.path not in then.positional)


def _lost_values(then: LiveInput, now: LiveInput) -> bool:
    """Return whether deletes by value of the read are gone, so that rows that it left out may be visible again."""
    return not {one.path for one in then.deletes if not one.is_positional} <= {one.path for one in now.deletes}


def named_by(late: Iterable[Late]) -> Naming:
    """Return the delete files that name late rows of these groups, each once."""
    return tuple({one.path: one for rows in late for one in rows.now}.values())


def _as_committed(late: Late, deletes: tuple[NewDeletes, ...]) -> StagedGroup:
    """Return a group with the delete files that were written with it, the first of which hides its late rows."""
    group, hidden = late.group, len(late.places)
    (output,) = group.outputs
    file = replace(output.file, dv_id=deletes_id([deletes[0].name], has_values=False), deleted_rows=hidden)
    outputs = (replace(output, file=file),)
    return replace(group, outputs=outputs, rows=group.rows - hidden, deletes=deletes, late_rows=late.count)
