"""Rewrites of an index by other optimizers, as the commits of its table show them, and the rows that one doubled.

An optimizer that chose its files before another commit removed them may write their rows again. The log shows it: a
commit that changes no data removes a file that is not there any more.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from shared.paths.data_paths import PathKey, path_key
from shared.table import Commit

RESTORE = "RESTORE"
"""The operation that replaces a table's files by an earlier version's."""


@dataclass(frozen=True, slots=True)
class IndexRewritesSeen:
    """Findings in some commits in a row: versions of rewrites by others, and the first one that doubled rows.

    again_version: it wrote rows again, -1 if none did, or a RESTORE took them back; again_path: of a file that it
    removed although `gone_version` had removed it.
    """

    by_others: tuple[int, ...] = ()
    again_version: int = -1
    again_path: str = ""
    gone_version: int = -1


@dataclass(slots=True)
class _Doubled:
    """Files that may hold doubled rows: `ever` by any of the commits, `live` after the last one."""

    ever: set[PathKey] = field(default_factory=set)
    live: set[PathKey] = field(default_factory=set)

    def apply(self, commit: Commit, *, is_again: bool) -> None:
        added, removed = {path_key(file) for file in commit.added}, {path_key(file) for file in commit.removed}
        if commit.operation == RESTORE:
            self.live = (self.live - removed) | (added & self.ever)
        elif is_again or removed & self.live:
            self.live = (self.live - removed) | added
            self.ever |= added


def rewrites_seen(commits: Iterable[Commit]) -> IndexRewritesSeen:
    """Return what commits in a row show, oldest first."""
    gone: dict[PathKey, int] = {}
    doubled, found = _Doubled(), IndexRewritesSeen()
    by_others: list[int] = []
    for commit in commits:
        is_rewrite = bool(commit.added and commit.removed) and not commit.data_change
        again = next((file for file in commit.removed if is_rewrite and path_key(file) in gone), None)
        if is_rewrite and commit.origin is None:
            by_others.append(commit.version)
        if again is not None and not doubled.live:
            found = IndexRewritesSeen((), commit.version, again.path, gone[path_key(again)])
        doubled.apply(commit, is_again=again is not None)
        gone |= {path_key(file): commit.version for file in commit.removed}
        for file in commit.added:
            gone.pop(path_key(file), None)
    if not doubled.live:
        return IndexRewritesSeen(tuple(by_others))
    return IndexRewritesSeen(tuple(by_others), found.again_version, found.again_path, found.gone_version)
