"""Our rewrites at the end of a table's history, which a catalog may undo for a writer that began before them.

Such a catalog removes the newest snapshots, if all of them ask for it, and puts the writer's in their place. What was
rewritten is lost, and what they replaced is live again: that is a conflict, which is seen only afterwards.
"""

from dataclasses import dataclass

from shared.table import Commit, Position

MAX_COMMITS = 20
"""Commits that are remembered: more in a row without any of a writer are unlikely to be undone."""


@dataclass(frozen=True, slots=True)
class OwnCommit:
    """A rewrite: its position in the history, and the bytes that it wrote."""

    version: int
    digest: str
    bytes: int

    @property
    def position(self) -> Position:
        """Its position."""
        return Position(self.version, self.digest)


OwnTail = tuple[OwnCommit, ...]
"""Our rewrites after the newest commit that is none, oldest first."""


def tail_after(tail: OwnTail, commit: Commit, *, is_asked: bool) -> OwnTail:
    """Return the tail after a commit; is_asked: the table asks its catalog to undo rewrites for writers.

    A change of properties alone is no snapshot, and has the digest of the newest.
    """
    if is_asked and tail and commit.digest and commit.digest == tail[-1].digest:
        return tail
    if commit.origin is None or commit.data_change or not is_asked:
        return ()
    written = sum(file.size_bytes for file in commit.added)
    return (*tail, OwnCommit(commit.version, commit.digest, written))[-MAX_COMMITS:]
