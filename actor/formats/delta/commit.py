"""Commits written groups: groups that others changed are set aside, the rest is tried again, and nothing is guessed.

After a *refused* commit our own outputs that will not be used are deleted. After an *unknown* outcome nothing is ever
deleted: the log is searched for the job and token first; if it does not show them, the files are left to VACUUM.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.conflicts import CommitFailure, classify, refused
from actor.formats.delta.live_files import resolve_live
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.metrics import operation_metrics
from actor.formats.delta.output_paths import OutputPaths
from actor.formats.delta.write import WrittenGroup, json_array
from actor.jvm.errors import first_line
from actor.jvm.scala import Scala
from actor.ports import Control
from shared.errors import Conflict, RetryableError
from shared.formats.delta_orphans import MIN_ORPHAN_AGE_MS
from shared.layout.planner import FileGroup
from shared.table import CommitOrigin, FileKey

METADATA_CHANGED = "MetadataChangedException"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CommitResult:
    """How a commit ended: its version (None: no group was left), committed groups, stale groups, and conflicts."""

    version: int | None
    committed: tuple[WrittenGroup, ...]
    conflicted: tuple[FileGroup, ...]
    conflicts: int


class Committer:
    """Commits written groups to one table; `shape` is what their files were written under."""

    max_output_age_s: float = MIN_ORPHAN_AGE_MS / 2_000
    """Seconds after its beginning in which a rewrite may commit: half the age at which a vacuum deletes such files."""

    def __init__(self, scala: Scala, log: TableLog, shape: TableShape, origin: CommitOrigin, control: Control) -> None:
        self._scala = scala
        self._log = log
        self._shape = shape
        self._origin = origin
        self._control = control
        self._begun_s = time.monotonic()

    def commit(self, written: Sequence[WrittenGroup], *, attempts: int) -> CommitResult:
        """Commit the groups that are still live, trying at most `attempts` times."""
        offered, conflicts = tuple(written), 0
        last: Conflict | None = None
        for _ in range(attempts):
            try:
                txn = self._log.transaction()
                offered, taken = self._split_conflicted(txn, offered)
            except BaseException:
                self.discard(offered)  # As in `_require_permission`: no attempt is open.
                raise
            conflicts += bool(taken) and last is None  # After a refusal it is the conflict already counted.
            self.discard(taken)
            if not offered:
                return self._result(None, (), written, conflicts)
            self._require_permission(offered)
            try:
                version = self._commit(txn, offered)
            except Exception as error:  # noqa: BLE001 - judged, and raised again unless the log shows the commit
                found = self._resolve_failure(error, offered, since_version=int(txn.readVersion()))
                if found is not None:
                    return self._result(found, offered, written, conflicts)
                conflicts += 1
                last = refused(error, self._log.location)
            else:
                return self._result(version, offered, written, conflicts)
        self.discard(offered)
        raise last or Conflict(f"no commit to {self._log.location} was attempted: {attempts=}", kind=CommitFailure.BUSY)

    def _commit(self, txn: Any, offered: Sequence[WrittenGroup]) -> int:
        return self._log.commit(txn, self._actions(txn, offered), self._metrics(offered))

    def _result(
        self, version: int | None, committed: tuple[WrittenGroup, ...], written: Sequence[WrittenGroup], conflicts: int
    ) -> CommitResult:
        stale = tuple(
            group.live.group for group in written if group.live.group not in {g.live.group for g in committed}
        )
        return CommitResult(version, committed, stale, conflicts)

    def _split_conflicted(
        self, txn: Any, offered: tuple[WrittenGroup, ...]
    ) -> tuple[tuple[WrittenGroup, ...], tuple[WrittenGroup, ...]]:
        """Split groups into those live in the transaction's snapshot and those taken by others."""
        snapshot = txn.snapshot()
        if not self._log.shape(snapshot).same_layout(self._shape):
            raise Conflict(
                f"metadata or protocol of {self._log.location} changed while its files were rewritten; plan them again",
                kind=METADATA_CHANGED,
            )
        known = [(group.live.group, group.live) for group in offered]
        live = {
            found.group for found in resolve_live(self._log, snapshot, known, self._shape.metadata.partition_columns)
        }
        kept = tuple(group for group in offered if group.live.group in live)
        return kept, tuple(group for group in offered if group.live.group not in live)

    def _require_permission(self, offered: Sequence[WrittenGroup]) -> None:
        """Raise unless a commit is allowed; the lease comes last, so that it is fresh when the commit begins."""
        try:
            self._require_young()
            self._require_outputs(offered)
            self._control.may_commit()
        except BaseException:
            self.discard(offered)  # No attempt is open: each earlier one was refused for certain.
            raise

    def _require_young(self) -> None:
        """Raise RetryableError for outputs that may be so old that a vacuum takes them for orphans."""
        age_s = time.monotonic() - self._begun_s
        if age_s > self.max_output_age_s:
            raise RetryableError(
                f"the rewrite of {self._log.location} began {age_s / 3600:.1f} h ago, and is not committed after "
                f"{self.max_output_age_s / 3600:g} h, because a vacuum deletes files that no commit names after a day; "
                "lower lakewright.max-bytes-per-job"
            )

    def _require_outputs(self, offered: Sequence[WrittenGroup]) -> None:
        """Raise RetryableError unless every output is there with its size.

        Another process may have removed files that no version refers to, as VACUUM without retention does. Then the
        inputs must not be replaced by them.
        """
        expected = {output.key: output.file.size_bytes for group in offered for output in group.outputs}
        sizes = self._log.sizes(expected)
        wrong = [f"{key.path} ({sizes[key]} of {size} bytes)" for key, size in expected.items() if sizes[key] != size]
        if wrong:
            raise RetryableError(
                f"{len(wrong)} of {len(expected)} files written for {self._log.location} are missing or truncated "
                f"before their commit, so nothing was committed: {wrong[0]}. Does a process run VACUUM with a "
                "retention of 0, or clean up the folder?",
            )

    def _resolve_failure(self, error: Exception, offered: Sequence[WrittenGroup], *, since_version: int) -> int | None:
        """Return the version if the commit was made after all, None if it may be tried again; raise otherwise."""
        verdict = self._classify(error)
        # Even a conflict may be one with our own first write, which was made although its response was lost.
        version = self._find_this_commit(error, offered, since_version)
        _log.info(
            "commit_failed",
            table=self._log.location,
            job=self._origin.job,
            token=self._origin.token,
            failure=verdict,
            committed_as=version,
            error=first_line(error),
        )
        if version is not None:
            return version
        if verdict is CommitFailure.UNKNOWN:
            raise RetryableError(
                f"the outcome of a commit to {self._log.location} is unknown ({first_line(error)}), and the log does "
                f"not show job {self._origin.job}, token {self._origin.token}; its files are left to VACUUM",
            ) from error
        if verdict is CommitFailure.REFUSED:
            self.discard(offered)
            raise refused(error, self._log.location) from error
        return None

    def _find_this_commit(self, error: Exception, offered: Sequence[WrittenGroup], since_version: int) -> int | None:
        """Return the version of this very commit; another rewrite of the same job and token does not count."""
        try:
            version = self._log.find_commit(self._origin, since_version=since_version)
            return version if version is not None and self._is_this(version, offered) else None
        except Exception as unreadable:  # noqa: BLE001 - reported together with what it was to explain
            raise RetryableError(
                f"the outcome of a commit to {self._log.location} is unknown ({first_line(error)}), and its log cannot "
                f"be read ({first_line(unreadable)}); first search for job {self._origin.job}, "
                f"token {self._origin.token}",
            ) from error

    def _is_this(self, version: int, offered: Sequence[WrittenGroup]) -> bool:
        actions = self._log.actions(version)
        removed = {action["remove"]["path"] for action in actions if "remove" in action}
        added = {action["add"]["path"] for action in actions if "add" in action}
        return removed == {logged.file.path for group in offered for logged in self._replaced(group)} and added == {
            logged.file.path for group in offered for logged in group.outputs
        }

    def _classify(self, error: Exception) -> CommitFailure:
        return classify(error)

    def _replaced(self, group: WrittenGroup) -> Sequence[LoggedFile]:
        """Return the files that a commit of the group removes."""
        return group.live.inputs

    def _actions(self, txn: Any, offered: Sequence[WrittenGroup]) -> Any:
        """Return adds and removes for Delta, after passing the files that they were made from to the transaction."""
        now_ms = int(time.time() * 1000)
        inputs = self._scala.adds(json_array([logged for group in offered for logged in group.live.inputs]))
        outputs = self._scala.adds(json_array([logged for group in offered for logged in group.outputs]))
        txn.trackFilesRead(inputs)
        removes = self._scala.removes(inputs, now_ms, data_change=False)
        return outputs.concat(removes)

    def _metrics(self, offered: Sequence[WrittenGroup]) -> dict[str, int]:
        inputs = [logged for group in offered for logged in group.live.inputs]
        return dict(operation_metrics(inputs, [logged for group in offered for logged in group.outputs]))

    def discard(self, groups: Sequence[WrittenGroup]) -> None:
        """Delete files that no commit refers to; what cannot be deleted is logged and left to VACUUM."""
        self._delete(lambda: [key for group in groups for key in group.keys])

    def sweep(self, paths: OutputPaths, kept: Sequence[WrittenGroup]) -> None:
        """Delete whatever this attempt wrote besides the files of these groups, which failed writes left behind."""
        self._delete(lambda: paths.leftovers({key for group in kept for key in group.keys}))

    def _delete(self, find: Callable[[], Sequence[FileKey]]) -> None:
        try:
            keys = find()
            deleted = self._log.delete(keys)
        except Exception as error:  # noqa: BLE001 - tidying must not hide why it was needed; VACUUM does it later
            _log.warning("orphan_files_not_deleted", table=self._log.location, error=first_line(error))
        else:
            if keys:
                _log.info("orphan_files_deleted", table=self._log.location, files=deleted)
