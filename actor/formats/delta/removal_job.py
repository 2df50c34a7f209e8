"""The base of jobs that remove rows of a Delta table: sessions whose commits carry their mark, and the last commit.

The last commit of a run names the version up to which all rows were compared, from which the decider and the next run
learn where to begin; it is empty.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from actor.formats.delta.actions import LoggedFile, read_paths
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footer_reader import FooterReader
from actor.formats.delta.footers import Footers
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.output_format import OutputFormat
from actor.formats.delta.output_paths import OutputPaths, naming
from actor.formats.delta.preflight import check_table
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.row_removal import NOTHING_REMOVED, RemovalTarget, RemovalWriter, RowsToRemove, WrittenRemoval
from actor.formats.delta.written_group import WrittenGroup
from actor.jvm.scala import jvm_context
from actor.jvm.sessions import Sessions
from actor.not_wanted import reason_not_wanted
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.proofread.proofreader import Proofreader
from actor.rewrite.checks import check_identity, require_free_space, require_single_entries
from actor.rewrite.commit import Committer
from actor.rewrite.job_permission import JobPermission, commit_removal
from shared.layout.commit_metadata import CommitMetadata
from shared.paths.boundary import Boundary
from shared.policy.policy import Proofread
from shared.table import FileKey, TableMetadata


@dataclass(slots=True)
class RemovalJob:
    """One run on one table; `reserved_disk_bytes` stay free on a local disk."""

    scala: DeltaScala
    sessions: Sessions
    boundary: Boundary
    proofreader: Proofreader
    job: TableJob
    control: TableJobControl
    reserved_disk_bytes: int
    figures: Counter[str] = field(default_factory=Counter, init=False)
    commits: list[int] = field(default_factory=list, init=False)

    def outcome(self, version: int, metadata: TableMetadata, *, is_complete: bool, reason: str = "") -> TableJobOutcome:
        """Return the outcome of the run so far."""
        return TableJobOutcome(version, metadata, tuple(self.commits), dict(self.figures), is_complete, reason)

    @contextmanager
    def log(self, mark: CommitMetadata | None = None, prefix: str = "") -> Iterator[TableLog]:
        """Open the table's log in a session of its own, whose commits carry the mark, and whose files the prefix."""
        text = "" if mark is None else mark.encode()
        conf = naming(prefix) if prefix else {}
        lease = self.sessions.lease(tag=self.job.origin.job, user_metadata=text, conf=conf)
        with lease as owned, self.sessions.bound(owned) as session:
            yield TableLog(self.scala, session, self.job.location)

    def not_wanted(self, shape: TableShape) -> str:
        """Return why the job has nothing to do; raises OtherTable or Unsupported for a table not to be touched."""
        check_identity(self.job.location, shape.metadata, self.job.table_uuid)
        check_table(self.job.location, shape.metadata, shape.protocol)
        return reason_not_wanted(self.job, shape.metadata)

    def check_live(self, live: LiveGroup) -> None:
        """Raise for files that must not be opened, or are live twice."""
        data = live.group.files
        self.boundary.check_files(self.job.location, data)
        self.boundary.check_links(self.job.location, read_paths(live.inputs))
        require_single_entries(self.job.location, live, [live])

    @property
    def proofread(self) -> Proofread:
        """How the rows of this run are compared."""
        return self.job.policy.proofread

    def proofs(self, log: TableLog, shape: TableShape) -> Proofs:
        """Return what compares the rows of this run."""
        footers = FooterReader(self.scala, log)
        return Proofs(self.proofreader, log, shape, self.proofread, self.job.origin.job, footers)

    def committer(self, log: TableLog, shape: TableShape, condition: str) -> Committer[WrittenGroup]:
        """Return what commits as a DELETE under this condition, which the history shows."""
        target = RemovalTarget(self.scala, log, shape, self.job.origin)
        target.condition = condition
        return Committer(target, JobPermission(self.control))

    def write_without(
        self,
        log: TableLog,
        paths: OutputPaths,
        snapshot: Any,
        live: LiveGroup,
        rows: RowsToRemove,
        counts: Mapping[LoggedFile, int],
    ) -> bool:
        """Write the files that hold rows to remove again without them, and commit; False if others changed `live`.

        The session of the log names files by the prefix of `paths`.
        """
        replaced_bytes = sum(logged.file.size_bytes for logged in counts)
        require_free_space(log.location, replaced_bytes, reserved_bytes=self.reserved_disk_bytes)
        committer, proofs = self.committer(log, paths.shape, rows.condition), self.proofs(log, paths.shape)
        output = OutputFormat(Footers(self.scala, log, proofs.footers), paths.shape, self.job.location)
        try:
            removal = RemovalWriter(self.scala, snapshot, paths, output, proofs).write(live, rows, counts)
        except BaseException:
            _sweep(committer, paths, ())
            raise
        if len(removal.outputs) < len(counts) or not jvm_context(log.session).isLocal():
            # Of a file that lost all rows, Delta writes an empty one, and does not report it. Nor does Spark report
            # the task of a lost executor that it repeated, and the file that was begun.
            _sweep(committer, paths, removal.paths)
        return self.commit(committer, removal)

    def commit(self, committer: Committer[WrittenGroup], removal: WrittenRemoval) -> bool:
        """Commit a removal; False if others changed a file that was read for it."""
        return commit_removal(self, committer, [removal])

    def count(self, counts: Mapping[LoggedFile, int]) -> None:
        """Count the rows removed from files that are replaced."""
        self.figures["rows_removed"] += sum(counts.values())
        self.figures["files_replaced"] += len(counts)
        self.figures["bytes_replaced"] += sum(logged.file.size_bytes for logged in counts)

    def end(self, version: int, operation_condition: str) -> None:
        """Commit the version up to which all rows were compared."""
        self.control.may_change()
        with self.log(replace(self.job.mark(), deduplicated_version=version)) as log:
            txn = log.transaction()
            self.commits.append(log.commit_delete(txn, self.scala.seq(), operation_condition, NOTHING_REMOVED))


def _sweep(committer: Committer[WrittenGroup], paths: OutputPaths, kept: Sequence[str]) -> None:
    committer.tidy(lambda: [key.path for key in paths.leftovers(set(map(FileKey, kept)))])


def schema_fields(shape: TableShape) -> Sequence[Mapping[str, Any]]:
    """Return the fields of a table's schema as its log has them."""
    fields: Sequence[Mapping[str, Any]] = json.loads(json.loads(shape.metadata_json)["metaData"]["schemaString"])[
        "fields"
    ]
    return fields
