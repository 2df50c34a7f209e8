"""Ports of a rewrite to a table format: live files, a writer of groups, a target of commits, the meaning of failures.

Each is opened for one rewrite. Sessions, transactions, snapshots and scans stay behind them.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from actor.rewrite.model import Attempt, Blame, L, ResolvedGroup, S, Staged, Verdict
from shared.errors import LakewrightError
from shared.layout.planner import FileGroup

L_contra = TypeVar("L_contra", bound=ResolvedGroup, contravariant=True)
S_co = TypeVar("S_co", bound=Staged[Any, Any], covariant=True)


class LiveGroups(Protocol[L]):
    """The live files of a table; `folder` is what their paths are compared with."""

    folder: str

    def resolve(self, groups: Sequence[FileGroup]) -> Sequence[L]:
        """Return the groups whose files are live as they were planned, in their order."""

    def is_live(self, live: L) -> bool:
        """Return whether no other writer has changed a group's inputs since they were resolved."""


class GroupWriter(Protocol[L_contra, S_co]):
    """Writes groups; used by several threads."""

    def entered(self) -> AbstractContextManager[object]:
        """Let the present thread work for this rewrite."""

    def write(self, live: L_contra) -> S_co:
        """Write a group's rows, checked; what raises has left no file that it knows of."""

    def leftovers(self, kept: Collection[str]) -> Sequence[str]:
        """List the files of this rewrite besides these; called when no thread writes."""

    def may_have_lost_attempts(self) -> bool:
        """Return whether tasks that were begun again may have left files."""


class Failures(Protocol):
    """Meaning of exceptions of a format."""

    def verdict(self, error: BaseException) -> Verdict:
        """Return what a failed attempt to commit means."""

    def blame(self, error: BaseException) -> Blame:
        """Return what the failure of one group says of the others."""

    def text(self, error: BaseException) -> str:
        """Return what an exception says, and each of its causes."""

    def refused(self, error: BaseException, location: str) -> LakewrightError:
        """Return our error for a commit that was certainly not made."""

    def translate(self, error: BaseException, doing: str, *, so: str = "") -> LakewrightError:
        """Return our error for a failure outside of a commit; `so` is its consequence for the table."""


class CommitTarget(Protocol[S]):
    """Target of commits; methods raise what the format's library raises.

    mark: what the commit is found by, for people. max_output_age_s: seconds after which outputs are not committed,
    because a vacuum could take them for orphans.
    """

    location: str
    mark: str
    max_output_age_s: float
    failures: Failures

    def begin(self, offered: tuple[S, ...]) -> Attempt[S]:
        """Open an attempt on the newest version, with those groups whose inputs are live in it.

        Where others only deleted rows of inputs, the attempt may delete the same rows of the outputs (`made_good`).

        Raises Conflict, Unsupported or OtherTable where the outputs do not fit the table any more.
        """

    def sizes(self, paths: Collection[str]) -> Mapping[str, int | None]:
        """Return the size in bytes that the store says each of these files has now, None for one that is not there."""

    def commit(self, attempt: Attempt[S]) -> int | None:
        """Commit, and return the version; None: it was made, and `find` has its version.

        Raises NotAsked where it failed before the log or the catalog was asked.
        """

    def find(self, attempt: Attempt[S]) -> int | None:
        """Return the version of this very write, None if it was not made; others of its job and token do not count.

        Raises RetryableError where that cannot be known, or where it was made and undone.
        """

    def follows(self, version: int) -> int | None:
        """Return the version right before one that was committed here, None where that is not known."""

    def delete(self, paths: Collection[str]) -> None:
        """Delete files that no commit refers to."""
