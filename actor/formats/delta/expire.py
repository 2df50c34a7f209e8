"""Deletes files all of whose rows are older than the table's owner lets them become, as commits of a DELETE.

Where the owner says so, files that hold others as well are written again without the rows that are over.

The age of rows is measured once in a run, at the oldest of three times: the decision's, the actor's own, and the
newest commit's by others. So a clock that is ahead deletes nothing that the table's writers have not outlived.
Partitions go by their value; of other columns, files by their statistics, and only after every row of them was read and
found to be over, by Spark and by the proofreader. Each file must still be live as it was found when the commit is made:
a row that others add or change meanwhile is in another file, or makes the run search again.
"""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby, islice
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_adds, decode_origins, decode_statistics, json_array
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.output_paths import OutputPaths, new_prefix
from actor.formats.delta.over_rows import OverRows
from actor.formats.delta.preflight import check_files
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.read_rows import refused_sizes
from actor.formats.delta.removal_job import READS, RemovalJob, schema_fields
from actor.formats.delta.row_removal import WrittenRemoval
from actor.formats.delta.superseded_rows import files_by_name
from actor.formats.delta.write import logical_rows
from actor.not_wanted import own_expiry
from actor.ports import TableJobOutcome
from actor.proofread.model import Proof
from shared.errors import Conflict, RefusedFiles, Unsupported
from shared.formats.delta_expiry import expiry_column
from shared.jobs.options import ExpiryOptions
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE, partition_label, partition_values
from shared.paths.data_paths import file_name
from shared.paths.sql_text import literal
from shared.policy.partition_filter import permits
from shared.policy.row_expiry import ExpiryBound, NoDay, RowExpiry
from shared.refusals import RefusalReason
from shared.table import PartitionColumn, PartitionKey

FILES_PER_COMMIT = 1_000
"""Files that one commit removes at most."""

FILES_WRITTEN = 64
"""Files that one commit writes again at most."""

ROWS_AT_ONCE = 5_000_000
"""Rows whose places the proofreader notes at once: some 100 MB."""

MAX_COMMITS_READ = 1_000
"""Commits that are read at most to find the newest by others."""

NAMED = 20
"""Files or partitions that a dry run names."""

NOT_ASKED = "the table's own properties ask for no deletion of rows by their age"
NO_TIME = "no commit of others says when it was made, so the age of rows is not known: nothing was deleted"


@dataclass(frozen=True, slots=True)
class _ExpirySearch:
    """A search for rows that are over, with the version and digest of the commit whose files are listed."""

    version: int
    digest: str | None
    rule: RowExpiry
    column: PartitionColumn
    bound: ExpiryBound
    is_dry: bool

    def is_mixed(self, statistics: Mapping[str, Any]) -> bool:
        """Return whether a file may hold rows that are over, and others."""
        name = self.column.physical
        return self.bound.may_cover(statistics, name) and not self.bound.covers_all(statistics, name)


@dataclass(slots=True)
class ExpiryJob(RemovalJob):
    """One run on one table."""

    _now_ms: int | None = field(default=None, init=False)
    _young: list[str] = field(default_factory=list, init=False)
    _named: list[LoggedFile] = field(default_factory=list, init=False)

    def run(self) -> TableJobOutcome:
        """Delete what is over. Raises Unsupported for a table whose rows must not be deleted, or have no ages."""
        for _ in range(READS):
            self._young.clear()
            done = self._pass(ExpiryOptions.decode(self.job.options))
            if done is not None:
                return done
            self.figures["conflicts"] += 1
        raise Conflict(
            f"others changed files of {self.job.location} each of {READS} times before the deletion of rows that are "
            "over could be committed; it is tried again later",
            kind="Stale",
        )

    def _pass(self, options: ExpiryOptions) -> TableJobOutcome | None:
        """Search what is over, and delete it; None if others changed one of the files before a commit."""
        with self.log(self.mark) as log:
            snapshot = log.snapshot()
            version, shape = int(snapshot.version()), log.shape(snapshot)
            digest = log.digest(version)  # Before files are listed: a commit that is undone meanwhile must be noticed.
            reason = self.not_wanted(shape)
            rule = None if reason else own_expiry(self.job, shape.metadata)
            if rule is None:
                return TableJobOutcome(version, shape.metadata, reason=reason or NOT_ASKED)
            column = expiry_column(rule, shape.metadata, schema_fields(shape))
            if self._now_ms is None:
                self._now_ms = min(options.decided_ms, time.time_ns() // 1_000_000, newest_by_others_ms(log, version))
            bound = replace(rule, column=column.name).bound(column.type, self._now_ms)
            search = _ExpirySearch(version, digest, rule, column, bound, options.dry_run)
            files = self._find(log, snapshot, shape, search)
            for start, batch in enumerate(_batches(files, FILES_PER_COMMIT)):
                self.control.reached("deleting", start * FILES_PER_COMMIT, len(files))
                if self.control.should_stop():
                    return self.outcome(version, shape.metadata, is_complete=False)
                if not self._delete(log, snapshot, shape, search, batch):
                    return None
        if rule.with_rows and column not in shape.metadata.partition_columns:
            done = self._take_out(search)
            if not done:
                return None if done is None else self.outcome(version, shape.metadata, is_complete=False)
        self._require_old()
        reason = NO_TIME if not self._now_ms else ""
        if options.dry_run:
            # What was only counted satisfies no request.
            return self.outcome(-1, shape.metadata, is_complete=True, reason=reason or _named(self._named, bound))
        self.end(replace(self.mark, deduplicated_version=version), bound.condition)
        return self.outcome(version, shape.metadata, is_complete=True, reason=reason)

    def _find(self, log: TableLog, snapshot: Any, shape: TableShape, search: _ExpirySearch) -> list[LoggedFile]:
        """Return the files that are over by the log alone, sorted by partition and path."""
        columns, column, bound = shape.metadata.partition_columns, search.column, search.bound
        if column in columns:
            over = self._partitions(log.partitions(snapshot, columns), column, bound)
            found = decode_adds(log.files(snapshot, _values_condition(column, over)), columns) if over else ()
            return self._permitted((logged for logged in found if logged.file.partition in over), columns)
        listed = decode_adds(log.files(snapshot, _greatest_condition(column, bound)), columns)
        return self._permitted((one for one in listed if bound.covers_all(_statistics(one), column.physical)), columns)

    def _permitted(self, files: Iterable[LoggedFile], columns: Sequence[PartitionColumn]) -> list[LoggedFile]:
        kept = self.job.policy.filter
        permitted = (logged for logged in files if permits(kept, logged.file.partition, columns))
        return sorted(permitted, key=lambda logged: (logged.file.partition, logged.file.path))

    def _partitions(
        self, partitions: frozenset[PartitionKey], column: PartitionColumn, bound: ExpiryBound
    ) -> frozenset[PartitionKey]:
        try:
            return frozenset(one for one in partitions if bound.covers(partition_values(one)[column.physical]))
        except NoDay as value:
            raise Unsupported(
                f"{self.job.location}: the partition column {column.name!r}, which lakewright.delete-rows-after names, "
                f"has the value {str(value)!r}, which is no day such as 2026-01-31 or 20260131; no row was deleted",
                field="delete-rows-after",
            ) from value

    def _delete(
        self, log: TableLog, snapshot: Any, shape: TableShape, search: _ExpirySearch, files: Sequence[LoggedFile]
    ) -> bool:
        """Delete files; False if others changed one of them. Those of which a row that is read is not over stay."""
        column, bound, proof = search.column, search.bound, None
        live = self._live(search, WHOLE_TABLE, files)
        if column not in shape.metadata.partition_columns:
            with refused_sizes(log, files):
                frame = log.frame(snapshot, self.scala.adds(json_array(files)))
                young = OverRows(self.scala, column, bound).counts(frame, over=False)
            kept = [one for one in files if file_name(one.file.path).rpartition("/")[2] in young]
            self._young += [one.file.path for one in kept]
            live = self._live(search, WHOLE_TABLE, [one for one in files if one not in kept])
            if live.inputs and not search.is_dry:
                proof = self._proofread(self.proofs(log, shape), search, live.inputs)
        counted = logical_rows(live.inputs)
        rows = log.rows(snapshot, self.scala.adds(json_array(live.inputs))) if counted is None else counted
        removal = WrittenRemoval(live, (), 0, proof=proof, replaced=live.inputs, removed_rows=rows)
        if live.inputs and not search.is_dry and not self.commit(self.committer(log, shape, bound.condition), removal):
            return False
        self.figures["rows_removed"] += rows
        self.figures["files_removed"] += len(live.inputs)
        self.figures["bytes_removed"] += sum(logged.file.size_bytes for logged in live.inputs)
        self.control.measured(self.figures)
        self._named += live.inputs
        return True

    def _proofread(self, proofs: Proofs, search: _ExpirySearch, files: Sequence[LoggedFile]) -> Proof:
        """Have all rows of files read by another reader, a bounded number at once; raises Difference if one stays."""
        name, bound = search.column.physical, search.bound.spelled
        groups = [self._live(search, WHOLE_TABLE, portion) for portion in _portions(files)]
        return reduce(Proof.joined, [proofs.check_over(group, (), name, bound) for group in groups])

    def _take_out(self, search: _ExpirySearch) -> bool | None:
        """Write files that hold rows which are over without them; False if the job is to stop, None after a conflict.

        The session of a commit names its files, so each has one of its own.
        """
        with self.log() as log:
            snapshot = log.snapshot()
            version = int(snapshot.version())
            search = replace(search, version=version, digest=log.digest(version))
            columns = log.shape(snapshot).metadata.partition_columns
            found = decode_adds(log.files(snapshot, _least_condition(search.column, search.bound)), columns)
        mixed = self._permitted((one for one in found if search.is_mixed(_statistics(one))), columns)
        by_partition = groupby(mixed, key=lambda one: one.file.partition)
        batches = [(part, batch) for part, files in by_partition for batch in _batches(files, FILES_WRITTEN)]
        for number, (partition, batch) in enumerate(batches):
            self.control.reached("taking out", number, len(batches))
            if self.control.should_stop():
                return False
            if not self._take_out_of(search, partition, batch):
                return None
        return True

    def _take_out_of(self, search: _ExpirySearch, partition: PartitionKey, files: Sequence[LoggedFile]) -> bool:
        """Write files of one partition without the rows that are over; False if others changed one of them."""
        prefix = new_prefix()
        with self.log(self.mark, prefix) as log:
            snapshot = log.snapshot()
            shape = log.shape(snapshot)
            if self.not_wanted(shape) or own_expiry(self.job, shape.metadata) != search.rule:
                return False
            if expiry_column(search.rule, shape.metadata, schema_fields(shape)) != search.column:
                return False
            check_files(self.job.location, [one.file for one in files])
            self._live(search, partition, files)
            named, over = files_by_name(files, self.job.location), OverRows(self.scala, search.column, search.bound)
            with refused_sizes(log, files):
                frame = log.frame(snapshot, self.scala.adds(json_array(files)))
                counts = {named[name]: count for name, count in over.counts(frame, over=True).items()}
                if counts and not search.is_dry:
                    live = self._live(search, partition, list(counts))
                    paths = OutputPaths(self.scala, log, snapshot, shape, prefix)
                    if not self.write_without(log, paths, snapshot, live, over, counts):
                        return False
        self.count(counts)
        self.control.measured(self.figures)
        self._named += counts
        return True

    def _live(self, search: _ExpirySearch, partition: PartitionKey, files: Sequence[LoggedFile]) -> LiveGroup:
        """Return files as what a commit replaces; raises for those that must not be opened, or are live twice."""
        group = FileGroup(partition, tuple(logged.file for logged in files), RewriteMode.PURGE)
        live = LiveGroup(group, tuple(files), search.version, search.digest)
        self.check_live(live)
        return live

    def _require_old(self) -> None:
        """Raise RefusedFiles for files that hold rows which are newer than their statistics say."""
        if self._young:
            raise RefusedFiles(
                f"{self._young[0]} of {self.job.location} ({len(self._young)} such files) holds rows that are newer "
                "than its statistics say, or have no time: these files were not deleted; write them again",
                reason=RefusalReason.DAMAGED,
                files=tuple(self._young),
            )


def newest_by_others_ms(log: TableLog, version: int) -> int:
    """Return when the newest commit was made that is not ours, in milliseconds since 1970, 0 if none says so."""
    for one in range(version, max(-1, version - MAX_COMMITS_READ), -1):
        commit = log.commit_file(one)
        if commit is None:
            break
        info: dict[str, Any] = next((action["commitInfo"] for action in commit.actions if "commitInfo" in action), {})
        times = (info.get(name) for name in ("inCommitTimestamp", "timestamp"))
        known = next((found for found in times if type(found) is int and found > 0), None)
        if known is not None and not decode_origins(info.get("userMetadata")):
            return known
    return 0


def _batches(files: Iterable[LoggedFile], size: int) -> Iterator[list[LoggedFile]]:
    left = iter(files)
    while batch := list(islice(left, size)):
        yield batch


def _portions(files: Iterable[LoggedFile]) -> Iterator[list[LoggedFile]]:
    """Yield files with at most so many rows as are compared at once, or one that has more, or does not say."""
    portion, rows = list[LoggedFile](), 0
    for one in files:
        more = ROWS_AT_ONCE if one.file.rows is None else one.file.rows
        if portion and rows + more > ROWS_AT_ONCE:
            yield portion
            portion, rows = [], 0
        portion.append(one)
        rows += more
    yield portion


def _statistics(logged: LoggedFile) -> Mapping[str, Any]:
    return decode_statistics(json.loads(logged.json).get("stats"))


def _values_condition(column: PartitionColumn, partitions: frozenset[PartitionKey]) -> str:
    """Return an SQL condition on `add` fields that holds for all files of partitions; they alone are decided by key."""
    if column.type in ("timestamp", "timestamp_ntz"):
        return ""  # One instant has several spellings.
    values = {partition_values(one)[column.physical] for one in partitions}
    return f"partitionValues[{literal(column.physical)}] IN ({', '.join(sorted(literal(str(one)) for one in values))})"


def _greatest_condition(column: PartitionColumn, bound: ExpiryBound) -> str:
    """Return an SQL condition on `add` fields that holds for all files that may be over by their statistics.

    It compares days as texts; the offset of a zone changes a day by one at most.
    """
    return _day_condition("maxValues", column, bound)


def _least_condition(column: PartitionColumn, bound: ExpiryBound) -> str:
    """Return an SQL condition on `add` fields that holds for all files that may hold rows which are over."""
    return f"coalesce({_day_condition('minValues', column, bound)}, true)"


def _day_condition(section: str, column: PartitionColumn, bound: ExpiryBound) -> str:
    place = f"$['{section}']['{column.physical}']"
    return f"substring(get_json_object(stats, {literal(place)}), 1, 10) <= '{bound.last_day.isoformat()}'"


def _named(files: Sequence[LoggedFile], bound: ExpiryBound) -> str:
    """Return what a run would delete: partitions with their files, or files of a table without partitions."""
    counts = Counter(
        one.file.path if one.file.partition == WHOLE_TABLE else partition_label(one.file.partition) for one in files
    )
    texts = sorted(f"{name} ({count})" if count > 1 else name for name, count in counts.items())
    more = [f"and {len(texts) - NAMED} more"] if len(texts) > NAMED else []
    where = f"files with rows of {bound.condition}: {len(files)}"
    return ", namely ".join(filter(None, (where, ", ".join([*texts[:NAMED], *more]))))
