"""Commits written groups: groups that others changed are set aside, the rest is tried again, and nothing is guessed.

Before each attempt it is checked that the outputs are young, and in the store with their size. Then the newest version
is read, and others have as long as the attempt takes from there to come first: what does not depend on that version was
done before, but for the question whether the lease is still ours, which is asked last and takes a moment. After a
failure the table is searched for this very commit first, whatever the failure says: even a conflict may be one with our
own first try, which was made although its answer was lost. Our outputs are deleted only where it is certain that no
commit refers to them; otherwise they are left to a vacuum.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic

import structlog

from actor.attempts import COMMIT_S, Attempts
from actor.ports import Control
from actor.rewrite.model import Attempt, NotAsked, S, Staged, Verdict
from actor.rewrite.ports import CommitTarget
from shared.errors import Conflict, LakewrightError, RetryableError
from shared.layout.planner import FileGroup

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CommitResult(Generic[S]):
    """How a commit ended: its version (None: no group was left), committed groups, and how often others were first.

    set_aside: why the others were not, by their group in the plan, as far as that is known.
    """

    version: int | None = None
    committed: tuple[S, ...] = ()
    conflicts: int = 0
    set_aside: Mapping[FileGroup, str] = field(default_factory=dict)


class Committer(Generic[S]):
    """Commits written groups to one table; it is as old as the oldest output.

    `clock_s` counts seconds, and `pause` waits for some.
    """

    def __init__(
        self,
        target: CommitTarget[S],
        control: Control,
        *,
        clock_s: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._target = target
        self._control = control
        self._clock_s = clock_s
        self._pause = pause
        self._begun_s = clock_s()

    def commit(self, written: Sequence[S], *, within_s: float = COMMIT_S) -> CommitResult[S]:
        """Commit the groups that are still live; others may be first for so many seconds.

        Raises:
            LeaseLost: the control forbade the commit; nothing was committed, our files are deleted.
            Conflict: the outputs do not fit any more, or others won every attempt; our files are deleted.
            PermanentError, NoTable, RetryableError: the commit was refused for certain; our files are deleted.
            RetryableError: the outcome is unknown, and the table does not show the commit.
        """
        attempts = Attempts(self._clock_s, self._pause, within_s)
        offered, conflicts = tuple(written), 0
        held = offered  # Groups whose files are there: as they were written, and as the newest attempt has them.
        last: LakewrightError | None = None
        set_aside: dict[FileGroup, str] = {}
        while attempts.again():
            with self._discarded_on_failure(held):
                self._require_young()
                self._require_present(held)
                attempt = self._target.begin(offered)
            conflicts += len(attempt.groups) < len(offered) and last is None  # After a refusal it is counted already.
            needed = (*attempt.groups, *attempt.committed)
            self._discard_files(_paths(held) - _paths(needed))
            offered, held = attempt.groups, needed
            set_aside |= attempt.set_aside
            if not offered:
                return CommitResult(conflicts=conflicts, set_aside=set_aside)
            with self._discarded_on_failure(held):
                self._control.may_commit()
            try:
                version = self._target.commit(attempt)
            except Exception as error:  # noqa: BLE001 - judged, and raised again unless the table shows the commit
                found = self._resolve_failure(error, attempt, held)
                if found is not None:
                    return CommitResult(found, attempt.committed, conflicts, set_aside)
                conflicts += 1
                last = self._target.failures.refused(error, self._target.location)
            else:
                made = self._made(attempt) if version is None else version
                return CommitResult(made, attempt.committed, conflicts, set_aside)
        self.discard(held)
        raise Conflict(f"{last}; tried {attempts.text}", kind=getattr(last, "kind", Verdict.BUSY))

    @contextmanager
    def _discarded_on_failure(self, held: Sequence[S]) -> Iterator[None]:
        """Delete these groups if a commit is forbidden or cannot begin: each earlier one was refused for certain."""
        try:
            yield
        except BaseException:
            self.discard(held)  # No attempt is open.
            raise

    def _require_young(self) -> None:
        """Raise RetryableError for outputs that may be so old that a vacuum takes them for orphans."""
        age_s, limit_s = self._clock_s() - self._begun_s, self._target.max_output_age_s
        if age_s > limit_s:
            raise RetryableError(
                f"the rewrite of {self._target.location} began {age_s / 3600:.1f} h ago, and is not committed after "
                f"{limit_s / 3600:g} h, because a vacuum deletes old files that no commit names; lower "
                "lakewright.max-bytes-per-job"
            )

    def _require_present(self, held: Sequence[S]) -> None:
        """Raise RetryableError unless every file that was written is in the store with its size in bytes.

        Another process may have removed files that no version refers to, as VACUUM without retention and searches for
        orphans without a least age do. Then the inputs must not be replaced by them.
        """
        expected = {path: size for one in held for path, size in one.sizes.items()}
        sizes = self._target.sizes(expected)
        wrong = [f"{path} ({sizes[path]} of {size} bytes)" for path, size in expected.items() if sizes[path] != size]
        if wrong:
            raise RetryableError(
                f"{len(wrong)} of {len(expected)} files written for {self._target.location} are missing or truncated "
                f"before their commit, so nothing was committed: {wrong[0]}. Does a process run VACUUM with a "
                "retention of 0, remove orphan files without an age, or clean up the folder?"
            )

    def _resolve_failure(self, error: Exception, attempt: Attempt[S], held: Sequence[S]) -> int | None:
        """Return the version if the commit was made after all, None if it may be tried again; raise otherwise.

        What was written is deleted if it was refused.
        """
        target = self._target
        verdict, text = target.failures.verdict(error), target.failures.text(error)
        version = None if isinstance(error, NotAsked) else self._found(text, error, attempt)
        _log.info(
            "commit_failed",
            table=target.location,
            mark=target.mark,
            failure=verdict,
            committed_as=version,
            error=text,
        )
        if version is not None:
            return version
        if verdict is Verdict.UNKNOWN:
            raise RetryableError(
                f"the outcome of a commit to {target.location} is unknown ({text}), and the table does not show "
                f"{target.mark}; its files are left to a vacuum"
            ) from error
        if verdict is Verdict.REFUSED:
            self.discard(held)  # It was certainly not made.
            raise target.failures.refused(error, target.location) from error
        return None

    def _found(self, text: str, error: Exception, attempt: Attempt[S]) -> int | None:
        """Search for this very commit; where that is impossible, nothing is known, whatever the failure was."""
        target = self._target
        try:
            return target.find(attempt)
        except RetryableError:
            raise
        except Exception as unreadable:  # noqa: BLE001 - reported together with what it was to explain
            raise RetryableError(
                f"the outcome of a commit to {target.location} is unknown ({text}), and the table cannot be read "
                f"({target.failures.text(unreadable)}); first search for {target.mark}; its files are left to a vacuum"
            ) from error

    def _made(self, attempt: Attempt[S]) -> int:
        """Return the version of a commit that was just made."""
        version = self._target.find(attempt)
        if version is None:
            raise RetryableError(f"the commit to {self._target.location} was made, but the table shows it no longer")
        return version

    def discard(self, groups: Sequence[S]) -> None:
        """Delete what was written for these groups; no commit refers to it. What cannot be deleted is logged."""
        self._discard_files(_paths(groups))

    def _discard_files(self, paths: Collection[str]) -> None:
        self.tidy(lambda: sorted(paths))

    def tidy(self, find: Callable[[], Collection[str]]) -> None:
        """Delete the files found, which no commit refers to; a failure is logged, and a vacuum deletes them later."""
        try:
            paths = find()
            if paths:
                self._target.delete(paths)
                _log.info("orphan_files_deleted", table=self._target.location, files=len(paths))
        except Exception as error:  # noqa: BLE001 - tidying must not hide why it was needed; a vacuum does it later
            text = self._target.failures.text(error)
            _log.warning("orphan_files_not_deleted", table=self._target.location, error=text)


def _paths(groups: Sequence[Staged[Any, Any]]) -> set[str]:
    """Return the paths of all files that were written for these groups."""
    return {path for one in groups for path in one.paths}
