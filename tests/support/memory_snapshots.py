"""An Iceberg table in memory behind the port of our commits: snapshots, sequence numbers, deletes, and their refusals.

What readers see follows the format's specification, and a commit is refused where Iceberg's `RewriteFiles` refuses it.
A row is a number, and a data file is the list of its rows.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from actor.formats.iceberg.delete_groups import DeletesChange, LiveDeletes
from actor.formats.iceberg.inputs import AppliedDelete, InputGroup, Listed, LiveInput
from actor.formats.iceberg.newest_inputs import Inputs, after_changes
from actor.formats.iceberg.staged import IcebergFile, NewDeletes, Replacement, StagedGroup
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.iceberg.value_groups import LiveValues
from actor.formats.parquet.file_columns import DescribedFiles, FileSchema, ParquetField
from actor.formats.parquet.footer_summary import FooterSummary
from actor.proofread.model import Field
from shared.formats.iceberg.delete_merges import LiveDelete
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.formats.iceberg.partitions import Spec
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, DeleteKind, PartitionKey, TableMetadata, TableProtocol
from tests.support.java_errors import JavaError

UNPARTITIONED = {0: Spec(0, ())}


@dataclass(frozen=True, slots=True)
class Delete:
    """A delete file: the positions that it names in files, or the rows that it deletes by value."""

    name: str
    kind: DeleteKind
    places: Mapping[str, frozenset[int]] = field(default_factory=dict)
    values: frozenset[int] = frozenset()

    @property
    def only(self) -> str | None:
        """The one data file that it names rows of."""
        return next(iter(self.places)) if len(self.places) == 1 else None

    def applies(self, path: str, number: int, of_file: int) -> bool:
        """Return whether readers take it into account for a file, by their sequence numbers."""
        if self.kind is DeleteKind.EQUALITY:
            return number > of_file
        return number >= of_file and self.only in (None, path)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot: sequence numbers of its live data files by path, and of its delete files by name."""

    id: int
    parent: int | None
    number: int
    data: Mapping[str, int]
    deletes: Mapping[str, int]
    summary: Mapping[str, str] = field(default_factory=dict)
    operation: str = "overwrite"


@dataclass
class MemorySnapshots:
    """A table of one partition; `has_vectors`: rows are deleted by vectors. `others` play before a commit of ours."""

    has_vectors: bool = False
    files: dict[str, tuple[int, ...]] = field(default_factory=dict)
    written: dict[str, Delete] = field(default_factory=dict)
    disk: set[str] = field(default_factory=set)
    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    current: int = 0
    others: Callable[[], object] = lambda: None
    schema: str = ""
    compared: int = 0
    looks: int = 0
    names: "count[int]" = field(default_factory=count)
    location: str = "catalog://c/db/t"
    read: Snapshot = Snapshot(0, None, 0, {}, {})

    def __post_init__(self) -> None:
        self.snapshots[0] = Snapshot(0, None, 0, {}, {})

    # What readers see.

    @property
    def now(self) -> Snapshot:
        return self.snapshots[self.current]

    def visible(self, path: str, at: Snapshot) -> list[tuple[int, int]]:
        """Return position and value of each row of a file that readers see."""
        applied = [self.written[name] for name in self._applied(path, at)]
        places = {place for one in applied for place in one.places.get(path, ())}
        values = {value for one in applied for value in one.values}
        rows = enumerate(self.files[path])
        return [(place, row) for place, row in rows if place not in places and row not in values]

    def rows(self) -> list[int]:
        return sorted(row for path in self.now.data for _, row in self.visible(path, self.now))

    def where(self) -> dict[int, tuple[str, int]]:
        """Return the file and the position of each row."""
        return {row: (path, place) for path in self.now.data for place, row in self.visible(path, self.now)}

    def _applied(self, path: str, at: Snapshot) -> list[str]:
        found = [name for name, number in at.deletes.items() if self.written[name].applies(path, number, at.data[path])]
        vectors = [name for name in found if self.written[name].kind is DeleteKind.VECTOR]
        assert len(vectors) < 2, "a file has one vector"
        return [name for name in found if not vectors or self.written[name].kind is not DeleteKind.POSITION]

    def orphans(self) -> set[str]:
        """Return files on the disk that no snapshot names."""
        return self.disk - {name for one in self.snapshots.values() for name in (*one.data, *one.deletes)}

    # What writers do.

    def make(
        self,
        data: Mapping[str, int | None],
        deletes: Mapping[str, int | None],
        gone: Collection[str] = (),
        summary: Mapping[str, str] | None = None,
        operation: str = "overwrite",
    ) -> None:
        """Make a snapshot that adds files, each with a sequence number (None: the snapshot's), and removes some."""
        now, new = self.now, max(self.snapshots) + 1
        number = max(one.number for one in self.snapshots.values()) + 1

        def left(before: Mapping[str, int], added: Mapping[str, int | None]) -> dict[str, int]:
            own = {name: number if of_file is None else of_file for name, of_file in added.items()}
            return {name: one for name, one in before.items() if name not in gone} | own

        self.snapshots[new] = Snapshot(
            new, now.id, number, left(now.data, data), left(now.deletes, deletes), summary or {}, operation
        )
        self.current = new

    def write(self, rows: Iterable[int], name: str = "data") -> str:
        path = f"{name}-{next(self.names)}"
        self.files[path] = tuple(rows)
        self.disk.add(path)
        return path

    def delete_places(self, places: Iterable[tuple[str, int]], *, in_one_file: bool) -> None:
        """Delete rows by position as a writer does: with a file of each data file, with one for all, or by vectors."""
        by_path: dict[str, set[int]] = {}
        for path, place in places:
            by_path.setdefault(path, set()).add(place)
        if not self.has_vectors:
            parts = [by_path] if in_one_file else [{path: named} for path, named in by_path.items()]
            self.make({}, {self._write(DeleteKind.POSITION, part): None for part in parts})
            return
        gone = set[str]()
        for path, named in by_path.items():
            before = [one for one in self._applied(path, self.now) if path in self.written[one].places]
            named.update(*(self.written[one].places[path] for one in before))
            gone.update(one for one in before if self.written[one].only == path)
        new = {self._write(DeleteKind.VECTOR, {path: named}): None for path, named in by_path.items()}
        self.make({}, new, gone)

    def stream(self, path: str, places: Sequence[int], *, in_one_file: bool) -> None:
        """Add a file with rows that are deleted in the same commit: by one delete file, or by one each."""
        kind = DeleteKind.VECTOR if self.has_vectors else DeleteKind.POSITION
        parts = [places] if in_one_file or self.has_vectors else [[place] for place in places]
        self.make({path: None}, {self._write(kind, {path: part}): None for part in parts})

    def delete_values(self, values: Iterable[int]) -> None:
        self.make({}, {self._write(DeleteKind.EQUALITY, {}, values): None})

    def put_together(self) -> None:
        """Write all files of positions as one, as a compaction of them does; it keeps the greatest of their numbers."""
        old = [name for name in self.now.deletes if self.written[name].kind is DeleteKind.POSITION]
        if len(old) < 2:
            return
        named: dict[str, set[int]] = {}
        for one in old:
            number = self.now.deletes[one]
            for path, places in self.written[one].places.items():
                if path in self.now.data and number >= self.now.data[path]:
                    named.setdefault(path, set()).update(places)
        lowest = min(self.now.deletes[one] for one in old)
        highest = max(self.now.deletes[one] for one in old)
        if lowest < highest and any(self.now.data[path] > lowest for path in named):
            return  # One number would not fit all of them.
        self.make({}, {self._write(DeleteKind.POSITION, named): highest}, old, operation="replace")

    def begin_rewrite(self, paths: Sequence[str]) -> "Begun":
        """Read the rows of data files as another's compaction does."""
        rows = [row for path in paths for _, row in self.visible(path, self.now)]
        return Begun(self.now, tuple(paths), tuple(rows))

    def end_rewrite(self, begun: "Begun") -> bool:
        """Commit the compaction under the number of the snapshot that it read, and return whether Iceberg accepts it.

        Of what others deleted meanwhile, it looks at positions alone, in snapshots that delete rows by their operation.
        """
        chain, start = self._chain(self.current), begun.at
        if start.id not in chain or not {*begun.paths} <= self.now.data.keys():
            return False
        for one in (self.snapshots[later] for later in chain[: chain.index(start.id)]):
            new = one.deletes.keys() - self.snapshots[one.parent or 0].deletes.keys()
            late = [name for name in new if one.deletes[name] > start.number and one.operation != "replace"]
            for delete in map(self.written.__getitem__, late):
                if delete.kind is not DeleteKind.EQUALITY and any(delete.only in (None, path) for path in begun.paths):
                    return False
        self.make({self.write(begun.rows): start.number}, {}, begun.paths, operation="replace")
        return True

    def _write(self, kind: DeleteKind, places: Mapping[str, Collection[int]], values: Iterable[int] = ()) -> str:
        name = f"{kind}-{next(self.names)}"
        of_paths = {path: frozenset(named) for path, named in places.items()}
        self.written[name] = Delete(name, kind, of_paths, frozenset(values))
        self.disk.add(name)
        return name

    # The port of our commits.

    def head(self) -> TableHead:
        records = {
            one.id: SnapshotRecord(one.id, one.parent, one.number, 100 + one.id, "m", self._operation(one), one.summary)
            for one in self.snapshots.values()
        }
        metadata = TableMetadata("u", schema_digest=self.schema)
        version = 3 if self.has_vectors else 2
        return TableHead(
            "file:///t", metadata, TableProtocol(version, version), 100, self.current, UNPARTITIONED, records, {0: ()}
        )

    def _operation(self, one: Snapshot) -> str:
        before = self.snapshots[one.parent or 0]
        return "append" if before.data.items() <= one.data.items() and before.deletes == one.deletes else "replace"

    def refresh(self) -> TableHead:
        self.looks += 1
        return self.head()

    def check(self, head: TableHead) -> None:
        """Nothing is refused."""

    def inputs(
        self, head: TableHead, snapshot: int, *, partitions: Collection[PartitionKey] | None
    ) -> Mapping[str, LiveInput]:
        return {path: self._live(path, self.snapshots[snapshot]) for path in self.snapshots[snapshot].data}

    def _live(self, path: str, at: Snapshot) -> LiveInput:
        file = DataFile(path, 100, WHOLE_TABLE, rows=len(self.files[path]))
        deletes = tuple(self._described(name, path) for name in self._applied(path, at))
        return LiveInput(path, 100, len(self.files[path]), 0, deletes, file)

    def _described(self, name: str, path: str) -> AppliedDelete:
        one = self.written[name]
        rows = sum(map(len, one.places.values()))
        is_vector = one.kind is DeleteKind.VECTOR
        return AppliedDelete(
            name,
            one.kind,
            rows or len(one.values),
            is_exact=is_vector,
            is_of_one_file=one.only == path,
            partition=WHOLE_TABLE,
            key_ids=(1,) if one.kind is DeleteKind.EQUALITY else (),
            is_parquet=one.kind is DeleteKind.EQUALITY,
            sequence=max(one.deletes.get(name, 0) for one in self.snapshots.values()),
            listed=Listed(_Named(name), 0),
        )

    def live(self, snapshot: int, groups: Iterable[FileGroup]) -> Inputs:
        at, paths = self.snapshots[snapshot], [file.path for group in groups for file in group.files]
        return {path: self._live(path, at) for path in paths if path in at.data}

    def followed(self, inputs: Inputs, since: int, until: int) -> Inputs | None:
        """Read what each snapshot added and removed, as `IcebergDeletes.java` does; not far: more are scanned."""
        chain = self._chain(until)
        if since not in chain or chain.index(since) > 3:
            return None
        known, removed = list(inputs.values()), set[str]()
        added: list[list[AppliedDelete]] = [[] for _ in known]
        for one in reversed(chain[: chain.index(since)]):
            now, before = self.snapshots[one], self.snapshots[self.snapshots[one].parent or 0]
            removed |= (before.data.keys() - now.data) | (before.deletes.keys() - now.deletes)
            for name in now.deletes.keys() - before.deletes.keys():
                removed.discard(name)
                for file, of_file in zip(known, added, strict=True):
                    at = now.data.get(file.path, 0)
                    is_positional = self.written[name].kind is not DeleteKind.EQUALITY
                    if is_positional and self.written[name].applies(file.path, now.deletes[name], at):
                        of_file.append(self._described(name, file.path))
        return after_changes(known, added, frozenset(removed))

    def _chain(self, newest: int | None) -> list[int]:
        found = []
        while newest is not None:
            found.append(newest)
            newest = self.snapshots[newest].parent
        return found

    def named(self, path: str, deletes: Sequence[AppliedDelete]) -> Sequence[int] | None:
        return sorted({place for one in deletes for place in self.written[one.path].places.get(path, ())})

    def hide(self, output: Any, places: Sequence[int]) -> NewDeletes:
        kind = DeleteKind.VECTOR if self.has_vectors else DeleteKind.POSITION
        name = self._write(kind, {output: places})
        return NewDeletes(name, name, 10, None, name)

    def without(self, shared: AppliedDelete, paths: Sequence[str]) -> NewDeletes | None:
        rest = {path: named for path, named in self.written[shared.path].places.items() if path not in paths}
        if not rest:
            return None
        name = self._write(DeleteKind.POSITION, rest)
        number = max(one.deletes[shared.path] for one in self.snapshots.values() if shared.path in one.deletes)
        return NewDeletes(name, name, 10, number, name)

    def commit(self, change: Replacement, *, since: int, summary: Mapping[str, str]) -> None:
        self.others()
        now, inputs = self.now, [one.path for group in change.groups for one in group.live.inputs]
        chain = self._chain(now.id)
        if change.checked_until not in chain:
            raise _refused("Cannot determine history")
        if missing := {*inputs, *(one.path for one in change.deletes)} - now.data.keys() - now.deletes.keys():
            raise _refused(f"Missing required files to delete: {missing}")
        for later in chain[: chain.index(change.checked_until)]:
            one = self.snapshots[later]
            for name in one.deletes.keys() - self.snapshots[one.parent or 0].deletes.keys():
                new = self.written[name]
                is_noticed = one.operation != "replace" and new.kind is not DeleteKind.EQUALITY
                if is_noticed and any(new.only in (None, path) for path in inputs):
                    raise _refused("found new position delete for replaced data file")
            for name in self.snapshots[one.parent or 0].deletes.keys() - one.deletes.keys():
                if any(self.written[name].only in (None, path) for path in inputs):
                    raise _refused("deletes were removed")  # As `WatchedCommit.java` asks for.
        new_deletes = {new.name: new.sequence for group in change.groups for new in group.deletes}
        assert change.deletes or not new_deletes, "Iceberg adds deletes to a rewrite only where it removes some"
        gone = {*inputs, *(one.path for one in change.deletes)}
        outputs = {
            output.file.path: self.snapshots[since].number for group in change.groups for output in group.outputs
        }
        self.make(outputs, new_deletes, gone, summary, "replace")

    def look(self, head: TableHead) -> LiveDeletes | None:
        at = self.snapshots[head.current or 0]
        live = [self._live(path, at) for path in at.data]
        inputs = tuple(one for one in live if one.by_position)
        applied = {delete.path for one in live for delete in one.deletes}
        files = tuple(
            LiveDelete(name, one.kind, one.only or "", WHOLE_TABLE, sum(map(len, one.places.values())))
            for name in at.deletes
            for one in (self.written[name],)
        )
        left = tuple(self._described(name, "") for name in at.deletes if name not in applied)
        return LiveDeletes(at.id, inputs, files, left)

    def by_value(self, head: TableHead) -> LiveValues | None:
        self.read = at = self.snapshots[head.current or 0]
        values = [name for name in at.deletes if self.written[name].kind is DeleteKind.EQUALITY]
        newest = max((at.deletes[name] for name in values), default=0)
        live = [self._live(path, at) for path, number in at.data.items() if number < newest]
        inputs = tuple(replace(one, deletes=one.by_position if self.has_vectors else ()) for one in live)
        return LiveValues(at.id, inputs, at.data, tuple(self._described(name, "") for name in values), {0})

    def converted(self, inputs: Sequence[LiveInput], deletes: Sequence[AppliedDelete]) -> list[NewDeletes | None]:
        return [self._converted(one, deletes) for one in inputs]

    def _converted(self, file: LiveInput, deletes: Sequence[AppliedDelete]) -> NewDeletes | None:
        later = [one.path for one in deletes if self.read.deletes[one.path] > self.read.data[file.path]]
        gone = {value for name in later for value in self.written[name].values}
        places = {place for place, row in enumerate(self.files[file.path]) if row in gone}
        if not places:
            return None
        kind = DeleteKind.VECTOR if self.has_vectors else DeleteKind.POSITION
        before = self.named(file.path, file.by_position) if self.has_vectors else None
        name = self._write(kind, {file.path: places | {*(before or ())}})
        return NewDeletes(name, name, 10, raw=name, vector=(4, 6) if self.has_vectors else None)

    def is_of_one_file(self, delete: AppliedDelete, path: str) -> bool:
        return self.written[delete.path].only == path

    def merged(
        self, inputs: Sequence[LiveInput], deletes: Sequence[Sequence[AppliedDelete]]
    ) -> list[NewDeletes | None]:
        kind = DeleteKind.VECTOR if self.has_vectors else DeleteKind.POSITION
        named = [self.named(one.path, some) or () for one, some in zip(inputs, deletes, strict=True)]
        names = [self._write(kind, {one.path: rows}) if rows else "" for one, rows in zip(inputs, named, strict=True)]
        vector = (4, 6) if self.has_vectors else None
        return [NewDeletes(name, name, 10, raw=name, vector=vector) if name else None for name in names]

    def commit_deletes(self, change: DeletesChange, summary: Mapping[str, str]) -> None:
        self.others()
        gone = [one.path for one in change.removed]
        if missing := {*gone} - self.now.deletes.keys():
            raise _refused(f"Missing required files to delete: {missing}")
        if change.upon != self.current:
            raise _refused(f"snapshot {change.upon} is no longer the newest one")
        assert gone or not change.added, "Iceberg adds deletes to a rewrite only where it removes some"
        numbers = {one.name: None if change.is_new_to_others else one.sequence for one in change.added}
        self.make({}, numbers, gone, summary, "delete" if change.is_new_to_others else "replace")

    def sizes(self, paths: Iterable[str]) -> Mapping[str, int | None]:
        return {path: (10 if path in self.written else 100) if path in self.disk else None for path in paths}

    def delete(self, paths: Iterable[str]) -> None:
        self.disk -= {*paths}

    # What our writers do.

    def staged(self, paths: Sequence[str], *, in_order: bool = True) -> StagedGroup:
        """Write the rows that readers see of files as one, in their order or in another."""
        at = self.now
        inputs = tuple(self._live(path, at) for path in paths)
        rows = [row for path in paths for _, row in self.visible(path, at)]
        path = self.write(rows if in_order else reversed(rows), "out")
        group = FileGroup(WHOLE_TABLE, tuple(one.file for one in inputs), RewriteMode.FULL)
        output = IcebergFile(DataFile(path, 100, WHOLE_TABLE, rows=len(rows)), path)
        return StagedGroup(InputGroup(group, inputs), (output,), len(rows), in_order=in_order)

    def compare(self, group: StagedGroup, chosen: Sequence[Sequence[int]], places: Sequence[int]) -> bool:
        """Compare rows as a proofreader does."""
        pairs = zip(group.live.inputs, chosen, strict=True)
        read = [self.files[one.path][place] for one, of_file in pairs for place in of_file]
        assert read == [self.files[group.outputs[0].file.path][place] for place in places]
        self.compared += 1
        return True


@dataclass(frozen=True, slots=True)
class Begun:
    """A compaction of others: the snapshot that it read, its inputs, and the rows of its output."""

    at: Snapshot
    paths: tuple[str, ...]
    rows: tuple[int, ...]


KEYS = TableColumns((Field("n", "int64", 1),))
"""The columns of a table in memory."""


class Footers:
    """Footers of its files: each has the column."""

    def columns(self, inputs: Sequence[LiveInput]) -> DescribedFiles:
        return self._described(len(inputs))

    def delete_columns(self, inputs: Sequence[LiveInput], deletes: Sequence[AppliedDelete]) -> DescribedFiles:
        return self._described(len(deletes))

    def _described(self, count: int) -> DescribedFiles:
        schema = FileSchema((ParquetField("n", 1, physical="INT64"),))
        return DescribedFiles((FooterSummary(schema="s"),) * count, {"s": schema})


@dataclass(frozen=True, slots=True)
class _Named:
    """Java's list of one delete file."""

    name: str

    def get(self, _: int) -> str:
        return self.name


def _refused(message: str) -> Exception:
    return JavaError("ValidationException", message=message)
