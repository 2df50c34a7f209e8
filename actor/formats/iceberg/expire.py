"""An Iceberg table as a deletion of rows by their age sees it: snapshots of main that delete files, or overwrite some.

Other branches and tags keep their files. Files of an identity partition of the column go by its value, others by their
metrics or by the value of a partition that is computed from the column, once all their rows were read.
"""

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

from pyspark.sql import SparkSession

from actor.formats.iceberg.inputs import InputGroup, LiveInput, known_rows
from actor.formats.iceberg.java_table import FieldBound, JavaTable
from actor.formats.iceberg.row_removal import IcebergRemovalTarget
from actor.formats.iceberg.staged import StagedGroup
from actor.formats.iceberg.write import RowRemoval, StagedWriter
from actor.not_wanted import own_expiry, reason_not_wanted
from actor.ports import TableJob, TableJobControl
from actor.proofread.model import DeleteForm, Deletes
from actor.rewrite.checks import require_free_space
from actor.rewrite.commit import Committer
from actor.rewrite.job_permission import JobPermission, commit_removal
from actor.row_expiry import AgedOut, ExpirySearch, RowCounts, days_over, not_all_read, portions, row_counts
from shared.errors import Conflict, Corrupt, Unsupported
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import COMMIT_KEY
from shared.formats.iceberg.positions import main_versions, newest_position
from shared.layout import commit_metadata
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.paths.boundary import Boundary
from shared.policy.expiry_column import TIMES, expiry_column
from shared.policy.properties import policy_digest
from shared.policy.row_expiry import ExpiryBound, RowExpiry
from shared.table import PartitionColumn, PartitionKey

_KINDS = {"timestamp": "timestamp_ntz", "timestamptz": "timestamp", "int32": "integer", "int64": "long"}
"""Types of columns by the words of a rule's bound, where they are other ones."""

_FILE, _OVER = "__lakewright_file", "__lakewright_is_over"

_DAY_ONE = datetime(1970, 1, 1)  # noqa: DTZ001 - times without a zone, in UTC where their column has one


@dataclass(slots=True)
class IcebergAgedTable:
    """`AgedTable` of Iceberg; `check` raises for a table that must not be touched, `writer` opens one for metadata."""

    table: JavaTable
    session: SparkSession
    boundary: Boundary
    job: TableJob
    control: TableJobControl
    check: Callable[[TableHead], None]
    writer: Callable[[TableHead], StagedWriter]
    reserved_disk_bytes: int
    figures: Counter[str] = field(default_factory=Counter, init=False)
    commits: list[int] = field(default_factory=list, init=False)

    @contextmanager
    def opened(self) -> Iterator["_IcebergFilesByAge"]:
        """Read the newest metadata."""
        head = self.table.refresh()
        self.check(head)
        yield _IcebergFilesByAge(self, head)

    def end(self, version: int, condition: str) -> None:
        """Commit that all rows up to this version were compared, as a snapshot that changes no data."""
        del condition  # Snapshots have no place for it that others read.
        if self.table.head().current is None:
            return
        self.control.may_change()
        mark = replace(self.job.mark(), deduplicated_version=version).encode()
        self.table.note({COMMIT_KEY: mark})
        head = self.table.refresh()
        at = main_versions(head)
        self.commits += [at[one.id] for one in head.chain() if one.summary.get(COMMIT_KEY) == mark]


class _IcebergFilesByAge:
    """`FilesByAge` of one snapshot."""

    def __init__(self, run: IcebergAgedTable, head: TableHead) -> None:
        self.version = newest_position(head).version
        self.metadata = head.metadata
        self._run = run
        self._head = head
        self._aged: dict[LiveInput, bool] | None = None

    @cached_property
    def _writer(self) -> StagedWriter:
        return self._run.writer(self._head)

    def not_wanted(self) -> str:
        return reason_not_wanted(self._run.job, self.metadata)

    def column(self, rule: RowExpiry) -> PartitionColumn:
        columns = self._writer.columns.columns
        found = [PartitionColumn(one.name, one.name, _KINDS.get(one.kind, one.kind)) for one in columns]
        specs = [self._label(spec, one) for spec in self._head.specs for one in found]
        return expiry_column(rule, found, [one for one in specs if one is not None])

    def newest_by_others_ms(self) -> int:
        own = (commit_metadata.decode(one.summary.get(COMMIT_KEY)) is not None for one in self._head.chain())
        return next((one.timestamp_ms for one, is_own in zip(self._head.chain(), own, strict=True) if not is_own), 0)

    def over(self, search: ExpirySearch) -> Iterable[LiveInput]:
        if search.column.type in TIMES:
            return [one for one, is_over in self._listed(search).items() if is_over]
        by_label: dict[PartitionColumn, list[LiveInput]] = {}
        for one in self._listed(search):
            by_label.setdefault(self._require_label(one, search.column), []).append(one)
        over = {
            partition
            for column, files in by_label.items()
            for partition in days_over(
                self._run.job.location, {one.file.partition for one in files}, column, search.bound
            )
        }
        return [one for one in self._listed(search) if one.file.partition in over]

    def mixed(self, search: ExpirySearch) -> Iterable[LiveInput]:
        if search.column.type not in TIMES:
            return ()
        return [one for one, is_over in self._listed(search).items() if not is_over]

    def _listed(self, search: ExpirySearch) -> Mapping[LiveInput, bool]:
        """Return the files that may hold rows which are over, with whether all of them are."""
        if self._aged is None:
            at = self._head.current
            ids = {one.name: one.id for one in self._writer.columns.columns}
            bound = None
            if search.column.type in TIMES:
                bound = FieldBound(ids[search.column.name] or 0, _value(search.bound))
            self._aged = {} if at is None else self._run.table.aged(self._head, at, bound)
        return self._aged

    def _label(self, spec: int, column: PartitionColumn) -> PartitionColumn | None:
        """Return a column as the identity partition of a spec, None if it is none."""
        fields = zip(self._head.specs[spec].fields, self._head.sources[spec], strict=True)
        labels = (one.label for one, source in fields if one.transform == "identity" and source == column.name)
        label = next(labels, None)
        return None if label is None else replace(column, physical=label)

    def _require_label(self, one: LiveInput, column: PartitionColumn) -> PartitionColumn:
        found = self._label(one.spec, column)
        if found is None:
            raise Unsupported(
                f"{self._run.job.location}: {one.path} is not partitioned by {column.name!r}, which "
                "lakewright.delete-rows-after names and which is no date or timestamp; no row was deleted",
                field="delete-rows-after",
            )
        return found

    def delete(self, search: ExpirySearch, files: Sequence[LiveInput]) -> AgedOut[LiveInput] | None:
        run = self._run
        run.boundary.check_files(self._head.location, [one.file for one in files])
        read = [one for one in files if self._label(one.spec, search.column) is None]
        counts = self._counts(search, read)
        self._require_all(read, counts)
        young = [one for one in read if counts[one.path].others]
        kept = {one.path for one in young}
        gone = [one for one in files if one.path not in kept]
        of_partitions = [one for one in gone if one.path not in counts]
        rows = known_rows(of_partitions)
        if rows is None:
            rows = sum(map(sum, self._counts(search, of_partitions).values()))
        rows += sum(counts[one.path].over for one in gone if one.path in counts)
        if gone and not search.is_dry:
            proven = self._proofread(search, [one for one in gone if one.path in counts])
            groups = (*proven, *self._groups(of_partitions))
            if not self._commit(self._committer(search), groups):
                return None
        return AgedOut(gone, rows, young)

    def _proofread(self, search: ExpirySearch, files: Sequence[LiveInput]) -> list[StagedGroup]:
        """Have all rows of files read by another reader, a bounded number at once; raises Difference if one stays."""
        over = _over(search)
        groups = (group for of_one in self._groups(files) for group in portions(of_one.live.inputs))
        lives = [self._group(one).live for one in groups]
        return [StagedGroup(live, (), 0, proof=self._writer.check_over(live, over)) for live in lives]

    def _groups(self, files: Sequence[LiveInput]) -> list[StagedGroup]:
        """Return files by their partitions, as groups of which nothing is left."""
        by_partition: dict[PartitionKey, list[LiveInput]] = {}
        for one in files:
            by_partition.setdefault(one.file.partition, []).append(one)
        return [self._group(of_one) for of_one in by_partition.values()]

    def _group(self, files: Sequence[LiveInput]) -> StagedGroup:
        group = FileGroup(files[0].file.partition, tuple(one.file for one in files), RewriteMode.PURGE)
        return StagedGroup(InputGroup(group, tuple(files)), (), 0)

    def take_out(
        self, search: ExpirySearch, partition: PartitionKey, files: Sequence[LiveInput]
    ) -> Mapping[LiveInput, int] | None:
        """Write files one by one, which keep the order of their rows; one of which no row is left is removed."""
        del partition
        run = self._run
        run.boundary.check_files(self._head.location, [one.file for one in files])
        counts = self._counts(search, files)
        replaced = {one: counts[one.path].over for one in files if counts[one.path].over}
        if replaced and not search.is_dry:
            size = sum(one.size_bytes for one in replaced)
            require_free_space(self._head.location, size, reserved_bytes=run.reserved_disk_bytes)
            committer, written = self._committer(search), list[StagedGroup]()  # Outputs age from here on.
            try:
                for one, count in replaced.items():
                    live = self._group([one]).live
                    removal = RowRemoval(search.bound.condition, count, _over(search))
                    written.append(self._writer.write_without(live, removal))
            except BaseException:
                run.table.delete([path for group in written for path in group.paths])
                raise
            if not self._commit(committer, written):
                return None
        return replaced

    def _counts(self, search: ExpirySearch, files: Sequence[LiveInput]) -> Mapping[str, RowCounts]:
        """Count the rows of files that readers see, by Spark, as the delete files leave them."""
        if not files:
            return {}
        table, name = self._run.table, str(uuid.uuid4())
        try:
            group = FileGroup(WHOLE_TABLE, (), RewriteMode.PURGE)
            table.stage(name, InputGroup(group, tuple(files)), is_checked=False)
            # By row: the other reader of Spark's takes milliseconds for microseconds.
            reader = self._run.session.read.format("iceberg").option("vectorization-enabled", "false")
            frame = reader.option("scan-task-set-id", name).load(name)
            # With ids of rows, a table that is read as for a rewrite has no column of files.
            over = f"coalesce({search.bound.condition}, false) AS {_OVER}"
            rows = frame.selectExpr(f"input_file_name() AS {_FILE}", over)
            counts = row_counts(map(tuple, rows.groupBy(_FILE, _OVER).count().collect()))
        finally:
            table.unstage(name)
        strange = set(counts) - {one.path for one in files}
        if strange:
            raise Corrupt(f"{self._head.location}: Spark names the file {min(strange)}, which it was not to read")
        return {one.path: counts.get(one.path, RowCounts()) for one in files}

    def _require_all(self, files: Sequence[LiveInput], counts: Mapping[str, RowCounts]) -> None:
        """Raise Corrupt if Spark has read fewer or more rows of a file than it has."""
        for one in files:
            rows, found = known_rows([one]), sum(counts[one.path])
            if rows is not None and found != rows:
                raise not_all_read(self._head.location, one.path, rows, found)

    def _commit(self, committer: Committer[StagedGroup], groups: Sequence[StagedGroup]) -> bool:
        return commit_removal(self._run, committer, groups)

    def _committer(self, search: ExpirySearch) -> Committer[StagedGroup]:
        run = self._run
        target = IcebergRemovalTarget(
            run.table, lambda head: self._require_same(head, search), self._head, run.job.mark().encode()
        )
        return Committer(target, JobPermission(run.control))

    def _require_same(self, head: TableHead, search: ExpirySearch) -> None:
        """Raise Conflict if the properties, columns or partitions are not those that rows were chosen by."""
        self._run.check(head)
        here, there = self._head, head
        is_same = (
            here.metadata.schema_digest == there.metadata.schema_digest
            and here.protocol.min_writer == there.protocol.min_writer
            and policy_digest(here.metadata.configuration) == policy_digest(there.metadata.configuration)
        )
        if not is_same or own_expiry(self._run.job, there.metadata) != search.rule:
            raise Conflict(
                f"the properties or columns of {here.location} changed while rows that are over were searched; they "
                "are searched again",
                kind="Stale",
            )


def _over(search: ExpirySearch) -> Deletes:
    return Deletes(DeleteForm.OVER, text=json.dumps([search.column.name, search.bound.spelled]))


def _value(bound: ExpiryBound) -> int:
    """Return the least value that is kept as Iceberg stores it: days or microseconds since 1970."""
    first = bound.first_kept
    if isinstance(first, datetime):
        return (first - _DAY_ONE) // timedelta(microseconds=1)
    return (first - _DAY_ONE.date()).days
