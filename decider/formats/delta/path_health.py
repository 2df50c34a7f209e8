"""Finds removes in a log that missed their files: the log compares paths as text, and engines spell them differently.

A remove whose path was never added as spelled removes nothing. Where the same file was added under another spelling,
its rows stay live: a delete is undone, an update doubled, for every reader. The findings come from the log alone; see
docs/doctor.md for what it does not show.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

from decider.formats.delta.damage import LogFile
from decider.formats.delta.lines import parsed_lines, split_lines
from shared.paths.locations import file_location
from shared.paths.path_keys import canonical_path
from shared.table import DataFile


class Fate(StrEnum):
    """Fate of a file that a remove missed.

    live: it is still read. carried: a rewrite without data change took its rows into another file. ended: a later
    command removed it, and may have copied rows of it.
    """

    LIVE = "live"
    CARRIED = "carried"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class MissedRemove:
    """A remove that missed the file it meant, for it was added as `added`; rows are None where the log has no count."""

    version: int
    engine: str
    operation: str
    removed: str
    added: str
    added_version: int | None
    fate: Fate = Fate.LIVE
    ended_version: int | None = None
    rows: int | None = None
    dv_id: str | None = None


@dataclass(frozen=True, slots=True)
class PathAction:
    """An `add` or `remove` of one commit, as far as paths go."""

    path: str
    is_add: bool
    changes_data: bool = True
    dv_id: str | None = None
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class PathCommit:
    """The file actions of one commit, and who wrote it."""

    version: int
    engine: str
    operation: str
    actions: tuple[PathAction, ...]


def read_path_commit(body: bytes, log: LogFile) -> PathCommit:
    """Decode a commit; raises Corrupt for damaged lines."""
    actions: list[PathAction] = []
    info: Mapping[str, Any] = {}
    for position, line in parsed_lines(split_lines(body), log):
        if isinstance(found := line.get("commitInfo"), dict):
            info = info or found
        for kind in ("remove", "add"):
            if (file := line.get(kind)) is not None:
                actions.append(_action(file, log, position, kind))  # noqa: PERF401 - one of each kind per line at most
    engine = info.get("engineInfo") or info.get("clientVersion") or info.get("userAgent") or "unknown"
    return PathCommit(log.version, str(engine), str(info.get("operation") or ""), tuple(actions))


def _action(file: object, log: LogFile, position: int, kind: str) -> PathAction:
    if not isinstance(file, dict) or type(file.get("path")) is not str:
        raise log.wrong(position, f"{kind}.path", file, "a text")
    vector = file.get("deletionVector")
    dv_id = None
    if isinstance(vector, dict):
        offset = vector.get("offset")
        dv_id = f"{vector.get('storageType')}{vector.get('pathOrInlineDv')}" + ("" if offset is None else f"@{offset}")
    return PathAction(file["path"], kind == "add", file.get("dataChange") is not False, dv_id)


def meant_file(location: str, path: str) -> str:
    """Return what is the same for all spellings of one data file's path."""
    place = file_location(location, path)
    return unquote(path) if place is None else place


@dataclass(slots=True)
class _Spelled:
    """A spelling of a file that log replay holds to be live; `version` is None if it was added before the log."""

    path: str
    dv_id: str | None
    version: int | None


@dataclass(slots=True)
class MissedRemoves:
    """Finds missed removes in commits, given oldest first, from the files live before the first of them.

    Without those (`base` is None: older commits are deleted and no checkpoint covers them) files added before are known
    from `newest`, the files live at the end, only.
    """

    location: str
    base: Sequence[DataFile] | None = None
    newest: Sequence[DataFile] = ()
    found: list[MissedRemove] = field(default_factory=list)
    _live: dict[str, dict[str, _Spelled]] = field(default_factory=dict)

    def examine(self, commits: Iterable[PathCommit]) -> tuple[MissedRemove, ...]:
        """Return the missed removes of these commits, in order, with what became of each file."""
        for file in self.base if self.base is not None else self.newest:
            self._spellings(file.path)[canonical_path(file.path)] = _Spelled(file.path, file.dv_id, None)
        missed: dict[str, list[MissedRemove]] = {}
        for commit in commits:
            for action in commit.actions:
                if not action.is_add:
                    self._remove(commit, action, missed)
            for action in commit.actions:
                if action.is_add:
                    spelled = _Spelled(action.path, action.dv_id, commit.version)
                    self._spellings(action.path)[canonical_path(action.path)] = spelled
                    _end_all(missed, action.path, Fate.ENDED, commit.version)  # RESTORE: it is meant to be live.
        rows = {file.path: file for file in self.newest}
        return tuple(
            sorted(
                (_with_rows(one, rows) for several in missed.values() for one in several),
                key=lambda one: (one.version, one.added),
            )
        )

    def _spellings(self, path: str) -> dict[str, _Spelled]:
        return self._live.setdefault(meant_file(self.location, path), {})

    def _remove(self, commit: PathCommit, action: PathAction, missed: dict[str, list[MissedRemove]]) -> None:
        spellings = self._spellings(action.path)
        hit = spellings.pop(canonical_path(action.path), None)
        if hit is not None:
            _end_all(missed, hit.path, Fate.ENDED if action.changes_data else Fate.CARRIED, commit.version)
            return
        for spelled in spellings.values():
            known = missed.setdefault(spelled.path, [])
            if not any(one.fate is Fate.LIVE for one in known):
                known.append(
                    MissedRemove(
                        commit.version,
                        commit.engine,
                        commit.operation,
                        action.path,
                        spelled.path,
                        spelled.version,
                        dv_id=spelled.dv_id,
                    )
                )


def _end_all(missed: dict[str, list[MissedRemove]], path: str, fate: Fate, version: int) -> None:
    """Note what became of a file, for the removes that had missed it while it was live."""
    if path in missed:
        missed[path] = [
            replace(one, fate=fate, ended_version=version) if one.fate is Fate.LIVE else one for one in missed[path]
        ]


def _with_rows(one: MissedRemove, live: Mapping[str, DataFile]) -> MissedRemove:
    file = live.get(one.added)
    if one.fate is not Fate.LIVE or file is None or file.rows is None:
        return one
    return replace(one, rows=file.rows - file.deleted_rows, dv_id=file.dv_id)


def duplicates(location: str, files: Iterable[DataFile]) -> tuple[tuple[DataFile, ...], ...]:
    """Return the live files that are one file under several spellings, each with all its spellings."""
    by_file: dict[str, list[DataFile]] = {}
    for file in files:
        by_file.setdefault(meant_file(location, file.path), []).append(file)
    return tuple(tuple(several) for several in by_file.values() if len({file.path for file in several}) > 1)
