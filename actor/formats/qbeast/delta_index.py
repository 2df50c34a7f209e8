"""A Delta table with an index, in the session of one job: read from its log, rewritten in one commit at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from actor.formats.delta.actions import LoggedFile, decode_adds, json_array
from actor.formats.delta.commit import DeltaTarget
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.job_permission import JobPermission
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog
from actor.formats.delta.output_paths import OutputPaths, naming, new_prefix
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.written_group import WrittenGroup
from actor.formats.parquet.classes import ParquetClasses
from actor.formats.qbeast.index_job import IndexJob, IndexRewrite
from actor.formats.qbeast.index_writer import IndexWriter
from actor.formats.qbeast.placed_rows import PlacedRows
from actor.jvm.sessions import USER_METADATA, Sessions, changed
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.proofread.proofreader import Proofreader
from actor.rewrite.checks import require_free_space, require_single_entries
from actor.rewrite.commit import Committer
from actor.rewrite.run import FILES_WRITTEN
from shared.errors import Conflict
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.paths.boundary import Boundary
from shared.table import FileKey, Snapshot

COMMIT_ATTEMPTS = 20
"""Attempts of one commit: others may append several times a second, which is no conflict."""

FILES_IN_DRIVER = 10_000
"""Live files that are listed without a Spark job, where the log permits it."""


@dataclass(slots=True)
class DeltaIndex:
    """`actor.formats.qbeast.index_job.IndexTable` for one job; `reserved_disk_bytes` stay free on a local disk."""

    scala: DeltaScala
    log: TableLog
    proofreader: Proofreader
    boundary: Boundary
    job: TableJob
    control: TableJobControl
    reserved_disk_bytes: int
    _found: Any = None
    _live: tuple[LoggedFile, ...] = ()

    def snapshot(self) -> Snapshot:
        """Return the newest version with all live files; raises InvalidInput where there is no table."""
        found = self._found = self.log.snapshot()
        shape = self.log.shape(found)
        text = self.log.few_files(found, FILES_IN_DRIVER)
        self._live = decode_adds(self.log.files(found) if text is None else text, shape.metadata.partition_columns)
        files = tuple(logged.file for logged in self._live)
        return Snapshot(int(found.version()), 0, shape.metadata, shape.protocol, files)

    def rewrite(self, wanted: IndexRewrite, mark: CommitMetadata) -> tuple[int, Mapping[str, int]]:
        """Rewrite files that are live in the last snapshot; raises Conflict where others took one."""
        live = self._found_live(wanted)
        input_bytes = sum(logged.file.size_bytes for logged in live.inputs)
        require_free_space(self.log.location, input_bytes, reserved_bytes=self.reserved_disk_bytes)
        prefix = new_prefix()
        with changed(self.scala, self.log.session, {USER_METADATA: mark.encode(), **naming(prefix)}):
            written, version = self._commit(live, wanted, prefix)
        return version, written.figures

    def verify(self, wanted: IndexRewrite) -> int:
        """Count the rows of files that are live in the last snapshot; writes nothing.

        Raises RefusedFiles where rows are not in the blocks that the index says.
        """
        live = self._found_live(wanted)
        rows = self.log.frame(self._found, self.scala.adds(json_array(live.inputs)))
        _, found = PlacedRows(self.scala, self.log, wanted).proved(rows, live.inputs)
        return sum(count.rows for count in found.values())

    def _found_live(self, wanted: IndexRewrite) -> LiveGroup:
        paths = {file.path for file in wanted.files}
        live = self._group([logged for logged in self._live if logged.file.path in paths])
        self.boundary.check_links(self.log.location, live.delete_files)
        return live

    def _group(self, inputs: Sequence[LoggedFile]) -> LiveGroup:
        files, version = tuple(logged.file for logged in inputs), int(self._found.version())
        group = FileGroup(WHOLE_TABLE, files, RewriteMode.MINOR)
        live = LiveGroup(group, tuple(inputs), version, self.log.digest(version))
        everything = LiveGroup(replace(group, files=()), self._live, version, None)
        require_single_entries(self.log.location, live, [everything])
        return live

    def _commit(self, live: LiveGroup, wanted: IndexRewrite, prefix: str) -> tuple[WrittenGroup, int]:
        log, origin = self.log, self.job.origin
        shape = log.shape(self._found)
        paths = OutputPaths(self.scala, log, self._found, shape, prefix)
        tasks = ParquetTasks(self.scala, log, paths, ParquetClasses())
        proofs = Proofs(self.proofreader, log, shape, self.job.policy.proofread, origin.job, tasks.footers)
        committer = Committer(DeltaTarget(self.scala, log, shape, origin), JobPermission(self.control))
        writer = IndexWriter(self.scala, self._found, tasks, proofs, wanted)
        try:
            written = writer.write(live)
        except BaseException:
            self._sweep(committer, paths, ())
            raise
        if writer.may_have_lost_attempts():
            self._sweep(committer, paths, written.paths)
        self.control.reached(FILES_WRITTEN)
        landed = committer.commit([written], attempts=COMMIT_ATTEMPTS)
        if landed.version is None:
            raise Conflict(
                f"others replaced files of {log.location} while they were rewritten; they are chosen again",
                kind="Stale",
            )
        return written, landed.version

    def _sweep(self, committer: Committer[WrittenGroup], paths: OutputPaths, kept: Sequence[str]) -> None:
        committer.tidy(lambda: [key.path for key in paths.leftovers(set(map(FileKey, kept)))])


def run_index_job(
    parts: tuple[DeltaScala, Sessions, Boundary, Proofreader],
    job: TableJob,
    control: TableJobControl,
    reserved_disk_bytes: int,
) -> TableJobOutcome:
    """Optimize an index in a session of its own; see `IndexJob.run` for what it raises."""
    scala, sessions, boundary, proofreader = parts
    lease = sessions.lease(tag=job.origin.job)
    with lease as owned, sessions.bound(owned) as session:
        log = TableLog(scala, session, job.location)
        table = DeltaIndex(scala, log, proofreader, boundary, job, control, reserved_disk_bytes)
        return IndexJob(table, boundary, job, control).run()
