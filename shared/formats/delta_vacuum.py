"""The rule of what a vacuum of a Delta table may delete: a pure function of the log and a listing of the store.

A file is **needed** if any of these holds, and then it is never deleted:

1. The newest version has it, or its deletion vector.
2. A commit inside the retention adds it, removes it, or has it as a change file. A version inside the retention is the
   newest, or was replaced by a commit inside the retention; so each of its files is live today, or was removed by such
   a commit.
3. A tombstone of the newest snapshot says that it was removed inside the retention, or does not say when. This keeps
   the files of versions whose commits were cleaned up, for readers that opened them before.
4. Something that could be meant by an absolute path has its name.

Of the others, a file is deleted **by name** if a commit before the retention removed it by a relative path. Which files
of a listing are deleted as orphans says `shared.formats.delta_orphans`.

Commits must be read without a gap, newest last; their time is the latest of all times known of them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from posixpath import normpath
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote

from shared.errors import Corrupt
from shared.formats.delta_references import FileReference, reference
from shared.layout import commit_metadata
from shared.layout.commit_metadata import CommitMetadata

_LOG_FOLDER = "_delta_log"


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """One commit: its version, the latest time known of it, and the files it names.

    covers_version: of a commit that ended a vacuum, the version up to which all removed files are gone; -1 for others.
    covers_until_ms: the moment before which they were removed. settings: its metadata's, see `settings_text`;
    `NEW_PROTOCOL` if it has a protocol, empty if it has neither.
    """

    version: int
    time_ms: int
    added: tuple[FileReference, ...] = ()
    removed: tuple[FileReference, ...] = ()
    changes: tuple[FileReference, ...] = ()
    covers_version: int = -1
    covers_until_ms: int = 0
    settings: str = ""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A removal in the newest snapshot; `deleted_ms`: when its writer says that it happened, None if it does not."""

    reference: FileReference
    deleted_ms: int | None


@dataclass(slots=True)
class NeededFiles:
    """Names of needed files, and base names of files outside of the table that something inside could be meant by.

    folded: base names of all of them, as `folded_name` spells them.
    """

    names: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)
    folded: set[str] = field(default_factory=set)

    def add(self, *references: FileReference) -> None:
        """Need the files of these actions."""
        for one in references:
            self.names.update(one.kept)
            self.outside.update(one.outside)
            self.folded.update(folded_name(name) for name in (*one.kept, *one.outside))

    def may_be(self, name: str) -> bool:
        """Return whether a listed name may be a needed file that its store spells otherwise than the log."""
        return name in self or folded_name(name) in self.folded

    def __contains__(self, name: str) -> bool:
        return name in self.names or (bool(self.outside) and name.rpartition("/")[2] in self.outside)


def decode_commit(actions: Iterable[Mapping[str, Any]], version: int, time_ms: int, location: str) -> LoggedCommit:
    """Decode the file actions of a commit; `time_ms` is the time of its file in the store.

    The time is the latest of that one and of those in its `commitInfo`.
    """
    found: dict[str, list[FileReference]] = {"add": [], "remove": [], "cdc": []}
    covers, until_ms = -1, 0
    settings = ""
    for action in actions:
        settings = _settings(action, settings)
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
    return LoggedCommit(version, time_ms, added, removed, changes, covers, until_ms, settings)


NEW_PROTOCOL = "protocol"
"""Settings of a commit with a protocol, which no metadata have."""


def settings_text(table_uuid: str, configuration: Mapping[str, str]) -> str:
    """Return what of a table's metadata decides whether a vacuum goes on: which table it is, and its properties.

    The schema is left out: with identity columns each insert changes it.
    """
    return json.dumps([table_uuid, sorted(configuration.items())])


def _settings(action: Mapping[str, Any], before: str) -> str:
    if before == NEW_PROTOCOL or "protocol" in action:
        return NEW_PROTOCOL
    metadata = action.get("metaData")
    return before if metadata is None else settings_text(str(metadata.get("id")), metadata.get("configuration") or {})


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


def knows_removals_since(commits: Sequence[LoggedCommit], cutoff_ms: int) -> bool:
    """Return whether the commits, which are in order, have every removal since this moment.

    Log cleanup deletes the oldest commits, and checkpoints forget tombstones: of what these removed no trace is left.
    """
    return bool(commits) and (commits[0].version == 0 or commits[0].time_ms < cutoff_ms)


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


def folded_name(name: str) -> str:
    """Return the base name of a file without what stores and engines change: case, normal form, encoding."""
    base = name.rpartition("/")[2]
    return normalize("NFC", unquote(unquote(base))).casefold()


def _is_deletable_by_name(name: str) -> bool:
    """Return whether a name from the log can be a data file: never one of a log, and never outside of the table.

    Names that a store reads as another one, such as `a.parquet/` as `a.parquet`, are compared with no needed file.
    """
    folders = name.split("/")
    return normpath(name) == name and folders[0] not in ("", ".", "..") and _LOG_FOLDER not in folders
