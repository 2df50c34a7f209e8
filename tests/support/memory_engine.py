"""A table engine without a table: versions and files in memory, so that the worker's control flow is tested alone."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count

from actor.ports import (
    Control,
    EngineDeath,
    GroupOutcome,
    GroupStatus,
    LivePartition,
    RewriteOutcome,
    RewriteRequest,
    TableJob,
    TableJobControl,
    TableJobOutcome,
)
from shared.errors import OtherTable, RefusedFiles, RetryableError, Unsupported
from shared.formats.delta import FORMAT
from shared.layout import commit_metadata
from shared.layout.planner import FileGroup
from shared.partitions import WHOLE_TABLE
from shared.refusals import RefusalReason
from shared.table import CommitOrigin, DataFile, PartitionKey, TableMetadata, TableProtocol


class MemoryEngine:
    """Implements `actor.ports.TableEngine` for one table; `before_commit` plays the other writers.

    `broken`: partitions of which no group can be written, with what a rewrite then raises.
    """

    format = FORMAT
    table_kinds: tuple[str, ...] = ()

    def __init__(self, sizes: Iterable[int] = ()) -> None:
        self.version = 0
        self.files: dict[str, DataFile] = {}
        self.origins: dict[int, CommitOrigin] = {}
        self.signed: dict[int, tuple[CommitOrigin, ...]] = {}
        self.marks: dict[int, commit_metadata.CommitMetadata] = {}
        self.broken: dict[PartitionKey, Exception] = {}
        self.before_commit: Callable[[], None] = lambda: None
        self.left: RefusedFiles | None = None
        self.after_commit: Callable[[], None] = lambda: None
        self.cancelled = threading.Event()
        self.refusal: str | None = None
        self.refused_field = ""
        self.table_uuid = "t"
        self.configuration: dict[str, str] = {}
        self.alive = True
        self.death: EngineDeath | None = EngineDeath("killed by SIGKILL (9)")
        self.group_counts: list[int] = []
        self.reads = 0
        self.table_jobs: list[TableJob] = []
        self.refuses: Callable[[DataFile], bool] = lambda _: False
        self.attempts: list[tuple[str, ...]] = []  # Files of the groups that were refused, each time.
        self.schema_digest = ""
        self.unreadable: set[str] = set()  # Groups with one of these files fail if others can be written.
        self._names = count()
        self._lock = threading.RLock()
        self.append(sizes)

    def append(self, sizes: Iterable[int], partition: PartitionKey = WHOLE_TABLE) -> int:
        with self._lock:
            for size in sizes:
                name = f"f{next(self._names)}"
                self.files[name] = DataFile(name, size, partition, rows=size)
            self.version += 1
            return self.version

    def remove(self, path: str) -> None:
        with self._lock:
            del self.files[path]
            self.version += 1

    def cancel(self, job: str) -> None:
        self.cancelled.set()

    def read_partition(self, location: str, partition: PartitionKey, *, table_uuid: str = "") -> LivePartition:
        if table_uuid not in ("", self.table_uuid):
            raise OtherTable(f"{location} holds the table {self.table_uuid}, not {table_uuid}", field="table_uuid")
        if self.refusal:
            raise Unsupported(self.refusal, field=self.refused_field)
        with self._lock:
            self.reads += 1
            return LivePartition(
                self.version,
                TableMetadata(self.table_uuid, (), self.configuration, schema_digest=self.schema_digest),
                TableProtocol(1, 2),
                tuple(file for file in self.files.values() if file.partition == partition),
            )

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        self.group_counts.append(len(request.groups))
        started = []
        for group in request.groups:
            if started and control.should_stop():
                break
            started.append(group)
        if broken := next((self.broken[g.partition] for g in started if g.partition in self.broken), None):
            raise broken
        all_started, started, refused = started, *self._without_refused(started)
        if refused and not started:
            skipped = [GroupOutcome(g, GroupStatus.SKIPPED) for g in request.groups if g not in all_started]
            return RewriteOutcome(None, (*refused, *skipped), 1, 1)
        control.reached("files_written")
        self.before_commit()
        control.may_commit()
        with self._lock:
            failed = [group for group in started if any(file.path in self.unreadable for file in group.files)]
            if failed and failed == started:
                raise RetryableError("a file cannot be read")
            live = [group for group in started if all(file.path in self.files for file in group.files)]
            outcomes = [GroupOutcome(g, GroupStatus.CONFLICTED) for g in started if g not in live]
            live = [group for group in live if group not in failed]
            error = RetryableError("a file cannot be read")
            outcomes += [GroupOutcome(g, GroupStatus.FAILED, error=error) for g in failed]
            outcomes += [GroupOutcome(g, GroupStatus.SKIPPED) for g in request.groups if g not in all_started]
            for group in live:
                for file in group.files:
                    del self.files[file.path]
                name = f"r{next(self._names)}"
                new = DataFile(name, group.bytes, group.partition, rows=group.bytes, tags=group.tags)
                new = replace(new, spelling=group.files[0].spelling)
                self.files[new.path] = new
                outcomes.append(GroupOutcome(group, GroupStatus.COMMITTED, (new,), group.bytes))
            if live:
                self.version += 1
                mark = commit_metadata.decode(request.user_metadata)
                assert mark is not None
                self.origins[self.version], self.signed[self.version] = mark.origin, mark.origins
                self.marks[self.version] = mark
            version = self.version if live else None
        if version is not None:
            control.reached("committed")
            self.after_commit()
        follows, conflicts = version and version - 1, len(started) - len(live) - len(failed)
        return RewriteOutcome(version, (*outcomes, *refused), 1, 1, conflicts, follows)

    def _without_refused(self, groups: list[FileGroup]) -> tuple[list[FileGroup], list[GroupOutcome]]:
        refused = [group for group in groups if any(self.refuses(file) for file in group.files)]
        return [group for group in groups if group not in refused], [self._refused(group) for group in refused]

    def _refused(self, group: FileGroup) -> GroupOutcome:
        paths = tuple(file.path for file in group.files if self.refuses(file))
        self.attempts.append(paths)
        error = RefusedFiles("a type that cannot be stored", reason=RefusalReason.TYPES, files=paths)
        return GroupOutcome(group, GroupStatus.REFUSED, error=error)

    def run_table_job(self, job: TableJob, control: TableJobControl) -> TableJobOutcome:
        """Run a job of the kinds that a test gave it: as many steps as its options name."""
        if job.table_uuid not in ("", self.table_uuid):
            raise OtherTable(f"{job.location} holds the table {self.table_uuid}", field="table_uuid")
        self.table_jobs.append(job)
        steps = int(job.options.get("steps", 1))
        for done in range(steps):
            control.reached("step", done, steps)
            self.before_commit()
            if control.should_stop():
                return TableJobOutcome(self.version, self._metadata, figures={"steps": done}, is_complete=False)
            control.may_change()
            control.measured({"steps": done + 1})
        return TableJobOutcome(self.version, self._metadata, (self.version,), {"steps": steps}, left=self.left)

    @property
    def _metadata(self) -> TableMetadata:
        return TableMetadata(self.table_uuid, (), self.configuration)

    def is_alive(self) -> bool:
        return self.alive

    def terminate(self) -> EngineDeath | None:
        return self.death

    def find_commit(self, location: str, *, job: str, token: int, since_version: int) -> int | None:
        wanted = CommitOrigin(job, token)
        return next((v for v, origins in self.signed.items() if v > since_version and wanted in origins), None)
