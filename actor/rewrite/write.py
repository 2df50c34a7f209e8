"""Writes all groups of a rewrite, several at once; what fails leaves nothing behind, and what is written may land.

A group that fails because its inputs are gone is stale: another writer changed them. One that is refused fails alone;
beside others that are written, so do one with an input that cannot be read and one for which the disk has no space. Any
other failure stops the rewrite before its commit, and deletes what it wrote.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic

import structlog

from actor.rewrite.checks import require_single_entries
from actor.rewrite.commit import Committer
from actor.rewrite.model import Blame, L, S, Staged
from actor.rewrite.ports import Failures, GroupWriter, LiveGroups
from shared.errors import LakewrightError, RefusedFiles
from shared.layout.planner import FileGroup
from shared.table import DataFile

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WriteResult(Generic[S]):
    """Result of writing; a group that is in none of these was changed by others.

    failed: for themselves: refused (`RefusedFiles`), or otherwise beside others that are written.
    """

    written: tuple[S, ...] = ()
    skipped: tuple[FileGroup, ...] = ()
    failed: tuple[tuple[FileGroup, LakewrightError], ...] = ()


@dataclass(frozen=True, slots=True)
class Workshop(Generic[L, S]):
    """Tools for writing groups of a table; `committer` deletes what is not to be committed."""

    location: str
    files: LiveGroups[L]
    writer: GroupWriter[L, S]
    failures: Failures
    committer: Committer[S]
    threads: int
    should_stop: Callable[[], bool]

    def write_groups(self, groups: Sequence[L]) -> WriteResult[S]:
        """Write groups until asked to stop; raises the first failure that staleness does not explain."""
        attempts = self._attempt_all(groups)
        written = tuple(result for result in attempts if isinstance(result, Staged))
        skipped = tuple(live.group for live, result in zip(groups, attempts, strict=True) if result is None)
        failures = [(live, one) for live, one in zip(groups, attempts, strict=True) if isinstance(one, Exception)]
        if failures or self.writer.may_have_lost_attempts():
            # Failed tasks leave what they had written, and no thread writes any more.
            kept = {path for one in written for path in one.paths}
            self.committer.tidy(lambda: self.writer.leftovers(kept))
        try:
            failed = [self._judged(live, failure, written) for live, failure in failures]
        except BaseException:
            self.committer.discard(written)
            raise
        return WriteResult(written, skipped, tuple(one for one in failed if one is not None))

    def _attempt_all(self, groups: Sequence[L]) -> list[S | Exception | None]:
        """Return for each group what was written, what it failed with, or None if it was not begun."""
        ended = threading.Event()  # By a failure that does not spare others.

        def attempt(live: L) -> S | Exception | None:
            if ended.is_set() or self.should_stop():
                return None
            try:
                require_single_entries(self.location, live, groups)
                with self.writer.entered():
                    return self.writer.write(live)
            except Exception as failure:  # noqa: BLE001 - explained once no thread writes any more
                if self._blame(failure) is not Blame.FILES:
                    ended.set()
                return failure

        threads = min(self.threads, len(groups))
        if threads <= 1:
            return list(map(attempt, groups))
        with ThreadPoolExecutor(threads, thread_name_prefix="lakewright-write") as pool:
            return list(pool.map(attempt, groups))

    def _judged(self, live: L, failure: Exception, written: Collection[S]) -> tuple[FileGroup, LakewrightError] | None:
        """Return a group that failed for itself, None for one that others changed; raises what may concern others."""
        error = self._explain(live, failure)
        if error is None:
            _log.info(
                "group_inputs_removed_concurrently",
                partition=live.group.partition,
                files=len(live.inputs),
                error=self.failures.text(failure),
            )
            return None
        if isinstance(error, RefusedFiles) or (written and self._blame(failure) is not Blame.ALL):
            _log.warning("group_failed", partition=live.group.partition, files=len(live.inputs), error=str(error))
            return live.group, error
        raise error from failure

    def _explain(self, live: L, failure: Exception) -> LakewrightError | None:
        if isinstance(failure, RefusedFiles):
            return failure
        if isinstance(failure, LakewrightError):
            raise failure
        if not self.files.is_live(live):
            return None
        doing = f"rewriting {len(live.inputs)} files in {live.group.partition} of {self.location}"
        error = self.failures.translate(failure, doing, so="the table is unchanged")
        if isinstance(error, RefusedFiles):
            error.files = tuple(one.path for one in live.group.files if _name(one) in str(error))
        return error

    def _blame(self, failure: Exception) -> Blame:
        if isinstance(failure, LakewrightError):
            return Blame.FILES if isinstance(failure, RefusedFiles) else Blame.ALL
        return self.failures.blame(failure)


def _name(file: DataFile) -> str:
    """Return how messages of libraries name a file, whatever they put before its folder."""
    return f"/{file.path.rpartition('/')[2]}"
