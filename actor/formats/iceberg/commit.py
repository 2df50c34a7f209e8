"""An Iceberg table as what a rewrite commits to: one snapshot per commit, found by an id that no other write has."""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

from actor.formats.iceberg.conflicts import FAILURES
from actor.formats.iceberg.inputs import FileReader, files_at_read, left_without_data
from actor.formats.iceberg.late_rows import DeleteFiles, IcebergRowHider, Late, SetAside, named_by
from actor.formats.iceberg.newest_inputs import Inputs, NewestInputs, SnapshotReader
from actor.formats.iceberg.staged import Replacement, StagedGroup
from actor.proofread.model import weakest
from actor.rewrite.late_rows import Comparisons, LateRows
from actor.rewrite.model import Attempt
from actor.rewrite.ports import Failures
from shared.errors import RetryableError
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import COMMIT_KEY, PROOFREAD_KEY, TAGS_KEY, WRITE_KEY, YIELD, YIELD_KEY
from shared.formats.iceberg.orphans import MIN_ORPHAN_AGE_MS
from shared.formats.iceberg.positions import main_versions, newest_position
from shared.formats.iceberg.tags import encode_tags
from shared.layout import commit_metadata
from shared.layout.planner import FileGroup
from shared.policy.properties import yields_to_writers


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest snapshot (None: nothing can be validated from it), and the groups that can land upon it as they are.

    live: the inputs in the snapshot, None if it is the one that was read. set_aside: why groups cannot land.
    """

    snapshot: int | None = None
    live: Inputs | None = None
    untouched: Collection[FileGroup] = ()
    set_aside: Mapping[FileGroup, str] = field(default_factory=dict)


class StoredTable(Protocol):
    """A table with its metadata and files; every method raises what Iceberg raises."""

    location: str

    def refresh(self) -> TableHead:
        """Read the newest metadata, and return them."""

    def sizes(self, paths: Iterable[str]) -> Mapping[str, int | None]:
        """Return the size in bytes that the store says each of these files has now, None for one that is not there."""

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files that no snapshot refers to."""


class SnapshotTable(StoredTable, FileReader, SnapshotReader, DeleteFiles, Protocol):
    """The table that a rewrite is committed to."""

    def head(self) -> TableHead:
        """Return the metadata as they were last read, or as a commit of this process has left them."""

    def commit(self, change: Replacement, *, since: int, summary: Mapping[str, str]) -> None:
        """Make a change in one snapshot, validated against all that were made since it was checked.

        The outputs get the sequence number of `since`.
        """


class HeadCheck(Protocol):
    """Condition for a commit on the newest metadata of a table."""

    def check(self, head: TableHead) -> None:
        """Raise Unsupported, OtherTable or Conflict unless the table may be rewritten, and is the one that was read."""


class SnapshotTarget:
    """A table that snapshots are committed to; `head` is what the inputs were read by.

    `user_metadata` is the text that names jobs and tokens.
    """

    max_output_age_s: float = MIN_ORPHAN_AGE_MS / 2_000
    """Half the least age of an orphan, which a vacuum deletes."""

    failures: Failures = FAILURES

    def __init__(self, table: StoredTable, head: TableHead, user_metadata: str) -> None:
        self.location = table.location
        self.write_id = str(uuid.uuid4())
        ours = commit_metadata.decode(user_metadata)
        job = f"job {ours.origin.job}, token {ours.origin.token}, " if ours else ""
        self.mark = f"{job}{WRITE_KEY} {self.write_id}"
        self.sizes = table.sizes
        self.delete = table.delete
        self.refresh = table.refresh
        self.head = head
        self.base = head  # What the newest attempt was made upon.
        self.user_metadata = user_metadata
        self._made: tuple[int, int | None] | None = None  # The version of this write, and the one that it followed.

    @cached_property
    def since(self) -> int:
        """The snapshot that the inputs were read at; a table without one has no inputs."""
        return self.head.current or 0

    def leads_to(self, head: TableHead) -> bool:
        """Return whether main still has the snapshot of the read."""
        return self.since in {one.id for one in head.chain()}

    def summary(self, groups: Sequence[StagedGroup]) -> dict[str, str]:
        """Return the entries of the snapshot's summary, with the tags of these outputs."""
        tags = {one.file.path.rpartition("/")[2]: group.live.group.tags for group in groups for one in group.outputs}
        tagged = {name: of_file for name, of_file in tags.items() if of_file}
        own = {
            COMMIT_KEY: self.user_metadata,
            WRITE_KEY: self.write_id,
            PROOFREAD_KEY: weakest(one.proof for one in groups),
        }
        return own | ({TAGS_KEY: encode_tags(tagged)} if tagged else {})

    def follows(self, version: int) -> int | None:
        """Return the version of the metadata that this write was made upon, None if others committed in between."""
        return self._made[1] if self._made is not None and self._made[0] == version else None

    def find(self, _: Attempt[StagedGroup]) -> int | None:
        """Return the version of this very write, None if it was not made; others of the same job do not count.

        One that the catalog has undone and removed was not made, either: what it replaced is live again.
        Raises RetryableError where it was made and rolled back since: its snapshot still refers to the files. So it
        does where main no longer leads back to the read: the snapshot of this write may have expired, and its files be
        live.
        """
        head = self.refresh()
        if (version := self.version_in(head)) is not None:
            return version
        if not self.leads_to(head):
            raise RetryableError(
                f"it is unknown whether the commit to {self.location} was made: the snapshots since the read have "
                "expired or were rolled back; its files are left as orphans"
            )
        return None

    def version_in(self, head: TableHead) -> int | None:
        """Return the version of this write in the metadata; raises RetryableError if it was rolled back."""
        for snapshot in head.snapshots.values():
            if snapshot.summary.get(WRITE_KEY) == self.write_id:
                at = main_versions(head)
                if (version := at.get(snapshot.id)) is not None:
                    is_next = snapshot.parent == self.base.current
                    self._made = (version, newest_position(self.base).version if is_next else None)
                    return version
                raise RetryableError(
                    f"the commit to {self.location} was made, and the table was rolled back since; its files stay, "
                    "because its snapshot does"
                )
        return None


class IcebergTarget(SnapshotTarget):
    """`actor.rewrite.ports.CommitTarget` for rewrites; `comparisons` compares late rows with outputs.

    at_read: lists the files of the snapshot of the read.
    """

    def __init__(
        self,
        table: SnapshotTable,
        check: HeadCheck,
        head: TableHead,
        user_metadata: str,
        comparisons: Comparisons[StagedGroup],
    ) -> None:
        super().__init__(table, head, user_metadata)
        self._table = table
        self._check = check.check
        self._comparisons = comparisons
        self._hider = IcebergRowHider(table)
        self.at_read: FileReader = table
        self._read: tuple[Inputs, NewestInputs] | None = None  # All files then, and the inputs as they are followed.

    def summary(self, groups: Sequence[StagedGroup]) -> dict[str, str]:
        """Return the entries of the summary; by the table's newest properties, the catalog may undo the snapshot."""
        may_undo = {YIELD_KEY: YIELD} if yields_to_writers(self.base.metadata.configuration) else {}
        return super().summary(groups) | may_undo

    def begin(self, offered: tuple[StagedGroup, ...]) -> Attempt[StagedGroup]:
        """Read the newest metadata; groups of which others changed an input are left out unless they are made good."""
        if self._read is None:  # Before the table is refreshed: by the metadata that its snapshot was read with.
            read = [group.live for group in offered]
            followed = NewestInputs(self._table, self.since, read)
            self._read = files_at_read(self.at_read, self.head, read), followed
        at_read, newest = self._read
        seen, late = self._comparisons.look(lambda: self._look(offered, newest))
        if seen.snapshot is None:
            return Attempt((), set_aside=seen.set_aside)
        kept = {*seen.untouched, *(one.group.live.group for one in late)}
        groups = tuple(one for one in offered if one.live.group in kept)
        left = [one.live.group for one in offered if one.live.group not in kept]
        set_aside = {group: seen.set_aside.get(group, SetAside.NOT_COMPARED) for group in left}
        replaced = [one.path for group in groups for one in group.live.inputs]
        attempt = Attempt(groups, None, self._hider.make_good(late, replaced), set_aside)
        deletes = left_without_data([one.live for one in groups], at_read, seen.live) + named_by(late)
        return replace(attempt, base=Replacement(attempt.committed, deletes, seen.snapshot))

    def _look(self, offered: tuple[StagedGroup, ...], inputs: NewestInputs) -> tuple[_Newest, list[Late]]:
        """Read the newest metadata; return what they show, and the late rows of groups that can land."""
        head, planned = self._table.refresh(), [group.live.group for group in offered]
        self.base = head
        self._check(head)
        if head.current == self.since:
            return _Newest(self.since, untouched=planned), []
        if head.current is None or not self.leads_to(head):
            return _Newest(set_aside=dict.fromkeys(planned, SetAside.NO_HISTORY)), []
        live = inputs.at(head, head.current)
        found = {group.live.group: self._hider.find(group, live) for group in offered}
        untouched = [group for group, rows in found.items() if rows is None]
        set_aside = {group: reason for group, reason in found.items() if isinstance(reason, SetAside)}
        late = [rows for rows in found.values() if isinstance(rows, LateRows)]
        return _Newest(head.current, live, untouched, set_aside), late

    def commit(self, attempt: Attempt[StagedGroup]) -> int | None:
        """Commit one snapshot, and return its version by the metadata that the commit has left."""
        self._table.commit(attempt.base, since=self.since, summary=self.summary(attempt.groups))
        return self.version_in(self._table.head())
