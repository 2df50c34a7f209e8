"""Commits written groups: groups that others changed are left out, the rest is tried again, and nothing is guessed.

After a *refused* commit our own outputs that will not be used are deleted. After an *unknown* outcome nothing is ever
deleted: the snapshots are searched for this write first; if they do not show it, its files are left as orphans.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from actor.formats.iceberg.conflicts import IcebergFailure, classify
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, LiveInput, left_without_data, still_live
from actor.formats.parquet.copy_rules import EncodeReason
from actor.jvm.errors import first_line
from actor.ports import Control
from shared.errors import Conflict, RetryableError
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import COMMIT_KEY, TAGS_KEY, WRITE_KEY
from shared.formats.iceberg.orphans import MIN_ORPHAN_AGE_MS
from shared.formats.iceberg.positions import positions
from shared.formats.iceberg.tags import encode_tags
from shared.layout.planner import FileGroup
from shared.table import DataFile

_log = structlog.get_logger(__name__)

MAX_OUTPUT_AGE_S = MIN_ORPHAN_AGE_MS // 2_000
"""Greatest age of an output that is committed: half of the least age of an orphan, which a vacuum deletes."""


@dataclass(frozen=True, slots=True)
class StagedGroup:
    """A group whose output files exist and have the right number of rows; no snapshot refers to them yet.

    `raw` are Iceberg's objects of the outputs. `encoded_because`: why the row groups were not copied; None: they were.
    """

    live: InputGroup
    outputs: tuple[DataFile, ...]
    rows: int
    raw: Any = None
    encoded_because: EncodeReason | None = None


@dataclass(frozen=True, slots=True)
class IcebergCommit:
    """How a commit ended: its version (None: no group was left), committed groups, stale groups, and conflicts."""

    version: int | None
    committed: tuple[StagedGroup, ...]
    conflicted: tuple[FileGroup, ...]
    conflicts: int


@dataclass(frozen=True, slots=True)
class Replacement:
    """What one snapshot does: groups whose inputs it replaces, and delete files that hide nothing after it."""

    groups: tuple[StagedGroup, ...]
    deletes: tuple[AppliedDelete, ...] = ()


class CommitTarget(Protocol):
    """The table that is committed to; every method raises what Iceberg raises."""

    location: str

    def refresh(self) -> TableHead:
        """Read the newest metadata, and return them."""

    def live(self, snapshot: int, groups: Iterable[FileGroup]) -> Mapping[str, LiveInput]:
        """Return which files of these groups are live in a snapshot, with their deletes."""

    def commit(self, change: Replacement, *, since: int, summary: Mapping[str, str]) -> None:
        """Make a change in one snapshot, validated against all that were made since `since`."""

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files that no snapshot refers to; what cannot be deleted is logged."""

    def check(self, head: TableHead) -> None:
        """Raise Unsupported or OtherTable unless the table may be rewritten, and is the one that was read."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a commit carries: the text of our metadata, and an id that no other write has."""

    user_metadata: str
    write_id: str

    def summary(self, groups: Sequence[StagedGroup]) -> dict[str, str]:
        """Return the entries of the snapshot's summary, with the tags of these outputs."""
        tags = {file.path.rpartition("/")[2]: one.live.group.tags for one in groups for file in one.outputs}
        tagged = {name: of_file for name, of_file in tags.items() if of_file}
        own = {COMMIT_KEY: self.user_metadata, WRITE_KEY: self.write_id}
        return own | ({TAGS_KEY: encode_tags(tagged)} if tagged else {})


class IcebergCommitter:
    """Commits written groups to one table; `since` is the snapshot that their inputs were read at.

    `at_read`: all files of the table in it, empty where no delete file is to be removed.
    """

    clock_s: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(
        self,
        target: CommitTarget,
        signature: Signature,
        control: Control,
        *,
        since: int,
        at_read: Mapping[str, LiveInput] | None = None,
    ) -> None:
        self._target = target
        self._at_read = at_read or {}
        self._signature = signature
        self._control = control
        self._since = since
        self._begun_s = self.clock_s()

    def commit(self, written: Sequence[StagedGroup], *, attempts: int) -> IcebergCommit:
        """Commit the groups that are still live, trying at most `attempts` times.

        Raises:
            LeaseLost: the control forbade the commit; nothing was committed, our files are deleted.
            Conflict: others won every attempt; nothing was committed, our files are deleted.
            RetryableError: the outcome is unknown, and the table does not show the commit.
        """
        offered, conflicts = tuple(written), 0
        reason = ""
        for _ in range(attempts):
            change, taken = self._split(offered)
            offered = change.groups
            conflicts += bool(taken) and not reason  # After a refusal it is the conflict already counted.
            self.discard(taken)
            if not offered:
                return _result(None, (), written, conflicts)
            self._require_permission(offered)
            try:
                self._target.commit(change, since=self._since, summary=self._signature.summary(offered))
            except Exception as error:  # noqa: BLE001 - judged, and raised again unless the table shows the commit
                version = self._resolve_failure(error)
                if version is None:
                    conflicts, reason = conflicts + 1, first_line(error)
                    continue
            else:
                version = self._made()
            return _result(version, offered, written, conflicts)
        self.discard(offered)
        raise Conflict(
            f"the rewrite of {self._target.location} was refused {attempts} times: {reason}; plan it again",
            kind=IcebergFailure.BUSY,
        )

    def _split(self, offered: tuple[StagedGroup, ...]) -> tuple[Replacement, tuple[StagedGroup, ...]]:
        """Split groups into those that are live in the newest snapshot, and those that others changed."""
        try:
            head = self._target.refresh()
            self._target.check(head)
            if head.current == self._since:
                return self._replacement(offered), ()
            if head.current is None or self._since not in {one.id for one in head.chain()}:
                return Replacement(()), offered  # Rolled back, replaced or expired: nothing can be validated.
            live = self._target.live(head.current, [group.live.group for group in offered])
        except BaseException:
            self.discard(offered)  # As in `_require_permission`: no attempt is open.
            raise
        kept = tuple(group for group in offered if still_live(group.live, live))
        return self._replacement(kept, live), tuple(group for group in offered if group not in kept)

    def _replacement(
        self, groups: tuple[StagedGroup, ...], newest: Mapping[str, LiveInput] | None = None
    ) -> Replacement:
        return Replacement(groups, left_without_data([one.live for one in groups], self._at_read, newest))

    def _require_permission(self, offered: Sequence[StagedGroup]) -> None:
        """Raise unless a commit is allowed, asked last so that the lease is fresh when the commit begins."""
        try:
            self._require_young()
            self._control.may_commit()
        except BaseException:
            self.discard(offered)  # No attempt is open: each earlier one was refused for certain.
            raise

    def _require_young(self) -> None:
        """Raise Conflict if a vacuum could take outputs for orphans; they may be as old as this object."""
        age_s = self.clock_s() - self._begun_s
        if age_s > MAX_OUTPUT_AGE_S:
            raise Conflict(
                f"the outputs for {self._target.location} may be {age_s / 3600:.0f} hours old, and a vacuum deletes "
                "files that no snapshot names; plan it again",
                kind="OldOutputs",
            )

    def _resolve_failure(self, error: Exception) -> int | None:
        """Return the version if the commit was made after all, None if it may be tried again; raise otherwise."""
        failure = classify(error)
        # Even a refusal may be one of our own first attempt, which was made although its response was lost.
        version = self._searched(error)
        _log.info(
            "commit_failed",
            table=self._target.location,
            failure=failure,
            committed_as=version,
            error=first_line(error),
        )
        if version is None and failure is IcebergFailure.UNKNOWN:
            raise RetryableError(
                f"the outcome of a commit to {self._target.location} is unknown ({first_line(error)}), and no snapshot "
                "shows it; its files are left as orphans"
            ) from error
        return version

    def _searched(self, error: Exception) -> int | None:
        try:
            return self._find_this_commit()
        except RetryableError:
            raise
        except Exception as unreadable:  # noqa: BLE001 - reported together with what it was to explain
            raise RetryableError(
                f"the outcome of a commit to {self._target.location} is unknown ({first_line(error)}), and the table "
                f"cannot be read ({first_line(unreadable)}); its files are left as orphans"
            ) from error

    def _made(self) -> int:
        """Return the version of the commit that was just made."""
        version = self._find_this_commit()
        if version is None:
            raise RetryableError(f"the commit to {self._target.location} was made, but no snapshot shows it any longer")
        return version

    def _find_this_commit(self) -> int | None:
        """Return the version of this very write, None if it was not made; others of the same job do not count.

        Raises RetryableError where it was made and rolled back since: its snapshot still refers to the files. So it
        does where main no longer leads back to the read: the snapshot of this write may have expired, and its files be
        live.
        """
        head = self._target.refresh()
        for snapshot in head.snapshots.values():
            if snapshot.summary.get(WRITE_KEY) == self._signature.write_id:
                if snapshot.id in (at := positions(head)):
                    return at[snapshot.id].version
                raise RetryableError(
                    f"the commit to {self._target.location} was made, and the table was rolled back since; its files "
                    "stay, because its snapshot does"
                )
        if self._since not in {one.id for one in head.chain()}:
            raise RetryableError(
                f"it is unknown whether the commit to {self._target.location} was made: the snapshots since the read "
                "have expired or were rolled back; its files are left as orphans"
            )
        return None

    def discard(self, groups: Sequence[StagedGroup]) -> None:
        """Delete outputs that no snapshot refers to."""
        paths = [file.path for group in groups for file in group.outputs]
        if not paths:
            return
        try:
            self._target.delete(paths)
        except Exception as error:  # noqa: BLE001 - tidying must not hide why it was needed
            _log.warning("orphan_files_not_deleted", table=self._target.location, error=first_line(error))


def _result(
    version: int | None, committed: tuple[StagedGroup, ...], written: Sequence[StagedGroup], conflicts: int
) -> IcebergCommit:
    stale = tuple(group.live.group for group in written if group not in committed)
    return IcebergCommit(version, committed, stale, conflicts)
