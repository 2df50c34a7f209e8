"""Vacuums of Iceberg tables on real files: every snapshot, tag and branch that stays can be read by every reader."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from actor.ports import TableJob, TableJobOutcome
from actor.vacuum.steps import VacuumLimits
from decider.formats.iceberg.table import IcebergFormat, IcebergSettings
from decider.formats.table_format import VacuumPreview
from shared.errors import LeaseLost, RetryableError, Unsupported
from shared.formats.iceberg.names import VACUUM_KEY
from shared.formats.iceberg.orphans import MIN_ORPHAN_AGE_MS
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import VACUUM
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.contract.formats.worlds import access
from tests.support.aged_table import set_time
from tests.support.local_vacuum import Control
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.iceberg_lab import IcebergLab

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning"),
]

POLICY = Policy(vacuum=True, min_retain_s=0)
NOW = VacuumOptions(force=True, retain_s=0)
WITH_ORPHANS = VacuumOptions(with_orphans=True, force=True, retain_s=0)

Rows = list[tuple[Any, ...]]


def vacuum(
    ice: "IcebergLab", table: str, options: VacuumOptions = NOW, control: Control | None = None
) -> TableJobOutcome:
    """Vacuum a table after a moment, so that its newest commit is older than the retention, which is none."""
    newest = max(int(row[0]) for row in ice.sql(f"SELECT unix_millis(committed_at) FROM {table}.snapshots").collect())
    until("the clock moved on", lambda: time.time() * 1000 > newest + 50)
    job = TableJob(VACUUM, ice.location(table), POLICY, CommitOrigin("job-1", 7), options=options.encode())
    return ice.engine.run_table_job(job, control or Control())


def preview(ice: "IcebergLab", table: str, options: VacuumOptions) -> VacuumPreview:
    return asyncio.run(ice.reader(table).plan_vacuum(POLICY, options, int(time.time() * 1000)))


def stored(ice: "IcebergLab", table: str) -> set[str]:
    """Return the names of all files of a table but its metadata files."""
    root = ice.folder / "db" / table.rpartition(".")[2]
    found = (str(path.relative_to(root)) for path in root.rglob("[!.]*") if path.is_file())
    return {name for name in found if not name.endswith((".metadata.json", "version-hint.text"))}


def branched(ice: "IcebergLab", *, version: int = 2) -> str:
    """Make a table with a tag, a branch that went on, deletes and rewrites; all of it in a moment."""
    merge = {f"write.{kind}.mode": "merge-on-read" for kind in ("delete", "update")}
    table = ice.create("t", version=version, by="dt", properties=merge if version > 1 else {})
    for number in range(3):
        ice.append(table, number)
    java = ice.java(table)
    java.manageSnapshots().createTag("tagged", java.currentSnapshot().snapshotId()).commit()
    ice.sql(f"DELETE FROM {table} WHERE id % 7 = 0")
    java.refresh()
    java.manageSnapshots().createBranch("audit", java.currentSnapshot().snapshotId()).commit()
    ice.sql(f"INSERT INTO {table}.branch_audit SELECT * FROM {table} LIMIT 3")
    ice.append(table, 3)
    for partition in sorted({file.partition for file in asyncio.run(ice.reader(table).snapshot()).files}):
        ice.rewrite(table, ice.live(table, partition))
    ice.append(table, 4)
    ice.sql(f"DELETE FROM {table} WHERE id = 85")
    return table


def refs(ice: "IcebergLab", table: str) -> dict[str, int]:
    return {row[0]: row[1] for row in ice.sql(f"SELECT name, snapshot_id FROM {table}.refs").collect()}


def readers(ice: "IcebergLab", table: str, version: int) -> dict[str, Callable[[int], Rows]]:
    """Return each reader that can travel to a snapshot of the table by name; it returns rows in order."""
    from pyiceberg.table import StaticTable

    from tests.iceberg_stress.readers import _DuckDb

    folder = ice.folder / "db" / table.rpartition(".")[2] / "metadata"
    newest = folder / f"v{(folder / 'version-hint.text').read_text().strip()}.metadata.json"
    columns = "id, v, x"

    def spark(snapshot: int) -> Rows:
        return sorted(
            tuple(row) for row in ice.sql(f"SELECT {columns} FROM {table} VERSION AS OF {snapshot}").collect()
        )

    def pyiceberg(snapshot: int) -> Rows:
        static = StaticTable.from_metadata(newest.as_uri())
        found = static.scan(snapshot_id=snapshot, selected_fields=("id", "v", "x")).to_arrow()
        return sorted(zip(*(found[name].to_pylist() for name in ("id", "v", "x")), strict=True))

    def duckdb(snapshot: int) -> Rows:
        scan = f"iceberg_scan('{newest}', snapshot_from_id => {snapshot})"
        return sorted(_DuckDb()._connection.execute(f"SELECT {columns} FROM {scan}").fetchall())

    found = {"spark": spark, "pyiceberg": pyiceberg, "duckdb": duckdb}
    if version > 2:
        del found["duckdb"]  # It applies the deletion vector of one file to another.
    return found


@pytest.mark.long("contracts")
def test_a_vacuum_keeps_what_branches_and_tags_need_and_deletes_what_its_dry_run_lists(ice: "IcebergLab") -> None:
    keeps_branches_and_tags(ice, version=2)


@pytest.mark.long("iceberg")
@pytest.mark.parametrize("version", [1, 3])
def test_a_vacuum_of_other_format_versions_keeps_and_deletes_the_same(ice: "IcebergLab", version: int) -> None:
    keeps_branches_and_tags(ice, version=version)


def test_what_another_entry_of_the_table_reads_stays(ice: "IcebergLab") -> None:
    """A table was registered in a second catalog, which wrote metadata since; here its files are rewritten."""
    from pyiceberg.table import StaticTable

    table = ice.create("t")
    for number in range(3):
        ice.append(table, number)
    folder = ice.folder / "db" / "t" / "metadata"
    early = (folder / f"v{(folder / 'version-hint.text').read_text().strip()}.metadata.json").read_bytes()
    (partition,) = {file.partition for file in asyncio.run(ice.reader(table).snapshot()).files}
    ice.rewrite(table, ice.live(table, partition))
    ice.append(table, 3)
    other = folder / "00004-other.metadata.json"
    other.write_bytes(early)
    listed = preview(ice, table, NOW)
    files = stored(ice, table)
    done = vacuum(ice, table)
    assert "may be in two catalogs" in done.reason
    assert "may be in two catalogs" in listed.left_out
    assert {one.name for one in listed.deletions} == files - stored(ice, table) != set()
    assert ice.sql(f"SELECT count(*) FROM {table}.snapshots").collect()[0][0] == 1
    found = StaticTable.from_metadata(other.as_uri()).scan().to_arrow()
    assert found.num_rows == 3 * (ice.sql(f"SELECT count(*) FROM {table}").collect()[0][0] // 4)
    other.unlink()
    vacuum(ice, table)
    with pytest.raises(FileNotFoundError):
        StaticTable.from_metadata(early_uri(folder, early)).scan().to_arrow()


def early_uri(folder: Path, metadata: bytes) -> str:
    """Return the place of metadata that are written elsewhere, where no vacuum sees them."""
    place = folder.parents[2] / "early.metadata.json"
    place.write_bytes(metadata)
    return place.as_uri()


def keeps_branches_and_tags(ice: "IcebergLab", *, version: int) -> None:
    table = branched(ice, version=version)
    before = refs(ice, table)
    rows = {one: {name: read(one) for name, read in readers(ice, table, version).items()} for one in before.values()}
    assert set(before) == {"main", "tagged", "audit"}
    listed = preview(ice, table, NOW)
    files = stored(ice, table)
    done = vacuum(ice, table)
    assert (done.is_complete, len(done.commits)) == (True, 2)
    assert refs(ice, table) == before
    left = {int(row[0]) for row in ice.sql(f"SELECT snapshot_id FROM {table}.snapshots").collect()}
    assert left == set(before.values())
    assert done.figures["snapshots_expired"] == listed.snapshots > 3
    assert {one.name for one in listed.deletions} == files - stored(ice, table)
    assert done.figures["files_deleted"] == len(listed.deletions) > 5
    for snapshot, wanted in rows.items():
        found = {name: read(snapshot) for name, read in readers(ice, table, version).items()}
        assert found == wanted, snapshot
        assert len({str(one) for one in found.values()}) == 1
    again = vacuum(ice, table)
    assert (again.figures["files_planned"], again.figures["snapshots_expired"]) == (0, 0)
    assert VACUUM_KEY in {row[0] for row in ice.sql(f"SHOW TBLPROPERTIES {table}").collect()}


@pytest.mark.long("iceberg")
@pytest.mark.parametrize("at", ["expiring", "expired", "deleting 0", "deleting 4"])
def test_a_run_after_one_that_died_deletes_the_rest(ice: "IcebergLab", at: str) -> None:
    table = branched(ice)
    heads = refs(ice, table)
    rows = {one: readers(ice, table, 2)["spark"](one) for one in heads.values()}
    gone = {one.name for one in preview(ice, table, NOW).deletions}
    files, control = stored(ice, table), Control()
    control.reached = dying(at)  # type: ignore[method-assign]
    ice.engine._settings = replace(ice.engine._settings, vacuum=VacuumLimits(batch=4))
    with pytest.raises(LeaseLost):
        vacuum(ice, table, control=control)
    assert files - stored(ice, table) < gone
    assert {one: readers(ice, table, 2)["spark"](one) for one in heads.values()} == rows
    assert vacuum(ice, table).is_complete
    assert files - stored(ice, table) == gone
    assert {one: readers(ice, table, 2)["spark"](one) for one in heads.values()} == rows


def dying(at: str) -> Callable[..., None]:
    def reached(point: str, done: int = 0, total: int = 0) -> None:  # noqa: ARG001 - the control's
        if at in (point, f"{point} {done}"):
            raise LeaseLost("another actor has the job")

    return reached


@pytest.mark.long("iceberg")
def test_only_old_files_that_no_snapshot_names_are_orphans(ice: "IcebergLab") -> None:
    table = branched(ice)
    root = ice.folder / "db" / "t"
    data, metadata = next((root / "data").rglob("*.parquet")), next((root / "metadata").glob("snap-*.avro"))
    old_ms = int(time.time() * 1000) - MIN_ORPHAN_AGE_MS - 60_000
    planted = {
        root / "data" / "old.parquet": True,
        data.parent / "old-of-a-partition.parquet": True,
        metadata.parent / "old-m0.avro": True,
        root / "data" / "young.parquet": False,
        root / "data" / "_hidden" / "a.parquet": False,
        root / "data" / "notes.txt": False,
        root / "elsewhere" / "a.parquet": False,
        root / "inner" / "data" / "a.parquet": False,
    }
    for place in planted:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"x")
        if "young" not in place.name:
            set_time(place, old_ms)
    for place in (*root.rglob("*.parquet"), *root.rglob("*.avro")):
        if place not in planted:
            set_time(place, old_ms)
    rows = {one: readers(ice, table, 2)["spark"](one) for one in refs(ice, table).values()}
    listed = preview(ice, table, WITH_ORPHANS)
    orphans = {one.name for one in listed.deletions if one.is_orphan}
    assert orphans == {str(place.relative_to(root)) for place, is_orphan in planted.items() if is_orphan}
    done = vacuum(ice, table, WITH_ORPHANS)
    assert done.figures["orphan_files_deleted"] == 3
    assert {place: not place.exists() for place in planted} == planted
    assert {one: readers(ice, table, 2)["spark"](one) for one in refs(ice, table).values()} == rows
    other = (root / "metadata" / "v1.metadata.json").read_text().replace("table-uuid", "another").replace('":"', '":"0')
    (root / "metadata" / "0-of-a-table-that-was-renamed.metadata.json").write_text(other)
    (root / "data" / "old.parquet").write_bytes(b"x")
    set_time(root / "data" / "old.parquet", old_ms)
    done = vacuum(ice, table, WITH_ORPHANS)
    assert (done.figures["orphan_files_deleted"], "renamed" in done.reason) == (0, True)


@pytest.mark.long("iceberg")
def test_a_table_whose_files_may_belong_to_others_is_left_alone(ice: "IcebergLab") -> None:
    table = branched(ice)
    ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('gc.enabled'='false')")
    files = stored(ice, table)
    with pytest.raises(Unsupported, match="files may belong to other tables"):
        vacuum(ice, table)
    with pytest.raises(Unsupported, match="files may belong to other tables"):
        preview(ice, table, NOW)
    assert stored(ice, table) == files


@pytest.mark.long("iceberg")
def test_a_file_that_becomes_live_again_while_a_vacuum_runs_stays(ice: "IcebergLab") -> None:
    """A snapshot expires while another writer, which still knows it, adds one of its files again."""
    table = ice.create("t")
    ice.append(table, 0)
    java, head = ice.java(table), asyncio.run(ice.reader(table).snapshot())
    (lost,) = (file.path for file in head.files)
    group = FileGroup(WHOLE_TABLE, head.files, RewriteMode.FULL)
    loaded = ice.engine._tables.load(ice.location(table))
    (live,) = loaded.live(java.currentSnapshot().snapshotId(), [group]).values()
    ice.sql(f"DELETE FROM {table}")
    control = Control()

    def reached(point: str, done: int = 0, total: int = 0) -> None:  # noqa: ARG001 - the control's
        if (point, done) == ("deleting", 0):
            java.refresh()
            java.newAppend().appendFile(live.task.file()).commit()

    control.reached = reached  # type: ignore[method-assign]
    done = vacuum(ice, table, control=control)
    assert done.figures["files_live_again"] == 1
    assert Path(lost.removeprefix("file://").removeprefix("file:")).exists()
    assert len(ice.rows(table)) == 20
    assert ice.live(table, WHOLE_TABLE)


@pytest.mark.long("iceberg")
@pytest.mark.parametrize("fault", ["", "lost-reply", "cut", "slow", "conflict", "error", "dropped", "unavailable"])
def test_whatever_a_catalog_answers_to_the_expiry_nothing_that_is_needed_goes(
    spark: "SparkSession", tmp_path: Path, fault: str
) -> None:
    from actor.formats.iceberg.engine import IcebergEngine, IcebergEngineSettings
    from tests.support.iceberg_rest_lake import rest_lake

    with rest_lake(tmp_path) as lake:
        lake.make(3)
        table = lake.catalog.load_table("db.t")
        table.manage_snapshots().create_tag(table.metadata.snapshots[1].snapshot_id, "tagged").commit()
        tagged = table.metadata.snapshots[1].snapshot_id
        table.overwrite(pa.table({"id": [1, 2, 3]}, schema=pa.schema([("id", pa.int64())])))
        rows = lake.ids(), sorted(table.scan(snapshot_id=tagged).to_arrow()["id"].to_pylist())
        newest_ms = table.metadata.snapshots[-1].timestamp_ms
        until("the clock moved on", lambda: time.time() * 1000 > newest_ms + 50)
        engine = IcebergEngine(spark, IcebergEngineSettings({"lake": lake.options}))
        place = "catalog://lake/db/t"
        reader = IcebergFormat(access(), IcebergSettings({"lake": lake.options})).open(place)
        listed = asyncio.run(reader.plan_vacuum(POLICY, WITH_ORPHANS, int(time.time() * 1000)))
        root = Path(table.location().removeprefix("file://"))
        files = {path for path in root.rglob("*") if path.is_file() and path.suffix != ".json"}
        job = TableJob(VACUUM, place, POLICY, CommitOrigin("job-1", 7), options=WITH_ORPHANS.encode())
        if fault:
            lake.fail(fault)
        try:
            engine.run_table_job(job, Control())
        except RetryableError:
            assert fault
        until("no commit is under way", lake.is_quiet)
        assert engine.run_table_job(job, Control()).is_complete
        left = {path for path in files if path.exists()}
        assert {str(path.relative_to(root)) for path in files - left} == {one.name for one in listed.deletions}
        assert listed.snapshots >= 2
        table.refresh()
        found = lake.ids(), sorted(table.scan(snapshot_id=tagged).to_arrow()["id"].to_pylist())
        assert found == rows
