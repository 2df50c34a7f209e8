"""A table's history read from its own log, with nothing registered and nothing changed.

Rewrites in the log, by whomever, are left out: which files to merge is what a replay decides again. A writer who later
removed a rewritten file removed the rows of its inputs, so the removal is traced back to them. Files are distinguished
as Delta's replay of a log does, and nothing is replayed across a hole in it. The end of the replay is compared with
the table: a commit that was damaged below a checkpoint misleads a replay of commits, and no reader of the table.

Time never goes back: a commit counts as made no earlier than the one before it, as in Delta's own history, and one
without a time when the one before it was made.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from decider.formats.table_format import TableReader
from decider.whatif.sort_advice import KeyedFiles
from decider.whatif.storage import StorageStep
from decider.whatif.trace import CommitTrace
from shared.errors import Corrupt, InvalidInput, Unsupported
from shared.formats.registry import support_of
from shared.paths.data_paths import canonical_path, path_key
from shared.refusals import Refusal
from shared.table import BEFORE_FIRST, Commit, DataFile, Position, RemovedFile, Snapshot, TableMetadata, TableProtocol

MAX_COMMITS = 20_000
"""Maximum number of replayed commits, the newest ones: a minute of one core."""

RefusalRule = Callable[[TableMetadata, TableProtocol], Refusal | None]
"""Returns why a table must not be rewritten; the rule of its format."""


@dataclass(frozen=True, slots=True)
class TableTrace:
    """A table's history: the commits of others, and its rewrites so far; sizes in bytes.

    `missing` are the first and the last version of the newest hole in the log, behind which the history begins.
    `storage`: what each commit, rewrites included, changed in the store, where `initial_bytes` were live before.
    `keyed`: the newest live files by the columns of which ranges were read. contradiction: how the commits differ from
    the table that they lead to, as a sentence; empty if they do not.
    """

    location: str
    first_version: int
    last_version: int
    metadata: TableMetadata
    history: CommitTrace
    rewrites: int
    bytes_rewritten: int
    files_now: int
    refusal: Refusal | None = None
    missing: tuple[int, int] | None = None
    initial_bytes: int = 0
    storage: tuple[StorageStep, ...] = ()
    keyed: tuple[KeyedFiles, ...] = ()
    contradiction: str = ""


async def read_history(
    log: TableReader, *, max_commits: int = MAX_COMMITS, read: Callable[[int, int], None] = lambda _done, _all: None
) -> TableTrace:
    """Read the newest commits of a log, from the oldest version that can still be rebuilt, and the table at their end.

    Raises InvalidInput where there is no log or nothing was committed since that version, and what reading it raises.
    """
    retained = await log.retained()
    if not retained.positions:
        # Checkpoints may be all that is left; where there is no log at all, this reports it.
        base = await log.snapshot()
        raise _TraceBuilder(base, log.refusal).nothing(log.location)
    positions = retained.positions[-max_commits - 1 :]
    base = await _oldest(log, positions)
    wanted = [position for position in positions if base.position < position]
    after = base.position
    is_first = retained.is_whole and base.version == retained.positions[0].version
    if is_first and len(wanted) < max_commits:
        # The table was empty before the first commit, so that commit is replayed, too.
        base, after = replace(base, files=()), BEFORE_FIRST
        wanted = [retained.positions[0], *wanted]
    reading = _TraceBuilder(base, log.refusal)
    last = wanted[-1].version if wanted else after.version
    async with aclosing(log.changes(after, base.metadata, until=last)) as commits:
        for done, position in enumerate(wanted):
            read(done, len(wanted))
            commit = await anext(commits, None)
            if commit is None:
                raise Corrupt(f"{log.location}: commit {position.version} is listed and not there")
            reading.add(commit)
    if not reading.commits:
        raise reading.nothing(log.location)
    live = await log.snapshot(wanted[-1])
    contradiction = reading.contradiction(live.files)
    found = replace(reading.result(log.location, last), missing=retained.missing, contradiction=contradiction)
    return replace(found, files_now=len(live.files))


async def with_ranges(log: TableReader, table: TableTrace, columns: Sequence[str]) -> TableTrace:
    """Return a history with the live files by these columns; without any, by the first of the table's own sort order.

    The log is read once for each. Raises what `TableReader.snapshot_with_ranges` and `require_sorting` raise.
    """
    own = table.metadata.sort_key
    names = dict.fromkeys(columns or ([own.name] if own else []))
    if names:
        require_sorting(table)
    found = [await log.snapshot_with_ranges(name) for name in names]
    keyed = (KeyedFiles(one.metadata.sort_key, one.files) for one in found if one.metadata.sort_key is not None)
    return replace(table, keyed=tuple(keyed))


def require_sorting(table: TableTrace) -> None:
    """Raise Unsupported if rewrites cannot sort the rows of a table, so that no order by a column can be set."""
    support = support_of(table.metadata.format)
    if not support.orders_rows:
        raise Unsupported(
            f"{table.location}: rewrites of {support.title} tables sort no rows, so no order can be compared",
            field="sort_keys",
        )


async def comparable_columns(
    log: TableReader, table: TableTrace, columns: Sequence[str]
) -> tuple[tuple[KeyedFiles, ...], tuple[str, ...]]:
    """Return the live files by each column that files have bounds of, and the names of the other columns.

    The partition columns are among the others: which partitions are read is the same in every order. The log is read
    once for each. Raises what reading the log raises.
    """
    by_partition = {column.name.lower() for column in table.metadata.partition_columns}
    found: list[KeyedFiles] = []
    others: list[str] = []
    for name in columns:
        try:
            one = None if name.lower() in by_partition else await log.snapshot_with_ranges(name)
        except InvalidInput:
            one = None
        if one is None or one.metadata.sort_key is None:
            others.append(name)
        else:
            # The name is as in the filters: they need not spell it as the table does.
            key = replace(one.metadata.sort_key, name=name)
            found.append(KeyedFiles(key, one.files, one.metadata.bounds_change))
    return tuple(found), tuple(others)


async def _oldest(log: TableReader, positions: Sequence[Position]) -> Snapshot:
    """Return the oldest snapshot that can be rebuilt; if one position can be, so can all later ones."""
    try:
        return await log.snapshot(positions[0])
    except (InvalidInput, Corrupt):
        low, high = 1, len(positions) - 1
        found = await log.snapshot(positions[-1])
    while low < high:
        middle = (low + high) // 2
        try:
            found = await log.snapshot(positions[middle])
            high = middle
        except (InvalidInput, Corrupt):
            low = middle + 1
    return found


class _TraceBuilder:
    """A history while it is read: commits by others, and the origin of the bytes of rewritten files."""

    def __init__(self, base: Snapshot, refusal: RefusalRule) -> None:
        self._refusal = refusal
        self.metadata = base.metadata
        self._protocol = base.protocol
        self.commits: list[Commit] = []
        self._base = replace(base, files=tuple(map(_spelled, base.files)))
        self._files = {path_key(file): file for file in self._base.files}
        self._origins: dict[str, list[RemovedFile]] = {}
        self._read = 0
        self._rewrites = 0
        self._bytes_rewritten = 0
        self._storage: list[StorageStep] = []
        self._at_ms = base.timestamp_ms

    def add(self, commit: Commit) -> None:
        """Apply the next commit; the removal of a file that is not live, or the add of one that is, changes nothing."""
        self._at_ms = max(self._at_ms, commit.timestamp_ms)
        commit = replace(commit, timestamp_ms=self._at_ms)
        self.metadata = commit.metadata or self.metadata
        self._protocol = commit.protocol or self._protocol
        self._read += 1
        removed = [known for gone in commit.removed if (known := self._take(gone)) is not None]
        added = tuple(map(_spelled, commit.added))
        new = tuple(file for file in added if path_key(file) not in self._files)
        rewritten = self._bytes_rewritten
        if commit.origin is None and commit.data_change:
            self._add_data(replace(commit, added=new), removed)
        elif new and removed:
            self._add_rewrite(replace(commit, added=new), removed)
        before = len(self._files) + len(removed)
        self._files.update((path_key(file), file) for file in added)
        self._storage.append(
            replace(
                _storage_step(commit.timestamp_ms, added, removed),
                files=len(self._files) - before,
                rewritten_bytes=self._bytes_rewritten - rewritten,
            )
        )

    def contradiction(self, live: Sequence[DataFile]) -> str:
        """Return how the end of the replay differs from the files of the table then; empty if it does not."""
        table = {path_key(file): file.size_bytes for file in map(_spelled, live)}
        replayed = {key: file.size_bytes for key, file in self._files.items()}
        if table == replayed:
            return ""
        return (
            f"The commits lead to {len(replayed):,} files of {sum(replayed.values()):,} bytes, and the table has "
            f"{len(table):,} of {sum(table.values()):,}: a commit was damaged or changed after a later checkpoint was "
            "written. The figures count the commits."
        )

    def result(self, location: str, last_version: int) -> TableTrace:
        """Return what was read; commits before the first one with a time count as made with that one."""
        first_ms = next((step.at_ms for step in self._storage if step.at_ms), 0)
        commits = (replace(one, timestamp_ms=max(first_ms, one.timestamp_ms)) for one in self.commits)
        storage = (replace(one, at_ms=max(first_ms, one.at_ms)) for one in self._storage)
        return TableTrace(
            location=location,
            first_version=self._base.version,
            last_version=last_version,
            metadata=self.metadata,
            history=CommitTrace(self._base.files, tuple(commits), self.metadata.partition_columns),
            rewrites=self._rewrites,
            bytes_rewritten=self._bytes_rewritten,
            files_now=len(self._files),
            refusal=self._refusal(self.metadata, self._protocol),
            initial_bytes=sum(file.size_bytes for file in self._base.files),
            storage=tuple(storage),
        )

    def nothing(self, location: str) -> InvalidInput:
        """Return the refusal where there is nothing to replay, with what is known of the table all the same."""
        version = self._base.version
        why = (
            f"no commit from version {version} on added or removed data"
            if self._read or not version
            else f"the log was cleaned up, and no commit is left that leads to version {version}"
        )
        count, total = len(self._files), sum(file.size_bytes for file in self._files.values())
        advice = (
            f"The table has {count:,} live file{'' if count == 1 else 's'} of {total:,} bytes in all: a dry run of "
            "optimize shows which of them would be merged now, and what-if can show more when the table has been "
            "written to again"
            if self._files
            else "The table has no files; try one that has been written to"
        )
        return InvalidInput(f"{location}: {why}, so there is nothing to replay. {advice}", field="location")

    def _add_data(self, commit: Commit, removed: Sequence[RemovedFile]) -> None:
        # A file that is removed and added again got another deletion vector: no bytes were written or went away.
        marked = {gone.path for gone in removed} & {file.path for file in commit.added}
        added = tuple(file for file in commit.added if file.path not in marked)
        gone = [origin for file in removed if file.path not in marked for origin in self._traced(file)]
        if added or gone:
            self.commits.append(replace(commit, added=added, removed=tuple(gone)))

    def _add_rewrite(self, commit: Commit, removed: Sequence[RemovedFile]) -> None:
        self._rewrites += 1
        self._bytes_rewritten += sum(gone.size_bytes or 0 for gone in removed)
        inputs: defaultdict[str | None, list[RemovedFile]] = defaultdict(list)
        for gone in removed:
            inputs[gone.partition] += self._traced(gone)
        outputs: defaultdict[str, list[DataFile]] = defaultdict(list)
        for file in commit.added:
            outputs[file.partition].append(file)
        for partition, files in outputs.items():
            # A log does not record which input went into which output; each output gets an equal share of them.
            for index, file in enumerate(files):
                self._origins[file.path] = inputs[partition][index :: len(files)]

    def _traced(self, gone: RemovedFile) -> list[RemovedFile]:
        return self._origins.pop(gone.path, [gone])

    def _take(self, gone: RemovedFile) -> RemovedFile | None:
        """Remove a file; return its removal with what is known of the file, None if it was not live."""
        file = self._files.pop(path_key(gone), None)
        return (
            None
            if file is None
            else replace(gone, path=file.path, size_bytes=file.size_bytes, partition=file.partition)
        )


def _storage_step(at_ms: int, added: Sequence[DataFile], removed: Sequence[RemovedFile]) -> StorageStep:
    """Return what a commit changed in the store; a file that it removes and adds again stays where it is."""
    gone, new = ({file.path: file.size_bytes or 0 for file in files} for files in (removed, added))
    return StorageStep(
        at_ms,
        sum(size for path, size in new.items() if path not in gone),
        sum(size for path, size in gone.items() if path not in new),
    )


def _spelled(file: DataFile) -> DataFile:
    """Return a file under the one spelling of its path that identifies it in a replay."""
    path = canonical_path(file.path)
    return file if path == file.path else replace(file, path=path)
