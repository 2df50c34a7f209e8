"""A Delta table in the session of one job: read from its log, rewritten in one commit at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from actor.formats.delta.actions import LoggedFile
from actor.formats.delta.caches import DeltaCaches
from actor.formats.delta.commit import DeltaTarget
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.output_paths import OutputPaths, naming, new_prefix
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.read import read_table
from actor.formats.delta.written_group import WrittenGroup
from actor.jvm.sessions import USER_METADATA, changed
from actor.ports import TableJob, TableJobControl
from actor.proofread.proofreader import Proofreader
from actor.rewrite.checks import require_free_space, require_single_entries
from actor.rewrite.commit import Committer
from actor.rewrite.job_permission import JobPermission
from actor.rewrite.run import FILES_WRITTEN
from shared.errors import Conflict
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.paths.boundary import Boundary
from shared.table import FileKey, Snapshot


class JobWriter(Protocol):
    """Writes one group of files, checked."""

    def write(self, live: LiveGroup) -> WrittenGroup:
        """Write the group's rows."""

    def may_have_lost_attempts(self) -> bool:
        """Return whether an executor may have ended that left a file."""


NewWriter = Callable[[Any, ParquetTasks, Proofs], JobWriter]
"""Makes the writer of a group out of the snapshot, and what it writes and compares with."""


@dataclass(slots=True)
class JobTable:
    """The table of one job; `reserved_disk_bytes` stay free on a local disk."""

    scala: DeltaScala
    log: TableLog
    proofreader: Proofreader
    boundary: Boundary
    job: TableJob
    control: TableJobControl
    reserved_disk_bytes: int
    caches: DeltaCaches
    found: Any = None
    """The last snapshot that was read, and its live files."""
    live: tuple[LoggedFile, ...] = ()

    @property
    def shape(self) -> TableShape:
        """The shape of the last snapshot."""
        return self.log.shape(self.found)

    def snapshot(self) -> Snapshot:
        """Return the newest version with all live files; raises InvalidInput where there is no table."""
        found = self.found = self.log.snapshot()
        shape = self.shape
        self.live = read_table(self.log, found, self.caches.reads)
        files = tuple(logged.file for logged in self.live)
        return Snapshot(int(found.version()), 0, shape.metadata, shape.protocol, files)

    def rewrite(
        self, inputs: Sequence[LoggedFile], new_writer: NewWriter, mark: Callable[[WrittenGroup], CommitMetadata]
    ) -> tuple[int, WrittenGroup]:
        """Rewrite files that are live in the last snapshot, under a mark that may say what was written.

        Returns the version of the commit, and the group. Raises Conflict where others took one of the files, and what
        the writer raises.
        """
        live = self.group(inputs)
        require_free_space(self.log.location, live.group.bytes, reserved_bytes=self.reserved_disk_bytes)
        prefix = new_prefix()
        with changed(self.scala, self.log.session, naming(prefix)):
            return self._commit(live, new_writer, mark, prefix)

    def group(self, inputs: Sequence[LoggedFile]) -> LiveGroup:
        """Return files that are live in the last snapshot as a group; raises what the boundary does of its vectors."""
        files, version = tuple(logged.file for logged in inputs), int(self.found.version())
        group = FileGroup(WHOLE_TABLE, files, RewriteMode.MINOR)
        live = LiveGroup(group, tuple(inputs), version, self.log.digest(version))
        everything = LiveGroup(replace(group, files=()), self.live, version, None)
        require_single_entries(self.log.location, live, [everything])
        self.boundary.check_links(self.log.location, live.delete_files)
        return live

    def tasks(self, prefix: str = "") -> ParquetTasks:
        """Return the tasks on files of the last snapshot; prefix: of what they write."""
        paths = OutputPaths(self.scala, self.log, self.found, self.shape, prefix)
        return ParquetTasks(self.scala, self.log, paths, self.caches)

    def _commit(
        self, live: LiveGroup, new_writer: NewWriter, mark: Callable[[WrittenGroup], CommitMetadata], prefix: str
    ) -> tuple[int, WrittenGroup]:
        log, origin, shape = self.log, self.job.origin, self.shape
        tasks = self.tasks(prefix)
        proofs = Proofs(self.proofreader, log, shape, self.job.policy.proofread, origin.job, tasks.footers)
        committer = Committer(DeltaTarget(self.scala, log, shape, origin), JobPermission(self.control))
        writer = new_writer(self.found, tasks, proofs)
        try:
            written = writer.write(live)
            user_metadata = mark(written).encode()
        except BaseException:
            self._sweep(committer, tasks.paths, ())
            raise
        if writer.may_have_lost_attempts():
            self._sweep(committer, tasks.paths, written.paths)
        self.control.reached(FILES_WRITTEN)
        with changed(self.scala, log.session, {USER_METADATA: user_metadata}):
            landed = committer.commit([written])
        if landed.version is None:
            raise Conflict(
                f"others replaced files of {log.location} while they were rewritten; they are chosen again",
                kind="Stale",
            )
        return landed.version, written

    def _sweep(self, committer: Committer[WrittenGroup], paths: OutputPaths, kept: Sequence[str]) -> None:
        committer.tidy(lambda: [key.path for key in paths.leftovers(set(map(FileKey, kept)))])
