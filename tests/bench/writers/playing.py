"""Sides that rewrite the files of a table while its writer goes on, and what each of them shows."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from typing import Any
from unittest.mock import patch

from actor.formats.delta.late_rows import RowHider
from actor.formats.iceberg.inputs import still_live
from actor.formats.iceberg.late_rows import IcebergRowHider, SetAside
from actor.ports import RewriteRequest
from actor.rewrite.commit import CommitResult, Committer
from shared.errors import Conflict
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.table import CommitOrigin, DataFile
from tests.bench.machine import Limit
from tests.bench.writers.rows import Rows, Writer, differences, is_conflict
from tests.bench.writers.tables import Table
from tests.support.steering import Steering

GROUPS = 4
OURS, WITHOUT, THEIRS = "Lakewright", "without late rows", "the format's command"


@dataclass(slots=True)
class Played:
    """Figures of one side of a case, sums over its tables.

    calls: rewrites or commands; failed: those that landed nothing. written, landed: our groups, and in which ways;
    refused: commits that were tried again. in_vain: bytes of groups that were written and did not land; left: bytes of
    files that no version names. kept: files that were there at the start and still are. wrong: rows that each reader
    finds wrong.
    """

    case: str
    side: str
    calls: int = 0
    failed: int = 0
    written: int = 0
    landed: int = 0
    refused: int = 0
    ways: Counter[str] = field(default_factory=Counter)
    late_rows: int = 0
    in_vain: int = 0
    left: int = 0
    kept: int = 0
    statements: int = 0
    aborted: int = 0
    seconds: float = 0.0
    wrong: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.figures.items() if value or name == "aborted")

    @property
    def figures(self) -> dict[str, Any]:
        """What is printed and kept."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def attempts(self) -> float:
        """How often a group was written for one that landed."""
        return self.written / self.landed if self.landed else float("inf")

    @property
    def aborted_by_each(self) -> float:
        """How many statements were aborted for each rewrite that landed: what fails aborts none."""
        return self.aborted / max(1, self.calls - self.failed)


def limits(done: Sequence[Played]) -> list[Limit]:
    """Return what has to be shown; aborted statements only beside a command that has replaced the files."""
    commands = {one.case: one for one in done if one.side == THEIRS and not one.kept}
    found = [Limit(f"{one.case}, {one.side}: rows read wrong", one.wrong.total(), 0) for one in done]
    for one in (one for one in done if one.side == OURS):
        found += [
            Limit(f"{one.case}: groups written for each that landed", one.attempts, 1),
            Limit(f"{one.case}: rewrites that landed nothing", one.failed, 0),
            Limit(f"{one.case}: files that were not replaced", one.kept, 0),
            Limit(f"{one.case}: bytes written in vain or left", one.in_vain + one.left, 0),
        ]
        if command := commands.get(one.case):
            what = f"{one.case}: statements aborted for each rewrite that landed, and by the command"
            found.append(Limit(what, one.aborted_by_each, command.aborted_by_each))
    return found


def play(
    table: Table, writer: Writer, rows: Rows, played: Played, *, may_copy: bool = True, again: bool = False
) -> None:
    """Rewrite the files of the start until none is left or the writer ends; then have all readers compare the rows.

    again: all files that are there, until the writer ends.
    """
    start = table.live()
    sizes = [file.size_bytes for file in start.values()]
    writer.begin()
    began = time.monotonic()
    with noted(played), nothing_hidden() if played.side == WITHOUT else nullcontext():
        while left := [file for path, file in sorted(table.live().items()) if again or path in start]:
            if played.side == THEIRS:
                has_landed = _compacted(table, sum(sizes) // GROUPS + min(sizes))
            else:
                has_landed = rewrite(table, left, may_copy=may_copy)
            played.calls, played.failed = played.calls + 1, played.failed + (not has_landed)
            writer.wait_for_rewrite(played.calls)
            if not writer.is_alive():
                break
    played.seconds += round(time.monotonic() - began, 1)
    writer.end()
    played.kept += 0 if again else len(start.keys() & table.live())
    played.statements, played.aborted = played.statements + writer.done, played.aborted + writer.aborted
    played.left += table.left_bytes(min(sizes) // 2)
    played.wrong.update({name: differences(rows, read()) for name, read in table.readers().items()})


def rewrite(table: Table, files: Sequence[DataFile], *, may_copy: bool = True, groups: int = GROUPS) -> bool:
    """Rewrite files as an actor does; returns whether something was committed."""
    size, policy = -(-len(files) // groups), Policy()
    request = RewriteRequest(
        table.path.as_uri(),
        tuple(
            FileGroup(WHOLE_TABLE, tuple(files[at : at + size]), RewriteMode.MINOR) for at in range(0, len(files), size)
        ),
        CommitMetadata(CommitOrigin("bench", 1), partition="{}", round=1, mode="minor", started_ms=1).encode(),
        may_copy=may_copy,
        full_bytes=policy.size_levels.full_bytes,
        carry_below=policy.delete_ratio_threshold,
    )
    try:
        return table.engine.rewrite(request, Steering()).version is not None
    except Conflict:
        return False


def _compacted(table: Table, group_bytes: int) -> bool:
    try:
        table.compact(group_bytes)
    except Exception as error:
        if not is_conflict(table.failures, error):
            raise
        return False
    return True


@contextmanager
def noted(played: Played) -> Iterator[None]:
    """Count the groups that are offered to commits, and what becomes of them."""
    commit = Committer.commit

    def counted(committer: Committer[Any], written: Sequence[Any], **given: float) -> CommitResult[Any]:
        result: CommitResult[Any] = CommitResult()
        try:
            result = commit(committer, written, **given)
        finally:
            landed = {one.live.group for one in result.committed}
            played.written, played.landed = played.written + len(written), played.landed + len(landed)
            played.in_vain += sum(sum(one.sizes.values()) for one in written if one.live.group not in landed)
        played.refused += result.conflicts
        for one in result.committed:
            played.late_rows += one.late_rows
            played.ways["by column" if one.by_column else one.encoded_because or "copied"] += 1
        return result

    with patch.object(Committer, "commit", counted):
        yield


@contextmanager
def nothing_hidden() -> Iterator[None]:
    """Give up each group of which others changed an input, and carry no rows."""

    def find(_: IcebergRowHider, group: Any, newest: Any) -> SetAside | None:
        return None if still_live(group.live, newest) else SetAside.NO_ROW_MAP

    with (
        patch.multiple(RowHider, find=lambda *_: None, may_carry=lambda *_: False),
        patch.object(IcebergRowHider, "find", find),
    ):
        yield
