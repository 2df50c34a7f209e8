"""Iceberg's own classes in a JVM without Spark: tables with the delete files that Spark does not write.

pyarrow writes data and delete files. `rows` applies the deletes itself, so that no reader of Iceberg is trusted.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from actor.formats.iceberg.commit import IcebergTarget
from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.inputs import LiveInput, resolve
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.staged import IcebergFile, StagedGroup
from actor.jvm.jars import ICEBERG, look_up
from actor.jvm.java import find_java
from actor.jvm.own_jar import own_jar
from actor.proofread.model import DeleteForm, Deletes
from actor.proofread.vectors import read_vector
from actor.rewrite.commit import CommitResult, Committer
from actor.rewrite.late_rows import Comparisons, Positions
from services.paths import java_search
from shared.layout.planner import FileGroup, RewriteMode
from shared.table import DataFile, DeleteKind, PartitionKey
from tests.support.stack import ROOT
from tests.support.steering import Steering

POSITION_FIELDS = {"file_path": 2147483546, "pos": 2147483545}
"""Ids of the columns of a file of positions, as Iceberg's specification reserves them."""


class Classes(IcebergScala):
    """The actor's own bridge, over a JVM that has neither Spark's session nor Delta, whose mapper of JSON it takes."""

    def __init__(self, gateway: JavaGateway) -> None:
        super().__init__(SimpleNamespace(_jvm=gateway.jvm, sparkContext=SimpleNamespace(_gateway=gateway)))  # type: ignore[arg-type]

    @cached_property
    def _mapper(self) -> Any:
        return self.resolve("com.fasterxml.jackson.databind.ObjectMapper")()


_BUSY = """
import org.apache.iceberg.*;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.io.*;

public class Busy implements TableOperations {
  private final TableOperations table;
  private int refusals;

  public Busy(TableOperations table, int refusals) { this.table = table; this.refusals = refusals; }
  public void commit(TableMetadata base, TableMetadata metadata) {
    if (refusals-- > 0) { throw new CommitFailedException("others were faster", new Object[0]); }
    table.commit(base, metadata);
  }
  public TableMetadata current() { return table.current(); }
  public TableMetadata refresh() { return table.refresh(); }
  public FileIO io() { return table.io(); }
  public String metadataFileLocation(String name) { return table.metadataFileLocation(name); }
  public LocationProvider locationProvider() { return table.locationProvider(); }
}
"""
"""Operations of a table whose first commits others are faster than."""


class IcebergJvm:
    """A JVM with Iceberg, and tables of the columns `id` and `g` below a folder."""

    def __init__(self, folder: Path) -> None:
        ivy_dir = Path(os.environ.get("LAKEWRIGHT_IVY_DIR", ROOT / ".cache" / "ivy"))
        spark = Path(pyspark.__file__).parent / "jars" / "*"
        jars = ":".join(map(str, [spark, own_jar(), *look_up(ivy_dir, ICEBERG).files]))
        java = str(find_java(java_search(os.environ)).path / "bin" / "java")
        port = launch_gateway(
            classpath=jars, die_on_exit=True, javaopts=["-Xmx300m", "-XX:+UseSerialGC"], java_path=java
        )
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
        self.folder = folder
        self._written = 0
        self.jvm = self._gateway.jvm
        self.iceberg = self.jvm.org.apache.iceberg
        self.classes = Classes(self._gateway)

    def close(self) -> None:
        self._gateway.shutdown()

    def create(self, name: str, *, version: int = 2, by_g: bool = False) -> Any:
        """Create a table and return Iceberg's object."""
        field = getattr(self.iceberg.types, "Types$NestedField")
        long = getattr(self.iceberg.types, "Types$LongType").get()
        columns = [field.optional(1, "id", long), field.optional(2, "g", long)]
        schema = self.iceberg.Schema(self.classes.java_list(columns))
        spec = self.iceberg.PartitionSpec.builderFor(schema)
        properties = self.jvm.java.util.HashMap()
        properties.put("format-version", str(version))
        made = (spec.identity("g") if by_g else spec).build()
        return self._tables().create(schema, made, properties, (self.folder / name).as_uri())

    def loaded(self, table: Any) -> Any:
        """Return the table as others load it."""
        return self._tables().load(str(table.location()))

    def _tables(self) -> Any:
        return self.iceberg.hadoop.HadoopTables(self.jvm.org.apache.hadoop.conf.Configuration())

    def busy(self, table: Any, refusals: int) -> Any:
        """Return the same table, so many commits to which are refused because others were faster."""
        compiler = self.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setSourceVersion(8)
        compiler.setTargetVersion(8)  # Default methods of interfaces.
        compiler.cook(_BUSY)
        (constructor,) = compiler.getClassLoader().loadClass("Busy").getConstructors()
        given = self._gateway.new_array(self.jvm.java.lang.Object, 2)
        given[0], given[1] = table.operations(), refusals
        return self.iceberg.BaseTable(constructor.newInstance(given), str(table.name()))

    def metadata_files_left(self, table: Any) -> set[str]:
        """Return the names of manifests and their lists that no snapshot refers to."""
        table.refresh()
        named = set[str]()
        for snapshot in self.classes.resolve(
            "org.apache.iceberg.relocated.com.google.common.collect.Lists"
        ).newArrayList(table.snapshots()):
            named |= {str(snapshot.manifestListLocation())}
            named |= {str(one.path()) for one in snapshot.allManifests(table.io())}
        folder = Path(urlsplit(str(table.location())).path) / "metadata"
        return {file.name for file in folder.glob("*.avro")} - {name.rpartition("/")[2] for name in named}

    def append(self, table: Any, *starts: int) -> list[str]:
        """Append a file of ten ids from each start on, all of g=0, and return their paths."""
        return self.append_files(table, *(range(start, start + 10) for start in starts))

    def append_files(self, table: Any, *files: Iterable[int], to: str = "g=0") -> list[str]:
        """Append files of these ids to a partition in one commit, and return their paths; `g` is 0 in all rows."""
        change, paths = table.newAppend(), []
        for ids in files:
            file = self._data(table.spec(), ids)
            file = (file if table.spec().isUnpartitioned() else file.withPartitionPath(to)).build()
            change.appendFile(file)
            paths.append(str(file.location()))
        change.commit()
        return paths

    def delete_places(self, table: Any, places: Sequence[tuple[str, int]]) -> None:
        """Delete rows by path and position, with one file, which names the data file if there is one only."""
        table.newRowDelta().addDeletes(self.of_places(table, places)).commit()

    def delete_by_vector(self, table: Any, path: str, positions: Iterable[int]) -> None:
        """Delete rows of a data file by a vector, as in version 3: it replaces what deleted others of them."""
        live = self._live(table, path)
        loaded = JavaTable(self.classes, table, "file:///t")
        loaded.refresh()
        before = loaded.named(path, live.by_position) if live.by_position else ()
        new = loaded.hide(live.task.file(), sorted({*(before or ()), *positions}))
        change = table.newRowDelta().addDeletes(new.raw)
        change.validateFromSnapshot(table.currentSnapshot().snapshotId())
        for one in live.by_position:
            if one.is_of_one_file:
                change.removeDeletes(one.raw)
        change.commit()

    def of_places(
        self, table: Any, places: Sequence[tuple[str, int]], bounds: tuple[str | None, str | None] = (None, None)
    ) -> Any:
        """Write a file of positions with these bounds of its paths, and return Iceberg's object of it."""
        schema = pa.schema(
            [_field("file_path", pa.string(), POSITION_FIELDS), _field("pos", pa.int64(), POSITION_FIELDS)]
        )
        rows = [{"file_path": path, "pos": position} for path, position in places]
        file = self._delete(table.spec(), pa.Table.from_pylist(rows, schema)).ofPositionDeletes()
        if any(bounds):
            maps = [self._bound(one) for one in bounds]
            file = file.withMetrics(self.iceberg.Metrics(len(rows), None, None, None, None, *maps))
        paths = {path for path, _ in places}
        file = file.withReferencedDataFile(paths.pop()) if len(paths) == 1 and not any(bounds) else file
        return (file if table.spec().isUnpartitioned() else file.withPartitionPath("g=0")).build()

    def _bound(self, path: str | None) -> Any:
        found = self.jvm.java.util.HashMap()
        if path is not None:
            found.put(POSITION_FIELDS["file_path"], self.jvm.java.nio.ByteBuffer.wrap(path.encode()))
        return found

    def delete_values(self, table: Any, ids: list[int], *, spec: int | None = None) -> None:
        """Delete ids in g=0, or wherever they are, with a file of a spec without fields."""
        of = table.spec() if spec is None else table.specs().get(spec)
        table.newRowDelta().addDeletes(self._of_values(of, ids)).commit()

    def _of_values(self, spec: Any, ids: Sequence[int]) -> Any:
        fields = self._gateway.new_array(self.jvm.int, 1)
        fields[0] = 1
        rows = pa.table([ids], schema=pa.schema([_field("id", pa.int64(), {"id": 1})]))
        file = self._delete(spec, rows).ofEqualityDeletes(fields)
        return (file if spec.isUnpartitioned() else file.withPartitionPath("g=0")).build()

    def upsert(self, table: Any, ids: Sequence[int]) -> None:
        """Write ids as a stream does, in one commit: by two writers, each of which wrote its last id twice.

        Older rows are deleted by value; the first of two own rows by position, in one file for both writers.
        """
        change, places = table.newRowDelta(), list[tuple[str, int]]()
        for part in (ids[::2], ids[1::2]):
            file = self._data(table.spec(), [part[-1], *part]).build()
            change.addRows(file)
            places.append((str(file.location()), 0))
        change.addDeletes(self._of_values(table.spec(), ids)).addDeletes(self.of_places(table, places)).commit()

    def inputs(self, table: Any, partition: PartitionKey | None = None) -> dict[str, LiveInput]:
        """Return all live files, or those of a partition."""
        loaded = JavaTable(self.classes, table, "file:///t")
        head = loaded.refresh()
        assert head.current is not None
        return loaded.inputs(head, head.current, partitions=None if partition is None else (partition,))

    def rows(self, table: Any) -> list[int]:
        """Return the ids that readers see."""
        return sorted(number for one in self.inputs(table).values() for number in visible(one))

    def places(self, table: Any) -> dict[int, tuple[str, int]]:
        """Return path and position of each id that readers see."""
        live = self.inputs(table).values()
        return {number: (one.path, place) for one in live for place, number in visible_places(one)}

    def delete_files(self, table: Any) -> int:
        """Return how many delete files are live, dangling ones among them."""
        return len(self.numbers_of_deletes(table))

    def numbers_of_deletes(self, table: Any) -> list[int]:
        """Return the sequence numbers of all live delete files."""
        table.refresh()
        lists = self.classes.resolve("org.apache.iceberg.relocated.com.google.common.collect.Lists")
        manifests = table.currentSnapshot().deleteManifests(table.io())
        read = self.iceberg.ManifestFiles.readDeleteManifest
        files = [file for one in manifests for file in lists.newArrayList(read(one, table.io(), table.specs()))]
        return sorted(int(file.dataSequenceNumber()) for file in files)

    def delete_files_left(self, table: Any) -> set[str]:
        """Return the delete files that Iceberg wrote below the table's folder and that no snapshot refers to."""
        table.refresh()
        lists = self.classes.resolve("org.apache.iceberg.relocated.com.google.common.collect.Lists")
        read = self.iceberg.ManifestFiles.readDeleteManifest
        manifests = {
            str(one.path()): one
            for snapshot in lists.newArrayList(table.snapshots())
            for one in snapshot.deleteManifests(table.io())
        }
        files = [
            file for one in manifests.values() for file in lists.newArrayList(read(one, table.io(), table.specs()))
        ]
        folder = Path(urlsplit(str(table.location())).path) / "data"
        named = {str(file.location()).rpartition("/")[2] for file in files}
        return {
            file.name for file in folder.rglob("*deletes*") if file.is_file() and not file.name.startswith(".")
        } - named

    def rewrite(
        self,
        table: Any,
        partition: PartitionKey,
        paths: Sequence[str],
        before: Callable[[], object] = lambda: None,
        *at_commit: Callable[[], object],
    ) -> CommitResult[StagedGroup]:
        """Rewrite files of a partition as the engine does; `before` runs between write and commit.

        at_commit: run one after the other, each between look and commit of an attempt.
        """
        loaded = _Checked(self.classes, table, "file:///t")
        head, live = loaded.refresh(), self.inputs(table, partition)
        assert head.current is not None
        group = FileGroup(partition, tuple(live[path].file for path in paths), RewriteMode.FULL)
        (found,) = resolve([group], loaded.live(head.current, [group]))
        ids = [number for one in found.inputs for number in visible(one)]
        raw = self._like(found.inputs[0], ids)
        output = DataFile(str(raw.location()), int(raw.fileSizeInBytes()), partition, rows=len(ids))
        before()
        target = IcebergTarget(loaded, loaded, head, "{}", Comparisons(_are_same))
        committer: Committer[StagedGroup] = Committer(target, Steering(before_commit=list(at_commit)))
        staged = StagedGroup(found, (IcebergFile(output, raw),), len(ids), in_order=True)
        return committer.commit([staged])

    def rewrite_as_others(self, table: Any, path: str) -> None:
        """Rewrite a file as Spark does: the output gets the sequence number of the snapshot that was read."""
        self.begin_rewrite(table, path).commit()

    def begin_rewrite(self, table: Any, path: str) -> Any:
        """Return the same before its commit, which is checked from the snapshot that was read."""
        read, current = self._live(table, path), table.currentSnapshot()
        change = table.newRewrite().validateFromSnapshot(current.snapshotId())
        change.dataSequenceNumber(current.sequenceNumber())
        change.deleteFile(read.task.file())
        return change.addFile(self._like(read, visible(read)))

    def bring_back(self, table: Any, path: str) -> None:
        """Remove the delete files of a data file, so that its rows are visible again."""
        change = table.newRowDelta()
        for delete in self.inputs(table)[path].deletes:
            change.removeDeletes(delete.raw)
        change.commit()

    def drop(self, table: Any, path: str) -> None:
        """Remove a data file as an engine does that deletes all of its rows; its delete files stay."""
        change = table.newDelete()
        change.deleteFile(self._live(table, path).task.file())
        change.commit()

    def _live(self, table: Any, path: str) -> LiveInput:
        """Return a live file with its task."""
        loaded = JavaTable(self.classes, table, "file:///t")
        current, file = loaded.refresh().current, self.inputs(table)[path].file
        assert current is not None
        (read,) = loaded.live(current, [FileGroup(file.partition, (file,), RewriteMode.FULL)]).values()
        return read

    def _like(self, read: LiveInput, ids: Iterable[int]) -> Any:
        return self._data(read.task.spec(), ids).withPartition(read.task.file().partition()).build()

    def _data(self, spec: Any, ids: Iterable[int]) -> Any:
        numbers = list(ids)
        fields = {"id": 1, "g": 2}
        rows = pa.table(
            [numbers, [0] * len(numbers)], schema=pa.schema([_field(name, pa.int64(), fields) for name in fields])
        )
        return self._file(self.iceberg.DataFiles.builder(spec), rows)

    def _delete(self, spec: Any, rows: pa.Table) -> Any:
        return self._file(self.iceberg.FileMetadata.deleteFileBuilder(spec), rows)

    def _file(self, builder: Any, rows: pa.Table, **options: Any) -> Any:
        self._written += 1
        path = self.folder / f"{self._written}.parquet"
        pq.write_table(rows, path, **options)
        described = builder.withPath(path.as_uri()).withFormat("PARQUET").withRecordCount(rows.num_rows)
        return described.withFileSizeInBytes(path.stat().st_size)


class _Checked(JavaTable):
    """A table that may always be rewritten."""

    def check(self, head: object) -> None:
        """Nothing is refused."""


def _are_same(group: StagedGroup, chosen: Positions, places: Sequence[int]) -> bool:
    """Compare as a proofreader does, but raise nothing."""
    read = [_read(one.path)[row]["id"] for one, rows in zip(group.live.inputs, chosen, strict=True) for row in rows]
    written = _read(group.outputs[0].file.path)
    return read == [written[place]["id"] for place in places]


def visible(file: LiveInput) -> list[int]:
    """Return the ids of a file that its deletes leave."""
    return [number for _, number in visible_places(file)]


def visible_places(file: LiveInput) -> list[tuple[int, int]]:
    """Return position and id of each of these rows."""
    places, values = set(), set()
    for delete in file.deletes:
        if delete.kind is DeleteKind.VECTOR:
            vector = Deletes(
                DeleteForm.PUFFIN_VECTOR,
                delete.file_path,
                offset=delete.offset,
                size_bytes=delete.size_bytes,
                rows=delete.rows,
            )
            places |= {*read_vector(vector, "", _bytes_of)}
            continue
        rows = _read(str(delete.raw.location()))
        if delete.kind is DeleteKind.POSITION:
            places |= {row["pos"] for row in rows if row["file_path"] == file.path}
        else:
            values |= {row["id"] for row in rows}
    ids = [row["id"] for row in _read(file.path)]
    return [(place, number) for place, number in enumerate(ids) if place not in places and number not in values]


def _bytes_of(path: str, offset: int, count: int) -> bytes:
    return Path(urlsplit(path).path).read_bytes()[offset : offset + count]


def _read(path: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path.removeprefix("file://").removeprefix("file:")).to_pylist()
    return rows


def _field(name: str, kind: pa.DataType, ids: dict[str, int]) -> pa.Field:
    return pa.field(name, kind, metadata={b"PARQUET:field_id": str(ids[name]).encode()})
