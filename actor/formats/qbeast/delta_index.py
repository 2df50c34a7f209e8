"""A Delta table with an index, in the session of one job."""

from collections.abc import Mapping
from dataclasses import dataclass

from actor.formats.delta.job_table import JobTable
from actor.formats.qbeast.index_job import IndexRewrite
from actor.formats.qbeast.index_writer import IndexWriter
from shared.layout.commit_metadata import CommitMetadata
from shared.table import Snapshot


@dataclass(frozen=True, slots=True)
class DeltaIndex:
    """`actor.formats.qbeast.index_job.IndexTable` for one job."""

    table: JobTable

    def snapshot(self) -> Snapshot:
        """Return the newest version with all live files; raises InvalidInput where there is no table."""
        return self.table.snapshot()

    def rewrite(self, wanted: IndexRewrite, mark: CommitMetadata) -> tuple[int, Mapping[str, int]]:
        """Rewrite files that are live in the last snapshot; raises Conflict where others took one."""
        paths = {file.path for file in wanted.files}
        version, written = self.table.rewrite(
            [logged for logged in self.table.live if logged.file.path in paths],
            lambda snapshot, tasks, proofs: IndexWriter(self.table.scala, snapshot, tasks, proofs, wanted),
            lambda _written: mark,
        )
        return version, written.figures
