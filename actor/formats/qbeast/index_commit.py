"""A commit of the library as the log has it, and whether it is the one that was planned.

A row that is lost or doubled here is committed already, so what is found names the version to restore.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from actor.formats.delta.actions import decode_add
from shared.errors import Corrupt
from shared.formats.qbeast.iterations import Iteration
from shared.layout import commit_metadata
from shared.paths.locations import hadoop_path
from shared.table import DataFile


@dataclass(frozen=True, slots=True)
class RemovedIndexFile:
    """A removed file: its path as the log spells it, and its size, 0 where the log does not say it."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class IndexCommit:
    """One commit of the table; `write_id` is our rewrite's, empty for a commit of others.

    changes_table: it sets metadata or protocol, which the check inside the transaction does not see.
    """

    version: int
    write_id: str
    added: tuple[DataFile, ...]
    removed: tuple[RemovedIndexFile, ...]
    changes_table: bool = False

    def figures(self) -> dict[str, int]:
        """Return what the commit replaced and wrote."""
        return {
            "files_replaced": len(self.removed),
            "bytes_replaced": sum(file.size_bytes for file in self.removed),
            "files_written": len(self.added),
            "bytes_written": sum(file.size_bytes for file in self.added),
        }


def decode_commit(version: int, actions: Sequence[str]) -> IndexCommit:
    """Read a commit from the JSON of its actions."""
    decoded: list[Mapping[str, Any]] = [json.loads(action) for action in actions]
    marks = (
        commit_metadata.decode((one["commitInfo"] or {}).get("userMetadata")) for one in decoded if "commitInfo" in one
    )
    ours = next((mark.write_id for mark in marks if mark is not None), "")
    return IndexCommit(
        version,
        ours,
        tuple(decode_add(one["add"], ()) for one in decoded if "add" in one),
        tuple(
            RemovedIndexFile(one["remove"]["path"], int(one["remove"].get("size") or 0))
            for one in decoded
            if "remove" in one
        ),
        changes_table=any("metaData" in one or "protocol" in one for one in decoded),
    )


def check_commit(
    location: str, iteration: Iteration, commits: Sequence[IndexCommit], ours: Sequence[IndexCommit]
) -> None:
    """Raise Corrupt unless one commit replaced exactly the planned files, which no other removed, row for row.

    `commits` are all since the version that the files were chosen at, `ours` are this iteration's.
    """
    planned = set(iteration.paths)
    first, problems = ours[0], list[str]()
    if len(ours) > 1:
        problems.append(f"it was committed {len(ours)} times")
    gone = [file.path for file in first.removed]
    if len(gone) != len(set(gone)) or set(gone) != planned:
        problems.append(f"it removed {len(gone)} files, not the {len(planned)} that were planned")
    if first.changes_table:
        problems.append("it changed the table's metadata or protocol")
    taken = [
        (commit.version, file.path)
        for commit in commits
        if commit not in ours
        for file in commit.removed
        if file.path in planned
    ]
    if taken:
        problems.append(f"version {taken[0][0]} removed its input {taken[0][1]} as well, so rows are there twice")
    uncounted = [file.path for file in first.added if file.rows is None]
    if uncounted:
        problems.append(f"its output {uncounted[0]} has no numRecords, so its rows cannot be compared")
    expected, written = sum(file.rows for file in iteration.files), [file.rows for file in first.added]
    if not uncounted and sum(rows or 0 for rows in written) != expected:
        problems.append(f"its inputs have {expected} rows, its outputs {sum(rows or 0 for rows in written)}")
    if problems:
        raise Corrupt(
            f"Qbeast's rewrite of {location} is committed as version {first.version}, and {'; '.join(problems)}. Stop "
            f"the writers, check the rows, and if they are wrong, RESTORE TABLE delta.`{hadoop_path(location)}` TO "
            f"VERSION AS OF {first.version - 1}"
        )
