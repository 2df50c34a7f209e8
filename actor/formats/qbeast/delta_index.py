"""A Delta table with an index, in the session of one job."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from actor.formats.delta.actions import LoggedFile, json_array
from actor.formats.delta.conflicts import classify, refused
from actor.formats.delta.job_table import JobTable
from actor.formats.delta.row_tasks import LeftToSpark
from actor.formats.delta.superseded_rows import files_by_name
from actor.formats.qbeast.index_rows import FoundRange
from actor.formats.qbeast.index_table import FileRanges, IndexRewrite
from actor.formats.qbeast.index_writer import IndexWriter
from actor.formats.qbeast.placed_rows import PlacedRows
from actor.formats.qbeast.spark_rows import SparkRows
from actor.formats.qbeast.task_rows import find_task_rows
from actor.jvm.errors import first_line
from actor.jvm.sessions import USER_METADATA, changed
from actor.rewrite.model import Verdict
from shared.errors import Conflict, RetryableError
from shared.formats.qbeast.files import IndexFile
from shared.formats.qbeast.next_revision import RangedColumn, ValueRange
from shared.formats.qbeast.transformations import Coordinate
from shared.layout.commit_metadata import CommitMetadata
from shared.table import Snapshot


@dataclass(frozen=True, slots=True)
class DeltaIndex:
    """`actor.formats.qbeast.index_table.IndexTable` for one job."""

    table: JobTable

    def snapshot(self) -> Snapshot:
        """Return the newest version with all live files; raises InvalidInput where there is no table."""
        return self.table.snapshot()

    def rewrite(self, wanted: IndexRewrite, mark: CommitMetadata) -> tuple[int, Mapping[str, int]]:
        """Rewrite files that are live in the last snapshot; raises Conflict where others took one."""
        version, written = self.table.rewrite(
            self._live(wanted.files),
            lambda snapshot, tasks, proofs: IndexWriter(self.table.scala, snapshot, tasks, proofs, wanted),
            lambda _written: mark,
        )
        return version, written.figures

    def verify(self, wanted: IndexRewrite) -> int:
        """Count the rows of files that are live in the last snapshot; writes nothing.

        Raises RefusedFiles where rows are not in the blocks that the index says.
        """
        table, inputs = self.table, self._live(wanted.files)
        placed = PlacedRows(table.scala, table.log.location, wanted, self.column_types())
        found, _ = placed.proved(self._by_spark(inputs, wanted.coordinates), inputs)
        return sum(count.rows for count in found.values())

    def column_types(self) -> Mapping[str, str]:
        """Return Delta's name of the type of each column in the last snapshot; of nested ones `none`."""
        types = ((one["name"], one["type"]) for one in self.table.shape.fields)
        return {name: found if isinstance(found, str) else "none" for name, found in types}

    def ranges(
        self, files: Sequence[IndexFile], columns: Sequence[RangedColumn], zone: str
    ) -> Mapping[str, FileRanges]:
        """Return the least and greatest values of columns by the path of a file; zone: in which days begin."""
        inputs = self._live(files)
        found = self._found_ranges(inputs, tuple(Coordinate("linear", one.name, one.type) for one in columns))
        return {
            logged.file.path: self._ranges_of(found[name], columns, zone) if name in found else None
            for name, logged in files_by_name(inputs, self.table.log.location).items()
        }

    def _found_ranges(
        self, inputs: Sequence[LoggedFile], coordinates: tuple[Coordinate, ...]
    ) -> Mapping[str, Sequence[FoundRange]]:
        tasks = self.table.tasks()
        stored = tasks.format.storage(inputs)
        rows = find_task_rows(self.table.scala, tasks, coordinates, self.table.group(inputs), stored)
        if rows is not None:
            with suppress(LeftToSpark):
                return rows.ranges()
        return self._by_spark(inputs, coordinates).ranges()

    def _ranges_of(self, found: Sequence[FoundRange], columns: Sequence[RangedColumn], zone: str) -> FileRanges:
        ranges = {}
        for one, column in zip(found, columns, strict=True):
            if one["outside"]:
                return None
            low, high = one.get("low"), one.get("high")
            if low is None or high is None:
                continue
            if column.type == "DateDataType":
                low, high = self._midnight(low, zone)[0], self._midnight(high, zone)[1]
            ranges[column.name] = ValueRange(low, high)
        return ranges

    def _midnight(self, day: int, zone: str) -> tuple[int, int]:
        """Return the first and the last instant that is midnight of a day, in milliseconds."""
        resolve = self.table.scala.resolve
        found = resolve("java.time.LocalDate").ofEpochDay(day).atStartOfDay(resolve("java.time.ZoneId").of(zone))
        first = int(found.toInstant().toEpochMilli())
        return first, int(found.withLaterOffsetAtOverlap().toInstant().toEpochMilli())

    def set_properties(self, properties: Mapping[str, str], mark: CommitMetadata) -> int:
        """Set properties of the table as it is in the last snapshot; returns the version of the commit.

        Raises Conflict where others changed its metadata since, RetryableError where the outcome is not known.
        """
        log, before = self.table.log, int(self.table.found.version())
        try:
            with changed(self.table.scala, log.session, {USER_METADATA: mark.encode()}):
                return log.commit_properties(self.table.found, properties)
        except Exception as error:
            version = log.find_commit(mark.origin, since_version=before)
            if version is not None:
                return version
            if classify(error) is not Verdict.UNKNOWN:
                raise refused(error, log.location) from error
            raise RetryableError(f"{log.location}: the log shows no new revision ({first_line(error)})") from error

    def _by_spark(self, inputs: Sequence[LoggedFile], coordinates: Sequence[Coordinate]) -> SparkRows:
        table = self.table
        frame = table.log.frame(table.found, table.scala.adds(json_array(table.group(inputs).inputs)))
        return SparkRows(table.scala, coordinates, frame)

    def _live(self, files: Sequence[IndexFile]) -> list[LoggedFile]:
        """Return files as the last snapshot has them; raises Conflict where one is gone."""
        paths = {file.path for file in files}
        found = [logged for logged in self.table.live if logged.file.path in paths]
        if len(found) != len(paths):
            raise Conflict(f"others removed files of {self.table.log.location}; they are chosen again", kind="Stale")
        return found
