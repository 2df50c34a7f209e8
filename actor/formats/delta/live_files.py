"""Live inputs of a plan, and their entries in the log, without a Spark job where possible.

A file is live if the snapshot has it with the same deletion vector as in the plan. Listing a snapshot costs a Spark job
over the whole table's state. So an actor caches what it read (`read_cache`), and the commits since then, which are few
and small, show whether another writer touched those paths. Any file action on a path makes its group stale: that is
stricter than Delta's own rule, and costs a new plan at worst. A version number alone does not identify the commit that
was read: an operator may undo commits, and writers create others with the same numbers. So the digest of that commit is
stored with it, and later commits count only while that commit exists.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_add, decode_adds, encode, vector_id
from actor.formats.delta.log import TableLog
from actor.formats.delta.snapshot import paths_condition
from actor.formats.delta.snapshot_cache import MAX_COMMITS_REPLAYED
from shared.layout.planner import FileGroup
from shared.table import FileKey, PartitionColumn


@dataclass(frozen=True, slots=True)
class LiveGroup:
    """A group whose inputs were live at `version`, with their `add` actions in the group's order.

    `digest` is that commit's.
    """

    group: FileGroup
    inputs: tuple[LoggedFile, ...]
    version: int
    digest: str | None

    @property
    def delete_files(self) -> tuple[str, ...]:
        """Paths of the files that hold its deletion vectors."""
        return tuple(sorted({path for logged in self.inputs if (path := logged.vector_path) is not None}))


def still_live(log: TableLog, groups: Sequence[LiveGroup], *, at_version: int) -> dict[FileGroup, bool]:
    """Decide for each group, live at its own version, whether its inputs are unchanged until version `at_version`.

    Groups that cannot be judged from single commits are left out of the answer.
    """
    if not groups:
        return {}
    oldest = min(live.version for live in groups)
    if not 0 <= at_version - oldest <= MAX_COMMITS_REPLAYED:
        return {}
    touched = log.touched_paths(after=oldest, until=at_version)
    if not all(map(is_plain, touched)):
        return {}
    # Only after the commits since were read, so that a commit undone before that is noticed here.
    unchanged = {(version, digest) for version, digest in _read_at(groups) if log.has_commit(version, digest)}
    return {
        live.group: all(touched.get(file.path, -1) <= live.version for file in live.group.files)
        for live in groups
        if (live.version, live.digest) in unchanged and all(is_plain(file.path) for file in live.group.files)
    }


def _read_at(groups: Iterable[LiveGroup]) -> set[tuple[int, str | None]]:
    return {(live.version, live.digest) for live in groups}


def is_plain(path: str) -> bool:
    """Return whether a path has one spelling only; absolute ones have several, and Delta's snapshot rewrites them."""
    return ":" not in path and not path.startswith("/") and "//" not in path and "./" not in path


def newest_inputs(
    log: TableLog, live: LiveGroup, columns: Sequence[PartitionColumn], *, at_version: int
) -> tuple[LoggedFile | None, ...] | None:
    """Return the inputs of a group as version `at_version` has them, in its order; None for each that is gone.

    By the commits since it was live: None for all where these do not say it plainly.
    """
    is_near = 0 <= at_version - live.version <= MAX_COMMITS_REPLAYED
    if not is_near or not all(is_plain(file.path) for file in live.group.files):
        return None
    found: dict[str, LoggedFile | None] = {logged.file.path: logged for logged in live.inputs}
    for actions in log.actions_of_snapshot(after=live.version, until=at_version):
        left = _after_commit(found, actions, columns)
        if left is None:
            return None
        found = left
    # Only after the commits since were read, as above.
    if not log.has_commit(live.version, live.digest):
        return None
    return tuple(found[logged.file.path] for logged in live.inputs)


def _after_commit(
    files: Mapping[str, LoggedFile | None], actions: Sequence[Mapping[str, Any]], columns: Sequence[PartitionColumn]
) -> dict[str, LoggedFile | None] | None:
    """Return files by path as a commit leaves them; None if it does not plainly say what is live."""
    added = [action["add"] for action in actions if "add" in action]
    removed = [action["remove"] for action in actions if "remove" in action]
    if not all(is_plain(one["path"]) for one in (*added, *removed)):
        return None
    again = [LoggedFile(decode_add(add, columns), encode(add)) for add in added if add["path"] in files]
    gone = [FileKey(one["path"], vector_id(one.get("deletionVector"))) for one in removed if one["path"] in files]
    # A file is live once: it is removed as it was, and then it may be added again.
    was_live = {known.key for known in files.values() if known is not None}
    paths = [key.path for key in gone]
    if len(set(paths)) < len(paths) or not was_live.issuperset(gone):
        return None
    if Counter(one.file.path for one in again) - Counter(paths):
        return None
    return {**files, **dict.fromkeys(paths), **{one.file.path: one for one in again}}


def find_live(
    log: TableLog, snapshot: Any, groups: Iterable[FileGroup], columns: tuple[PartitionColumn, ...]
) -> list[LiveGroup]:
    """Find groups in a snapshot by a Spark job; those with an input that is not live are left out."""
    wanted = tuple(groups)
    if not wanted:
        return []
    version = log.version(snapshot)
    digest = log.digest(version)
    paths = sorted({file.path for group in wanted for file in group.files})
    live = {logged.key: logged for logged in decode_adds(log.files(snapshot, paths_condition(paths)), columns)}
    return [
        LiveGroup(group, tuple(live[file.key] for file in group.files), version, digest)
        for group in wanted
        if all(file.key in live for file in group.files)
    ]


def resolve_live(
    log: TableLog,
    snapshot: Any,
    known: Sequence[tuple[FileGroup, LiveGroup | None]],
    columns: tuple[PartitionColumn, ...],
) -> list[LiveGroup]:
    """Return the groups that are live in this snapshot, in the order given.

    `known` pairs each group with where it was last seen live, None if nowhere.
    """
    version = log.version(snapshot)
    seen = [live for _, live in known if live is not None]
    # Before the commits since are read: one that is undone meanwhile is noticed the next time.
    digest = log.digest(version) if any(live.version != version for live in seen) else None
    verdicts = still_live(log, seen, at_version=version)
    unsure = [group for group, _ in known if group not in verdicts]
    resolved = {live.group: live for live in find_live(log, snapshot, unsure, columns)}
    moved = {
        group: live if live.version == version else LiveGroup(group, live.inputs, version, digest)
        for group, live in known
        if live is not None and verdicts.get(group)
    }
    found = moved | resolved
    return [found[group] for group, _ in known if group in found]
