"""The rule of what a vacuum of a Delta table may delete: a pure function of the log and a listing of the store.

A file is **needed** if any of these holds, and then it is never deleted:

1. The newest version has it, or its deletion vector.
2. A commit inside the retention adds it, removes it, or has it as a change file. A version inside the retention is the
   newest, or was replaced by a commit inside the retention; so each of its files is live today, or was removed by such
   a commit.
3. A tombstone of the newest snapshot says that it was removed inside the retention, or does not say when. This keeps
   the files of versions whose commits were cleaned up, for readers that opened them before.
4. Something that could be meant by an absolute path has its name.

Of the others, a file is deleted **by name** if a commit before the retention removed it, and **as an orphan** if no
commit that can be read names it, it is older than the retention and than `MIN_ORPHAN_AGE_MS`, it is named like a data
file, and it lies in no folder that belongs to someone else.

Commits must be read without a gap, newest last; their time is the latest of all times known of them.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from shared import commit_metadata
from shared.commit_metadata import CommitMetadata
from shared.errors import Corrupt
from shared.formats.delta_references import FileReference, reference

MIN_ORPHAN_AGE_MS = 24 * 3_600_000
"""Least age of an orphan that is deleted, whatever the retention: a writer may still commit younger files.
Lakewright's own rewrites commit no output that is older than half of it."""

CHANGE_DATA = "_change_data"
"""The folder of change files, the one below a table with an underscore whose files a vacuum may delete."""

_ORPHAN_NAME = re.compile(r".+\.parquet|deletion_vector_[0-9a-f-]{36}\.bin", re.DOTALL)

_NESTED_LOG = "/_delta_log/"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in the store: its name below the table's folder, size in bytes, and time of its last change."""

    name: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """One commit: its version, the latest time known of it, and the files it names.

    covers_version: of a commit that ended a vacuum, the version up to which all removed files are gone; -1 for others.
    covers_until_ms: the moment before which they were removed.
    """

    version: int
    time_ms: int
    added: tuple[FileReference, ...] = ()
    removed: tuple[FileReference, ...] = ()
    changes: tuple[FileReference, ...] = ()
    covers_version: int = -1
    covers_until_ms: int = 0


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A removal in the newest snapshot; `deleted_ms`: when its writer says that it happened, None if it does not."""

    reference: FileReference
    deleted_ms: int | None


@dataclass(slots=True)
class NeededFiles:
    """Names of needed files, and base names of files outside of the table that something inside could be meant by."""

    names: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)

    def add(self, *references: FileReference) -> None:
        """Need the files of these actions."""
        for one in references:
            self.names.update(one.kept)
            self.outside.update(one.outside)

    def __contains__(self, name: str) -> bool:
        return name in self.names or (bool(self.outside) and name.rpartition("/")[2] in self.outside)


class Kept(StrEnum):
    """Why a listed file is not deleted as an orphan."""

    NEEDED = "needed"
    REMOVED = "removed"
    YOUNG = "young"
    FOREIGN = "foreign"


def decode_commit(actions: Iterable[Mapping[str, Any]], version: int, time_ms: int, location: str) -> LoggedCommit:
    """Decode the file actions of a commit; `time_ms` is the time of its file in the store.

    The time is the latest of that one and of those in its `commitInfo`.
    """
    found: dict[str, list[FileReference]] = {"add": [], "remove": [], "cdc": []}
    covers, until_ms = -1, 0
    for action in actions:
        for kind, references in found.items():
            if action.get(kind) is not None:
                references.append(reference(action[kind], location))
        info = action.get("commitInfo") or {}
        times = (info.get(name) for name in ("timestamp", "inCommitTimestamp"))
        time_ms = max(time_ms, *(time for time in times if type(time) is int), 0)
        mark = vacuum_mark(info)
        if mark is not None and mark.vacuumed_version is not None:
            covers = mark.vacuumed_version
            until_ms = mark.vacuumed_until_ms or 0 if covers >= 0 else 0
    added, removed, changes = (tuple(references) for references in found.values())
    return LoggedCommit(version, time_ms, added, removed, changes, covers, until_ms)


def in_order(commits: Iterable[LoggedCommit]) -> tuple[LoggedCommit, ...]:
    """Return commits by version, each at least as late as the one before; raises Corrupt for a gap between them."""
    ordered: list[LoggedCommit] = []
    for commit in sorted(commits, key=lambda one: one.version):
        before = ordered[-1] if ordered else None
        if before is not None and commit.version != before.version + 1:
            raise Corrupt(
                f"commits {before.version + 1} to {commit.version - 1} are missing from the log, and later ones exist: "
                "which files the versions around them need is not known, so nothing is deleted"
            )
        time_ms = commit.time_ms if before is None else max(commit.time_ms, before.time_ms)
        ordered.append(commit if time_ms == commit.time_ms else replace(commit, time_ms=time_ms))
    return tuple(ordered)


def needed_files(
    live: Iterable[FileReference],
    tombstones: Iterable[Tombstone],
    commits: Iterable[LoggedCommit],
    cutoff_ms: int,
) -> NeededFiles:
    """Return the files that the newest version, or one inside the retention, which begins at `cutoff_ms`, needs.

    `commits` are in order, see `in_order`.
    """
    needed = NeededFiles()
    needed.add(*live)
    for tombstone in tombstones:
        if tombstone.deleted_ms is None or tombstone.deleted_ms >= cutoff_ms:
            needed.add(tombstone.reference)
    for commit in commits:
        if commit.time_ms >= cutoff_ms:
            needed.add(*commit.added, *commit.removed, *commit.changes)
    return needed


def removed_files(
    commits: Sequence[LoggedCommit], tombstones: Iterable[Tombstone], needed: NeededFiles, cutoff_ms: int
) -> dict[str, int]:
    """Return the files to delete by name, with their size in bytes (0: unknown), in the order of their removal.

    Those that an earlier vacuum deleted, by its mark in the log, are left out.
    """
    covered = max((commit.covers_version for commit in commits), default=-1)
    found: dict[str, int] = {}
    since_ms = max((commit.covers_until_ms for commit in commits), default=0)
    gone = [
        one.reference for one in tombstones if one.deleted_ms is not None and since_ms <= one.deleted_ms < cutoff_ms
    ]
    old = [commit for commit in commits if commit.time_ms < cutoff_ms and commit.version > covered]
    references = [*gone, *(one for commit in old for one in (*commit.removed, *commit.changes))]
    for one in references:
        for name, size_bytes in one.own:
            if name not in needed and _is_deletable_by_name(name):
                found[name] = max(size_bytes, found.get(name, 0))
    return found


def orphan_verdict(
    file: StoredFile, needed: NeededFiles, removed: Container[str], folders: "OwnFolders", cutoff_ms: int
) -> Kept | None:
    """Return why a listed file is not deleted as an orphan, None if it is one; `removed` are deleted by name."""
    if file.name in needed:
        return Kept.NEEDED
    if file.name in removed:
        return Kept.REMOVED
    if not folders.may_hold(file.name):
        return Kept.FOREIGN
    return Kept.YOUNG if file.modified_ms >= cutoff_ms else None


def orphan_cutoff_ms(cutoff_ms: int, now_ms: int) -> int:
    """Return the moment before which an orphan must have been written last."""
    return min(cutoff_ms, now_ms - MIN_ORPHAN_AGE_MS)


@dataclass(frozen=True, slots=True)
class OwnFolders:
    """Folders in which a vacuum searches for orphans.

    nested: names of folders, with a final slash, that are tables of their own. columns: physical names of the partition
    columns, whose folders may begin with an underscore or a dot.
    """

    nested: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    @staticmethod
    def of(names: Iterable[str], columns: Sequence[str]) -> "OwnFolders":
        """Find the tables inside of the table, from the names of all its files."""
        nested = {name[: name.index(_NESTED_LOG) + 1] for name in names if _NESTED_LOG in name}
        return OwnFolders(tuple(sorted(nested)), tuple(columns))

    def may_hold(self, name: str) -> bool:
        """Return whether a file of this name may be an orphan of the table: a data file in a folder of its own."""
        *folders, base = name.split("/")
        return (
            _ORPHAN_NAME.fullmatch(base) is not None
            and not base.startswith((".", "_"))
            and not name.startswith(self.nested)
            and all(self._is_visible(folder, depth) for depth, folder in enumerate(folders))
        )

    def _is_visible(self, folder: str, depth: int) -> bool:
        if not folder.startswith((".", "_")):
            return True
        is_changes = depth == 0 and folder == CHANGE_DATA
        return is_changes or any(folder.startswith(f"{column}=") for column in self.columns)


def added_since(commits: Iterable[LoggedCommit]) -> Iterator[FileReference]:
    """Yield what commits after the plan need: a file that became live again must not be deleted any more."""
    for commit in commits:
        yield from commit.added
        yield from commit.removed
        yield from commit.changes


def vacuum_mark(info: Mapping[str, Any]) -> CommitMetadata | None:
    """Return the mark that our vacuum leaves in its last commit; None for any other commit."""
    parameters = info.get("operationParameters")
    if info.get("operation") != VACUUM_END or not isinstance(parameters, dict):
        return None
    if str(parameters.get("status", "")).strip('"') != COMPLETED:
        return None
    mark = commit_metadata.decode(info.get("userMetadata"))
    return mark if mark is not None and mark.vacuumed_version is not None else None


VACUUM_END = "VACUUM END"
"""Operation of the commit that ends a vacuum, of Spark, deltalake and Lakewright alike."""

COMPLETED = "COMPLETED"
"""Its status if all was deleted."""


def _is_deletable_by_name(name: str) -> bool:
    """Return whether a name from the log can be a data file: never one of the log, and never outside of the table."""
    return bool(name) and not name.startswith(("_delta_log/", "../", "/")) and name not in (".", "..", "_delta_log")
