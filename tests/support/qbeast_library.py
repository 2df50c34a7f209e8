"""Qbeast's library in memory, on a simulated table: it does as it is told, or what the real one may do wrong."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from actor.formats.qbeast.index_commit import IndexCommit, RemovedIndexFile
from actor.formats.qbeast.index_job import LibraryCall
from shared.formats.qbeast.iterations import Iteration, Strategy
from shared.layout import commit_metadata
from shared.table import PartitionColumn, Snapshot, TableMetadata, TableProtocol
from tests.support.qbeast_tree import QbeastTree, configuration


@dataclass
class MemoryLibrary:
    """`actor.formats.qbeast.index_job.IndexLibrary`; `properties` are the table's beside those of the index.

    before and after: what others do around each rewrite. damage: what becomes of the commit that the log shows.
    fails: raised after the commit. ignores: the library does nothing.
    """

    tree: QbeastTree
    properties: dict[str, str] = field(default_factory=dict)
    protocol: TableProtocol = field(default_factory=lambda: TableProtocol(1, 2))
    partition_columns: tuple[PartitionColumn, ...] = ()
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None
    damage: Callable[[IndexCommit], Sequence[IndexCommit]] = lambda commit: (commit,)
    fails: Exception | None = None
    ignores: bool = False
    calls: list[LibraryCall] = field(default_factory=list)
    marks: dict[int, str] = field(default_factory=dict)

    def snapshot(self) -> Snapshot:
        found = self.tree.snapshot()
        settings = {**configuration(self.tree.cube_size), **self.properties}
        return replace(found, metadata=TableMetadata("u", self.partition_columns, settings), protocol=self.protocol)

    def optimize(self, call: LibraryCall) -> None:
        self.calls.append(call)
        self.before()
        if not self.ignores:
            files = tuple(file for file in self.tree.read().files if file.path in set(call.paths))
            missing = len(call.paths) - len(files)
            # A path that is gone makes the tree refuse; its name alone is enough for that.
            wanted = files if not missing else (*files, replace(files[0], path="gone"))
            self.tree.optimize(Iteration(Strategy.LEVELED, wanted))
            mark = commit_metadata.decode(call.user_metadata)
            self.marks[self.tree.version] = "" if mark is None else mark.write_id
        self.after()
        if self.fails is not None:
            raise self.fails

    def commits(self, after: int) -> Sequence[IndexCommit]:
        found: list[IndexCommit] = []
        for commit in self.tree.commits:
            if commit.version <= after:
                continue
            gone = tuple(RemovedIndexFile(file.path, file.size_bytes or 0) for file in commit.removed)
            one = IndexCommit(commit.version, self.marks.get(commit.version, ""), commit.added, gone)
            found += self.damage(one) if one.write_id else (one,)
        return found
