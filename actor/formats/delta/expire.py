"""A Delta table as a deletion of rows by their age sees it: its commits are a DELETE."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_adds, decode_origins, json_array
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.output_paths import OutputPaths, new_prefix
from actor.formats.delta.over_rows import OverRows
from actor.formats.delta.preflight import check_files
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.read_rows import refused_sizes
from actor.formats.delta.removal_job import RemovalJob, schema_fields
from actor.formats.delta.row_removal import WrittenRemoval
from actor.formats.delta.superseded_rows import files_by_name
from actor.formats.delta.write import are_visible, logical_rows
from actor.not_wanted import own_expiry
from actor.proofread.model import Proof
from actor.row_expiry import AgedOut, ExpirySearch, RowCounts, days_over, not_all_read, portions, proofread_of
from shared.formats.delta_keys import delta_expiry_column
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE, partition_values
from shared.paths.data_paths import file_name
from shared.paths.sql_text import literal
from shared.policy.policy import Proofread
from shared.policy.row_expiry import ExpiryBound, RowExpiry
from shared.table import PartitionColumn, PartitionKey, TableMetadata
from shared.typed_json import json_object

MAX_COMMITS_READ = 1_000
"""Commits that are read at most to find the newest by others."""


@dataclass(slots=True)
class DeltaAgedTable(RemovalJob):
    """`AgedTable` of Delta."""

    @property
    def proofread(self) -> Proofread:
        """How the rows of this run are read a second time."""
        return proofread_of(self.job.policy)

    @contextmanager
    def opened(self) -> Iterator["_DeltaFilesByAge"]:
        """Open the newest version, in a session whose commits carry the mark of the job."""
        with self.log(self.job.mark()) as log:
            snapshot = log.snapshot()
            version, shape = int(snapshot.version()), log.shape(snapshot)
            # Before files are listed: a commit that is undone meanwhile must be noticed.
            yield _DeltaFilesByAge(self, log, snapshot, shape, version, log.digest(version))


@dataclass(frozen=True, slots=True)
class _DeltaFilesByAge:
    """`FilesByAge`; `digest` is of the commit whose files are listed."""

    run: RemovalJob
    log: TableLog
    snapshot: Any
    shape: TableShape
    version: int
    digest: str | None

    @property
    def metadata(self) -> TableMetadata:
        return self.shape.metadata

    def not_wanted(self) -> str:
        return self.run.not_wanted(self.shape)

    def column(self, rule: RowExpiry) -> PartitionColumn:
        return delta_expiry_column(rule, self.metadata, schema_fields(self.shape))

    def newest_by_others_ms(self) -> int:
        return newest_by_others_ms(self.log, self.version)

    def over(self, search: ExpirySearch) -> Iterable[LoggedFile]:
        columns, column, bound = self.metadata.partition_columns, search.column, search.bound
        if column in columns:
            partitions = self.log.partitions(self.snapshot, columns)
            over = days_over(self.run.job.location, partitions, column, bound)
            found = decode_adds(self.log.files(self.snapshot, _values_condition(column, over)), columns) if over else ()
            return [logged for logged in found if logged.file.partition in over]
        listed = decode_adds(self.log.files(self.snapshot, _greatest_condition(column, bound)), columns)
        return [one for one in listed if bound.covers_all(_statistics(one), column.physical)]

    def mixed(self, search: ExpirySearch) -> Iterable[LoggedFile]:
        name, bound = search.column.physical, search.bound
        if search.column in self.metadata.partition_columns:
            return ()
        condition = _least_condition(search.column, bound)
        found = decode_adds(self.log.files(self.snapshot, condition), self.metadata.partition_columns)
        known = ((one, _statistics(one)) for one in found)
        return [one for one, of in known if bound.may_cover(of, name) and not bound.covers_all(of, name)]

    def delete(self, search: ExpirySearch, files: Sequence[LoggedFile]) -> AgedOut[LoggedFile] | None:
        run, proof = self.run, None
        live, young = self._live(WHOLE_TABLE, files), list[LoggedFile]()
        if search.column not in self.metadata.partition_columns:
            young = self._young(search, files)
            live = self._live(WHOLE_TABLE, [one for one in files if one not in young])
            if live.inputs and not search.is_dry:
                proof = self._proofread(run.proofs(self.log, self.shape), search, live.inputs)
        rows = self._rows(live.inputs)
        removal = WrittenRemoval(live, (), 0, proof=proof, replaced=live.inputs, removed_rows=rows)
        if live.inputs and not search.is_dry and not self._commit(search, removal):
            return None
        return AgedOut(live.inputs, rows, young)

    def _young(self, search: ExpirySearch, files: Sequence[LoggedFile]) -> list[LoggedFile]:
        """Return the files that hold rows which are not over; raises Corrupt if Spark has not read all rows of one."""
        by_name: dict[str, list[LoggedFile]] = {}
        for one in files:
            by_name.setdefault(file_name(one.file.path).rpartition("/")[2], []).append(one)
        with refused_sizes(self.log, files):
            frame = self.log.frame(self.snapshot, self.run.scala.adds(json_array(files)))
            counts = OverRows(self.run.scala, search.column, search.bound).counts(frame)
        for name, some in by_name.items():
            found, rows = sum(counts.get(name, RowCounts())), self._rows(some)
            if found != rows and not are_visible(found, some, partial(self._read, some)):
                raise not_all_read(self.run.job.location, some[0].file.path, rows, found)
        return [one for name, some in by_name.items() if name in counts and counts[name].others for one in some]

    def _rows(self, files: Sequence[LoggedFile]) -> int:
        counted = logical_rows(files)
        return self._read(files) if counted is None else counted

    def _read(self, files: Sequence[LoggedFile]) -> int:
        return self.log.rows(self.snapshot, self.run.scala.adds(json_array(files)))

    def _commit(self, search: ExpirySearch, removal: WrittenRemoval) -> bool:
        return self.run.commit(self.run.committer(self.log, self.shape, search.bound.condition), removal)

    def _proofread(self, proofs: Proofs, search: ExpirySearch, files: Sequence[LoggedFile]) -> Proof:
        """Have all rows of files read by another reader, a bounded number at once; raises Difference if one stays."""
        name, bound = search.column.physical, search.bound.spelled
        groups = [self._live(WHOLE_TABLE, portion) for portion in portions(files)]
        return reduce(Proof.joined, [proofs.check_over(group, (), name, bound) for group in groups])

    def take_out(
        self, search: ExpirySearch, partition: PartitionKey, files: Sequence[LoggedFile]
    ) -> Mapping[LoggedFile, int] | None:
        """Write files in a session of its own, which names them."""
        run, prefix = self.run, new_prefix()
        with run.log(run.job.mark(), prefix) as log:
            snapshot = log.snapshot()
            shape = log.shape(snapshot)
            if run.not_wanted(shape) or own_expiry(run.job, shape.metadata) != search.rule:
                return None
            if delta_expiry_column(search.rule, shape.metadata, schema_fields(shape)) != search.column:
                return None
            check_files(run.job.location, [one.file for one in files])
            self._live(partition, files)
            named, over = files_by_name(files, run.job.location), OverRows(run.scala, search.column, search.bound)
            with refused_sizes(log, files):
                frame = log.frame(snapshot, run.scala.adds(json_array(files)))
                counts = {named[name]: count.over for name, count in over.counts(frame).items() if count.over}
                if counts and not search.is_dry:
                    live = self._live(partition, list(counts))
                    paths = OutputPaths(run.scala, log, snapshot, shape, prefix)
                    if not run.write_without(log, paths, snapshot, live, over, counts):
                        return None
        return counts

    def _live(self, partition: PartitionKey, files: Sequence[LoggedFile]) -> LiveGroup:
        """Return files as what a commit replaces; raises for those that must not be opened, or are live twice."""
        group = FileGroup(partition, tuple(logged.file for logged in files), RewriteMode.PURGE)
        live = LiveGroup(group, tuple(files), self.version, self.digest)
        self.run.check_live(live)
        return live


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


def _statistics(logged: LoggedFile) -> Mapping[str, Any]:
    return json_object(json.loads(logged.json).get("stats"))


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
