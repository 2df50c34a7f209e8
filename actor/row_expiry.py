"""Deletes files all of whose rows are older than the table's owner lets them become; one run on one table.

Where the owner says so, files that hold others as well are written again without the rows that are over.

The age of rows is measured once in a run, at the oldest of three times: the decision's, the actor's own, and the
newest commit's by others. So a clock that is ahead deletes nothing that the table's writers have not outlived.
Partitions go by their value; of other columns, files by their statistics, and only after every row of them was read and
found to be over, by Spark and by the proofreader. Each file must still be live as it was found when the commit is made:
a row that others add or change meanwhile is in another file, or makes the run search again.

What a format does is behind `AgedTable`: it lists files, reads them, and commits.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from typing import Generic, NamedTuple, Protocol, TypeVar

from actor.attempts import READS
from actor.not_wanted import may_lose_rows, own_expiry
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.rewrite.model import PlacedFile
from shared.errors import Conflict, Corrupt, RefusedFiles, Unsupported
from shared.jobs.options import ExpiryOptions
from shared.partitions import WHOLE_TABLE, partition_label, partition_values
from shared.policy.policy import Policy, Proofread
from shared.policy.properties import policy_digest
from shared.policy.row_expiry import ExpiryBound, NoDay, RowExpiry
from shared.refusals import RefusalReason
from shared.table import PartitionColumn, PartitionKey, TableMetadata

FILES_PER_COMMIT = 1_000
"""Files that one commit removes at most."""

FILES_WRITTEN = 64
"""Files that one commit writes again at most."""

ROWS_AT_ONCE = 5_000_000
"""Rows whose places the proofreader notes at once: some 100 MB."""

NAMED = 20
"""Files or partitions that a dry run names."""

NOT_ASKED = "the table's own properties ask for no deletion of rows by their age"
NO_TIME = "no commit of others says when it was made, so the age of rows is not known: nothing was deleted"

F = TypeVar("F", bound=PlacedFile)


@dataclass(frozen=True, slots=True)
class ExpirySearch:
    """Search for rows that are over, by a rule, in a column, before a bound. is_dry: they are only counted."""

    rule: RowExpiry
    column: PartitionColumn
    bound: ExpiryBound
    is_dry: bool


@dataclass(frozen=True, slots=True)
class AgedOut(Generic[F]):
    """Files that one commit removed, or would, with the rows that readers saw; `young` hold newer rows, and stay."""

    files: Sequence[F]
    rows: int
    young: Sequence[F] = ()


class RowCounts(NamedTuple):
    """Rows of a file that readers see, by whether they are over."""

    over: int = 0
    others: int = 0


class FilesByAge(Protocol[F]):
    """A table as of one version, whose files are found by the metadata alone.

    Once it is no longer open, `take_out` is all that may be called.
    """

    @property
    def version(self) -> int:
        """The version."""

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata in it."""

    def not_wanted(self) -> str:
        """Return why the job has nothing to do; raises OtherTable or Unsupported for a table not to be touched."""

    def column(self, rule: RowExpiry) -> PartitionColumn:
        """Return the column of a rule; raises Unsupported where rows must not be deleted by it."""

    def newest_by_others_ms(self) -> int:
        """Return when the newest commit was made that is not ours, in ms since 1970, 0 if none says so."""

    def over(self, search: ExpirySearch) -> Iterable[F]:
        """Return the files that are over by the metadata."""

    def mixed(self, search: ExpirySearch) -> Iterable[F]:
        """Return the files that may hold rows that are over, and others."""

    def delete(self, search: ExpirySearch, files: Sequence[F]) -> AgedOut[F] | None:
        """Remove files, those not whose rows, once read, are not all over; None if others changed one of them."""

    def take_out(self, search: ExpirySearch, partition: PartitionKey, files: Sequence[F]) -> Mapping[F, int] | None:
        """Write files of one partition that hold rows which are over again, without them; returns how many.

        None if others changed one of the files, the rule or its column.
        """


class AgedTable(Protocol[F]):
    """The table of a run; `figures` and `commits` are of all that was done so far."""

    figures: Counter[str]
    commits: list[int]

    def opened(self) -> AbstractContextManager[FilesByAge[F]]:
        """Open the newest version."""

    def end(self, version: int, condition: str) -> None:
        """Commit that all rows up to this version were compared; `condition` is what of them is over."""


@dataclass(slots=True)
class ExpiryJob(Generic[F]):
    """One run on one table."""

    table: AgedTable[F]
    job: TableJob
    control: TableJobControl
    _now_ms: int | None = field(default=None, init=False)
    _young: list[str] = field(default_factory=list, init=False)
    _named: list[F] = field(default_factory=list, init=False)

    def run(self) -> TableJobOutcome:
        """Delete what is over. Raises Unsupported for a table whose rows must not be deleted, or have no ages."""
        for _ in range(READS):
            self._young.clear()
            done = self._pass(ExpiryOptions.decode(self.job.options))
            if done is not None:
                return done
            self.table.figures["conflicts"] += 1
        raise Conflict(
            f"others changed files of {self.job.location} each of {READS} times before the deletion of rows that are "
            "over could be committed; it is tried again later",
            kind="Stale",
        )

    def _pass(self, options: ExpiryOptions) -> TableJobOutcome | None:
        """Search what is over, and delete it; None if others changed one of the files before a commit."""
        with self.table.opened() as listed:
            version, metadata = listed.version, listed.metadata
            reason = listed.not_wanted()
            rule = None if reason else own_expiry(self.job, metadata)
            if rule is None:
                return TableJobOutcome(version, metadata, reason=reason or NOT_ASKED)
            column = listed.column(rule)
            if self._now_ms is None:
                self._now_ms = min(options.decided_ms, time.time_ns() // 1_000_000, listed.newest_by_others_ms())
            bound = replace(rule, column=column.name).bound(column.type, self._now_ms)
            search = ExpirySearch(rule, column, bound, options.dry_run)
            files = self._permitted(listed.over(search), metadata) if self._now_ms else []
            for start, batch in enumerate(_batches(files, FILES_PER_COMMIT)):
                self.control.reached("deleting", start * FILES_PER_COMMIT, len(files))
                if self.control.should_stop():
                    return self._outcome(version, metadata, is_complete=False)
                done = listed.delete(search, batch)
                if done is None:
                    return None
                self._count(done)
        if rule.with_rows and self._now_ms:
            taken = self._take_out(search, metadata)
            if not taken:
                return None if taken is None else self._outcome(version, metadata, is_complete=False)
        self._require_old()
        reason = NO_TIME if not self._now_ms else ""
        if options.dry_run:
            # What was only counted satisfies no request.
            return self._outcome(-1, metadata, is_complete=True, reason=reason or _named(self._named, bound))
        self.table.end(version, bound.condition)
        return self._outcome(version, metadata, is_complete=True, reason=reason)

    def _permitted(self, files: Iterable[F], metadata: TableMetadata) -> list[F]:
        columns, now_ms = metadata.partition_columns, time.time_ns() // 1_000_000
        permitted = (one for one in files if may_lose_rows(self.job, one.file.partition, columns, now_ms))
        return sorted(permitted, key=lambda one: (one.file.partition, one.file.path))

    def _count(self, done: AgedOut[F]) -> None:
        figures = self.table.figures
        self._young += [one.file.path for one in done.young]
        figures["rows_removed"] += done.rows
        figures["files_removed"] += len(done.files)
        figures["bytes_removed"] += sum(one.file.size_bytes for one in done.files)
        self.control.measured(figures)
        self._named += done.files

    def _take_out(self, search: ExpirySearch, searched: TableMetadata) -> bool | None:
        """Write files without their rows that are over; False if the job is to stop, None after a conflict.

        searched: the table as the search found it; another rule, column, filter or switch is a conflict.
        """
        with self.table.opened() as listed:
            is_same = policy_digest(listed.metadata.configuration) == policy_digest(searched.configuration)
            if not is_same or listed.column(search.rule) != search.column:
                return None
            mixed = self._permitted(listed.mixed(search), listed.metadata)
        by_partition = groupby(mixed, key=lambda one: one.file.partition)
        batches = [(part, batch) for part, files in by_partition for batch in _batches(files, FILES_WRITTEN)]
        figures = self.table.figures
        for number, (partition, batch) in enumerate(batches):
            self.control.reached("taking_out", number, len(batches))
            if self.control.should_stop():
                return False
            counts = listed.take_out(search, partition, batch)
            if counts is None:
                return None
            figures["rows_removed"] += sum(counts.values())
            figures["files_replaced"] += len(counts)
            figures["bytes_replaced"] += sum(one.file.size_bytes for one in counts)
            self.control.measured(figures)
            self._named += counts
        return True

    def _outcome(
        self, version: int, metadata: TableMetadata, *, is_complete: bool, reason: str = ""
    ) -> TableJobOutcome:
        done = self.table
        return TableJobOutcome(version, metadata, tuple(done.commits), dict(done.figures), is_complete, reason)

    def _require_old(self) -> None:
        """Raise RefusedFiles for files that hold rows which are newer than their statistics say."""
        if self._young:
            raise RefusedFiles(
                f"{self._young[0]} of {self.job.location} ({len(self._young)} such files) holds rows that are newer "
                "than its statistics say, or have no time: these files were not deleted; write them again",
                reason=RefusalReason.DAMAGED,
                files=tuple(self._young),
            )


def row_counts(rows: Iterable[tuple[str, bool, int]]) -> Mapping[str, RowCounts]:
    """Return the counts of files from their names, whether rows are over, and how many are; files without any lack."""
    counts: dict[str, RowCounts] = {}
    for name, is_over, count in rows:
        over, others = counts.get(name, RowCounts())
        counts[name] = RowCounts(over + count, others) if is_over else RowCounts(over, others + count)
    return counts


def not_all_read(location: str, path: str, rows: int, found: int) -> Corrupt:
    """Return the error of a file of which Spark has read fewer or more rows than it has."""
    return Corrupt(f"{location}: {path} has {rows} rows, and Spark read {found}; none of them was deleted")


def proofread_of(policy: Policy) -> Proofread:
    """Return how rows that are to be deleted are read a second time: files that cannot be are refused, unless never."""
    return Proofread.NEVER if policy.proofread is Proofread.NEVER else Proofread.STRICT


def days_over(
    location: str, partitions: Iterable[PartitionKey], column: PartitionColumn, bound: ExpiryBound
) -> frozenset[PartitionKey]:
    """Return the partitions that are over by their value of a column.

    Raises Unsupported if one of them has a value that is no day, for then the others may be none either.
    """
    try:
        return frozenset(one for one in partitions if bound.covers(partition_values(one)[column.physical]))
    except NoDay as value:
        raise Unsupported(
            f"{location}: the partition column {column.name!r}, which lakewright.delete-rows-after names, "
            f"has the value {str(value)!r}, which is no day such as 2026-01-31 or 20260131; no row was deleted",
            field="delete-rows-after",
        ) from value


def portions(files: Iterable[F]) -> Iterator[list[F]]:
    """Yield files with at most so many rows as are compared at once, or one that has more, or does not say."""
    portion, rows = list[F](), 0
    for one in files:
        more = ROWS_AT_ONCE if one.file.rows is None else one.file.rows
        if portion and rows + more > ROWS_AT_ONCE:
            yield portion
            portion, rows = [], 0
        portion.append(one)
        rows += more
    yield portion


def _batches(files: Iterable[F], size: int) -> Iterator[list[F]]:
    left = iter(files)
    while batch := list(islice(left, size)):
        yield batch


def _named(files: Sequence[PlacedFile], bound: ExpiryBound) -> str:
    """Return what a run would delete: partitions with their files, or files of a table without partitions."""
    counts = Counter(
        one.file.path if one.file.partition == WHOLE_TABLE else partition_label(one.file.partition) for one in files
    )
    texts = sorted(f"{name} ({count})" if count > 1 else name for name, count in counts.items())
    more = [f"and {len(texts) - NAMED} more"] if len(texts) > NAMED else []
    where = f"files with rows of {bound.condition}: {len(files)}"
    return ", namely ".join(filter(None, (where, ", ".join([*texts[:NAMED], *more]))))
