"""Iceberg tables beside Delta's: found in a catalog, followed along their snapshots, decided by the same rules."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.exceptions import ValidationError
from pyiceberg.manifest import DataFileContent
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from sqlalchemy import text
from typer.testing import CliRunner

from actor.queue_executor import SyncQueueExecutor, connect
from decider.api.routes.advice import statement
from decider.background.auto_analyze import AdviceSources, AnalysisOutcome, AutoAnalyze
from decider.formats.iceberg.table import IcebergFormat, IcebergSettings
from decider.store.tables.table_state import TableStateStore
from decider.store.tables.timer_queries import TimerStore
from services.cli.__main__ import app
from services.cli.local.plan import LocalRequest, make_plan
from shared.errors import RefusedFiles
from shared.formats.iceberg.names import VACUUM_KEY
from shared.formats.iceberg.positions import position_digest
from shared.formats.options import FormatOptions
from shared.jobs.payload import JobPayload, RewriteKind
from shared.layout.commit_metadata import CommitMetadata
from shared.partition_refusals import NOTHING, TableFingerprint
from shared.paths.locations import table_id
from shared.policy.policy import Policy
from shared.queue import commands, queries
from shared.queue.model import JobState, RunResult
from shared.refusals import RefusalReason
from shared.table import CommitOrigin, ExaminedTable
from tests.contract.formats.worlds import access
from tests.support.advice_world import report_reads
from tests.support.aged_table import DAY_MS, now_ms, set_time
from tests.support.iceberg_folder import IcebergFolder
from tests.support.live_decider import LiveDecider, decider_settings

pytestmark = [
    pytest.mark.redis,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning"),
]

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string())])
PLACE = "catalog://lake/sales/orders"


class Lake:
    """A catalog in a file, and the table sales.orders in it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.options = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": folder.as_uri()}
        self.catalog = SqlCatalog("lake", **self.options)
        self.catalog.create_namespace("sales")
        by_kind = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "kind"))
        schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "kind", StringType()))
        self.table = self.catalog.create_table("sales.orders", schema, partition_spec=by_kind)

    def append(self, commits: int = 1) -> None:
        for number in range(commits):
            self.table.append(pa.table({"id": range(number, number + 50), "kind": ["a", "b"] * 25}, schema=SCHEMA))

    def configure(self, **properties: str) -> None:
        with self.table.transaction() as change:
            change.set_properties({name.replace("__", "."): value for name, value in properties.items()})

    def tamper(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Write the metadata of another release: as they are, but for a change, which pyiceberg may not know."""
        with self.catalog.engine.begin() as connection:
            place = connection.execute(text("SELECT metadata_location FROM iceberg_tables")).scalar_one()
            path = Path(place.removeprefix("file://"))
            raw = json.loads(path.read_bytes())
            change(raw)
            made = path.with_name(f"99999-{len(list(path.parent.iterdir()))}.metadata.json")
            made.write_text(json.dumps(raw))
            connection.execute(text("UPDATE iceberg_tables SET metadata_location = :place"), {"place": made.as_uri()})

    def files_of(self, snapshot: Snapshot) -> set[str]:
        """Return the files that a snapshot needs, as paths."""
        found = {snapshot.manifest_list}
        for manifest in snapshot.manifests(self.table.io):
            entries = manifest.fetch_manifest_entry(self.table.io, discard_deleted=True)
            found |= {manifest.manifest_path, *(entry.data_file.file_path for entry in entries)}
        return {path.removeprefix("file://") for path in found}

    def files(self) -> dict[str, int]:
        """Return how many files pyiceberg scans in each partition."""
        found: dict[str, int] = {}
        for task in self.table.refresh().scan().plan_files():
            key = f'{{"kind":"{task.file.partition[0]}"}}'
            found[key] = found.get(key, 0) + 1
        return found


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path / "warehouse")
    yield made
    made.catalog.engine.dispose()


@pytest.fixture
def decider(redis_url: str, tmp_path: Path, lake: Lake) -> Iterator[LiveDecider]:
    down = {"type": "rest", "uri": "http://127.0.0.1:9"}
    formats = FormatOptions({"lake": lake.options, "down": down}, iceberg_folders=True)
    settings = decider_settings(redis_url, roots=("catalog://lake", "catalog://down", str(tmp_path)), formats=formats)
    with LiveDecider(settings) as live:
        yield live


async def no_jobs() -> bool:
    return False


def cli(decider: LiveDecider, *arguments: str) -> str:
    ran = decider.command(*arguments)
    assert ran.exit_code == 0, ran.output
    return ran.output


def register(decider: LiveDecider, location: str, **more: Any) -> httpx.Response:
    answer = decider.post("/v1/tables", {"location": location, **more})
    decider.drain()
    return answer


def counts(decider: LiveDecider, name: str) -> dict[str, int]:
    return {partition: state.files for partition, state in decider.partitions(name).items() if state.files}


def queued(redis_url: str) -> list[JobPayload]:
    jobs = SyncQueueExecutor(connect(redis_url), "default").run(queries.jobs("default", JobState.QUEUED)).jobs
    return [JobPayload.decode(job.payload) for job in jobs]


def kinds(redis_url: str) -> set[str]:
    jobs = SyncQueueExecutor(connect(redis_url), "default").run(queries.jobs("default", JobState.QUEUED)).jobs
    return {job.key.kind for job in jobs}


def test_a_table_of_a_catalog_is_followed_and_its_jobs_name_format_and_place(
    decider: LiveDecider, lake: Lake, redis_url: str
) -> None:
    lake.append(6)
    assert register(decider, PLACE, name="orders").status_code == httpx.codes.CREATED
    assert counts(decider, "orders") == lake.files() == {'{"kind":"a"}': 6, '{"kind":"b"}': 6}
    lake.append(6)
    decider.sweep()
    assert counts(decider, "orders") == lake.files() == {'{"kind":"a"}': 12, '{"kind":"b"}': 12}
    jobs = queued(redis_url)
    assert {(job.format, job.location, job.table_uuid) for job in jobs} == {
        ("iceberg", PLACE, str(lake.table.metadata.table_uuid))
    }
    lake.table.delete("kind = 'a'")
    decider.sweep()
    assert counts(decider, "orders") == lake.files() == {'{"kind":"b"}': 12}
    assert decider.get("/v1/tables/orders")["state"]["rebuilds"] == 0


@pytest.mark.parametrize("trusted_ms", [0, 60_000])
def test_new_commits_cost_one_answer_of_the_catalog_one_list_and_a_manifest_each(
    decider: LiveDecider, lake: Lake, monkeypatch: pytest.MonkeyPatch, trusted_ms: int
) -> None:
    """Also the first ones that this process sees, and those after a pause: they prove that the table is the same."""
    monkeypatch.setattr("decider.tracking.table_context.TRUSTED_MS", trusted_ms)
    register(decider, PLACE, name="orders")
    meter = decider.services.operations.read_meter
    for commits in (1, 3, 20):
        lake.append(commits)
        before = meter.counts.total()
        decider.sweep()
        assert meter.counts.total() - before == 1 + 1 + commits
        assert counts(decider, "orders") == lake.files()


def test_a_rollback_leads_to_a_rebuild(decider: LiveDecider, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decider.tracking.table_context.TRUSTED_MS", 0)
    lake.append(3)
    register(decider, PLACE, name="orders")
    first = lake.table.metadata.snapshots[0].snapshot_id
    lake.table.manage_snapshots().rollback_to_snapshot(first).commit()
    decider.sweep()
    assert counts(decider, "orders") == lake.files() == {'{"kind":"a"}': 1, '{"kind":"b"}': 1}
    lake.append()
    decider.sweep()
    assert counts(decider, "orders") == lake.files()


def test_a_table_in_cells_gets_runs_for_what_is_new_and_is_not_compacted(
    decider: LiveDecider, lake: Lake, redis_url: str
) -> None:
    lake.configure(**{"lakewright__cluster": "cells", "lakewright__cluster-by": "id"})
    register(decider, PLACE, name="orders")
    lake.append(31)
    decider.tick()
    assert kinds(redis_url) == set()
    lake.append(1)
    decider.tick()
    assert kinds(redis_url) == {"cluster"}
    dry = decider.post("/v1/tables/orders/actions/cluster", {"dry_run": True}).json()
    assert (dry["due"], dry["reason"], dry["unclustered_files"]) == (True, "many_new_files", 64)
    assert any("rewrites keep it in cells" in note for note in decider.get("/v1/tables/orders")["policy"]["notes"])
    asked = decider.post("/v1/tables/orders/optimize", {"mode": "full"}).json()
    assert (asked["jobs"], asked["reasons"]) == ([], {"clustered_table": 2})
    lake.configure(lakewright__cluster="off")
    decider.tick()
    assert kinds(redis_url) == {"compact"}


def test_properties_of_the_table_and_their_names_in_amoro_are_in_force_at_once(
    decider: LiveDecider, lake: Lake, redis_url: str
) -> None:
    lake.configure(**{"self-optimizing__enabled": "false"})
    lake.append(12)
    register(decider, PLACE, name="orders")
    assert queued(redis_url) == []
    lake.configure(**{"self-optimizing__enabled": "true", "write__target-file-size-bytes": str(1 << 20)})
    decider.sweep()
    assert {job.policy.target_bytes for job in queued(redis_url)} == {1 << 20}
    lake.configure(**{"encryption__key-id": "k"})
    decider.sweep()
    assert "encrypted" in decider.get("/v1/tables/orders")["refusal"]["reason"]
    assert queued(redis_url) == []


def test_advice_names_a_table_of_a_catalog_in_sql_and_for_one_in_a_folder_names_no_statement(
    decider: LiveDecider, lake: Lake, tmp_path: Path
) -> None:
    folder = IcebergFolder(tmp_path / "events")
    folder.create("0" * 26 + "00000a")
    for _ in range(80):
        folder.later(600_000)
        folder.commit([folder.file(300_000) for _ in range(4)])
    lake.append(2)
    assert register(decider, folder.location, name="events").status_code == httpx.codes.CREATED
    assert register(decider, PLACE, name="sales.orders").status_code == httpx.codes.CREATED
    decider.drain()
    services = decider.services.tables
    sources = AdviceSources(
        *(services.registry, services.states, services.formats, services.defaults, decider.services.queue.reads),
        twins=decider.services.requests.tracker.twins,
    )
    later = 1_700_000_000_000 + 10 * DAY_MS
    analyze = AutoAnalyze(
        services.advice, sources, share=1.0, has_jobs=no_jobs, is_needed=lambda: False, now_ms=lambda: later
    )
    outcomes = {decider.run(analyze.run_once()).outcome for _ in range(2)}
    assert AnalysisOutcome.ADVISED in outcomes
    found = decider.get("/v1/tables/events/advice")["advice"]
    assert (found["table"], found["statement"], found["change"] != {}) == ("events", "", True)
    in_catalog = decider.run(services.registry.find("sales.orders"))
    assert in_catalog is not None
    (stored,) = decider.run(services.advice.all())
    assert statement(stored, in_catalog).startswith("ALTER TABLE `lake`.`sales`.`orders` SET TBLPROPERTIES (")
    shown = cli(decider, "advice", "show", "events")
    assert "ALTER TABLE" not in shown
    assert f"advice apply events {found['id']}` sets lakewright." in shown
    printed = cli(decider, "advice", "apply", "events", found["id"], "--dry-run")
    assert printed.startswith("no SQL names this table: lakewright.")


def analyze_once(decider: LiveDecider, at_ms: int) -> None:
    """Look for advice at a time."""
    services = decider.services.tables
    sources = AdviceSources(
        *(services.registry, services.states, services.formats, services.defaults, decider.services.queue.reads),
        twins=decider.services.requests.tracker.twins,
    )
    analyze = AutoAnalyze(
        services.advice, sources, share=1.0, has_jobs=no_jobs, is_needed=lambda: False, now_ms=lambda: at_ms
    )
    decider.run(analyze.run_once())


def test_cells_are_advised_by_reads_of_two_columns_and_set_by_a_job(decider: LiveDecider, tmp_path: Path) -> None:
    """Each file has all ids and all countries, and readers look one of them up."""
    folder = IcebergFolder(tmp_path / "events_by_id")
    folder.create("0" * 26 + "00000c")
    bounds = {1: (to_bytes(LongType(), 0), to_bytes(LongType(), 60_000)), 4: (b"ad", b"zw")}
    for _ in range(60):
        folder.later(3_600_000)
        folder.commit([folder.file(1 << 27, bounds=bounds)])
    register(decider, folder.location, name="events_by_id")
    decider.drain()
    table = decider.get("/v1/tables/events_by_id")["id"]
    for column, value in (("id", 20_000), ("country", "fr")):
        report_reads(decider, table, {"type": "eq", "term": column, "value": value}, 500)
    analyze_once(decider, 1_700_000_000_000 + 61 * 3_601_000)
    found = decider.get("/v1/tables/events_by_id/advice")["advice"]
    assert found["change"].keys() == {"lakewright.cluster", "lakewright.cluster-by"}
    assert {*found["change"]["lakewright.cluster-by"].split(", ")} == {"id", "country"}
    assert not found["needs_owner"]
    order = found["proof"]["order"]
    assert (order["share_read_now"], order["bytes"]) == (1.0, 60 << 27)
    assert order["share_read_sorted"] < 0.2


@pytest.mark.parametrize("has_files", [True, False], ids=["kept", "deleted by others"])
def test_a_vacuum_is_advised_for_snapshots_whose_files_are_kept(
    decider: LiveDecider, tmp_path: Path, *, has_files: bool
) -> None:
    """A file is replaced every hour for ten days; files of the first three are needed by no snapshot that stays."""
    folder = IcebergFolder(tmp_path / "replaced")
    folder.create("0" * 26 + "00000b")
    for _ in range(240):
        folder.later(3_600_000)
        new = folder.file(1 << 30)
        if has_files:
            path = Path(new.path.removeprefix("file://"))
            path.parent.mkdir(exist_ok=True)
            with path.open("wb") as file:
                file.truncate(new.size)
        folder.commit([new], list(folder.live), operation="overwrite")
    now_ms = 1_700_000_000_000 + 240 * 3_601_000
    register(decider, folder.location, name="replaced")
    decider.drain()
    analyze_once(decider, now_ms)
    found = decider.get("/v1/tables/replaced/advice")["advice"]
    if not has_files:
        assert found is None or "lakewright.vacuum" not in found["change"]
        return
    assert found["change"] == {"lakewright.vacuum": "on"}
    held = found["proof"]["held"]
    assert held["retention_s"] == 7 * 86_400
    assert 70 << 30 <= held["bytes"] < 73 << 30
    assert found["saved_share"] > 0.9


def test_discovery_finds_the_tables_of_a_catalog(decider: LiveDecider, lake: Lake) -> None:
    lake.append()
    decider.run(decider.services.requests.discovery.run_once())
    decider.drain()
    (table,) = decider.get("/v1/tables")["tables"]
    assert (table["name"], table["tenant"], table["location"]) == ("sales.orders", "sales", PLACE)


def test_delete_files_count_for_their_partition(decider: LiveDecider, tmp_path: Path) -> None:
    table = IcebergFolder(tmp_path / "t", spec="none")
    table.create("00000000-0000-4000-8000-000000000001")
    table.commit([table.file(100), table.file(200)])
    register(decider, table.location, name="t")
    values = table.file(9, content=DataFileContent.EQUALITY_DELETES, rows=2)
    places = table.file(9, content=DataFileContent.POSITION_DELETES, rows=5)
    table.commit([values, places], operation="overwrite")
    decider.sweep()
    (state,) = decider.partitions("t").values()
    assert (state.files, state.bytes, state.dv_files, state.deleted_rows) == (2, 300, 2, 5)
    table.commit(removed=[values.path, places.path], operation="replace")
    decider.sweep()
    (state,) = decider.partitions("t").values()
    assert (state.dv_files, state.deleted_rows) == (0, 0)


def test_a_dry_run_of_a_vacuum_counts_the_delete_files_that_no_data_file_needs(
    decider: LiveDecider, tmp_path: Path
) -> None:
    table = IcebergFolder(tmp_path / "t", spec="none")
    table.create("00000000-0000-4000-8000-000000000002")
    data = table.file(100)
    table.commit([data])
    table.commit([table.file(9, content=DataFileContent.EQUALITY_DELETES)], operation="overwrite")
    register(decider, table.location, name="t")
    asked = {"dry_run": True}
    assert "delete file" not in decider.post("/v1/tables/t/actions/vacuum", asked).json()["message"]
    table.commit(removed=[data.path], operation="delete")
    message = decider.post("/v1/tables/t/actions/vacuum", asked).json()["message"]
    assert "1 delete file without data files would leave the table." in message


def test_no_job_is_queued_that_no_actor_runs_on_iceberg_tables(
    decider: LiveDecider, lake: Lake, redis_url: str
) -> None:
    lake.configure(
        **{
            "lakewright__checkpoint-every": "2",
            "lakewright__sort-by": "id",
        }
    )
    lake.append(12)
    register(decider, PLACE, name="orders")
    lake.append(2)
    decider.sweep()
    assert kinds(redis_url) == {"compact"}
    assert {job.policy.sort_order for job in queued(redis_url)} == {None}
    timers = decider.run(TimerStore(decider.services.queue.executor, ledger_kept=1).all(table_id(PLACE)))
    assert not [name for name in timers if name.startswith("checkpoint")]
    shown = decider.get("/v1/tables/orders")
    assert {note.split(" ")[0] for note in shown["policy"]["notes"]} == {"checkpoint-every", "sort-by"}
    decisions = decider.get("/v1/tables/orders/decisions", limit=100)["decisions"]
    assert {one["reason"] for one in decisions if one["action"] == "sort"} == {"not_for_format"}
    answer = decider.post("/v1/tables/orders/actions/checkpoint", {})
    assert answer.status_code == httpx.codes.CONFLICT
    assert "Lakewright runs no checkpoint" in answer.json()["detail"]
    called = CliRunner().invoke(app, ["--url", decider.url, "checkpoint", "orders"], env={"COLUMNS": "400"})
    assert called.exit_code == 1
    assert "use rewrite-manifests" in str(called.exception)
    assert kinds(redis_url) == {"compact"}
    purged = decider.post("/v1/tables/orders/actions/reclaim", {"confirm": "orders"}).json()
    assert [one["action"] for one in purged["jobs"]] == ["vacuum"], "there is no log to clean up"


def test_a_vacuum_of_an_iceberg_table_is_shown_requested_and_refused_like_one_of_delta(
    decider: LiveDecider, lake: Lake, redis_url: str
) -> None:
    lake.append(2)
    snapshots = [one.snapshot_id for one in lake.table.refresh().metadata.snapshots]
    lake.table.manage_snapshots().create_tag(snapshots[0], "first").commit()
    lake.table.overwrite(pa.table({"id": [1], "kind": ["a"]}, schema=SCHEMA))
    register(decider, PLACE, name="orders")
    root = Path(lake.table.location().removeprefix("file://"))
    for place in ("data/kind=a/old.parquet", "data/kind=a/young.parquet"):
        (root / place).write_bytes(b"x")
    set_time(root / "data/kind=a/old.parquet", now_ms() - 4 * DAY_MS)
    now = {"dry_run": True, "retain_hours": 0, "force": True}
    assert decider.post("/v1/tables/orders/actions/vacuum", {"dry_run": True}).json()["files"] == 0
    plan = decider.post("/v1/tables/orders/actions/vacuum", now).json()
    kept = {snapshots[0], lake.table.refresh().metadata.current_snapshot_id}
    gone = [one for one in lake.table.metadata.snapshots if one.snapshot_id not in kept]
    assert f"{len(gone)} snapshots would expire" in plan["message"]
    needed, unneeded = (
        {path for one in lake.table.metadata.snapshots if (one in gone) is is_gone for path in lake.files_of(one)}
        for is_gone in (False, True)
    )
    assert {f"{root}/{one['name']}" for one in plan["deletions"]} == unneeded - needed
    with_orphans = decider.post("/v1/tables/orders/actions/vacuum", {**now, "orphans": True}).json()
    assert [one["name"] for one in with_orphans["deletions"] if one["orphan"]] == ["data/kind=a/old.parquet"]
    assert with_orphans["files"] == plan["files"] + 1
    answer = decider.post("/v1/tables/orders/actions/vacuum", {"retain_hours": 1})
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "below the table's retention of 168 hours" in answer.text
    assert decider.post("/v1/tables/orders/actions/vacuum", {}).status_code == httpx.codes.ACCEPTED
    assert "vacuum" in kinds(redis_url)
    lake.configure(gc__enabled="false")
    refused = decider.post("/v1/tables/orders/actions/vacuum", now)
    assert refused.status_code == httpx.codes.CONFLICT
    assert "files may belong to other tables" in refused.text


def test_deletes_by_position_are_seen_by_decisions_dry_runs_and_local_runs_alike(
    decider: LiveDecider, tmp_path: Path, redis_url: str
) -> None:
    """A file that is alone in its partition has a job once enough of its rows are deleted."""
    made = IcebergFolder(tmp_path / "deleted")
    made.create("0-00abcd")
    made.commit([made.file(200 << 20, rows=100)])
    (path,) = made.live
    register(decider, made.location, name="deleted")
    assert queued(redis_url) == []

    def delete(rows: int) -> None:
        file = made.file(9, content=DataFileContent.POSITION_DELETES, rows=rows, referenced=path)
        made.commit([file], operation="overwrite")
        decider.post("/v1/events", {"table": made.location})
        decider.drain()

    delete(5)
    assert queued(redis_url) == []
    full = decider.post("/v1/tables/deleted/optimize", {"dry_run": True, "mode": "full"}).json()
    assert full["files_replaced"] == 1, "a full rewrite leaves no deleted row"
    assert decider.post("/v1/tables/deleted/optimize", {"dry_run": True}).json()["files_replaced"] == 0
    reader = IcebergFormat(access(), IcebergSettings(reads_folders=True)).open(made.location)
    snapshot = asyncio.run(reader.snapshot())
    for kind, replaced in ((RewriteKind.FULL, 1), (RewriteKind.LEVELS, 0)):
        assert make_plan(made.location, snapshot, LocalRequest(kind), Policy(), now_ms=0).files_replaced == replaced
    delete(5)
    assert [one.reason for one in queued(redis_url)] == ["single_file_rewrite"]
    assert decider.post("/v1/tables/deleted/optimize", {"dry_run": True}).json()["files_replaced"] == 1


def test_many_delete_files_are_counted_merged_when_due_and_never_on_delta_tables(
    decider: LiveDecider, tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("decider.decide.metadata_upkeep.EVALUATED_AFTER_MS", 0)
    made = IcebergFolder(tmp_path / "merged")
    made.create("0-00abcd")
    made.commit([made.file(200 << 20, rows=1_000)])
    (path,) = made.live
    register(decider, made.location, name="merged", properties={"lakewright.merge-deletes-at": "3"})

    def delete() -> None:
        file = made.file(9, content=DataFileContent.POSITION_DELETES, rows=1, referenced=path)
        made.commit([file], operation="overwrite")
        decider.post("/v1/events", {"table": made.location})
        decider.drain()
        decider.run(decider.task("timers").run_once())

    for _ in range(3):
        delete()
    assert "merge_deletes" not in kinds(redis_url), "two of three are superfluous"
    shown = decider.post("/v1/tables/merged/actions/merge-deletes", {"dry_run": True}).json()
    assert (shown["count"], shown["excess"], shown["due"]) == (3, 2, False)
    assert shown["reason"] == "few_delete_files"
    delete()
    assert "merge_deletes" in kinds(redis_url)
    decisions = decider.get("/v1/tables/merged/decisions", limit=100)["decisions"]
    reasons = [one["reason"] for one in decisions if one["action"] == "merge_deletes"]
    assert (reasons[0], {*reasons[1:]}) == ("many_delete_files", {"few_delete_files"})
    requested = decider.post("/v1/tables/merged/actions/merge-deletes", {}).json()
    assert [(job["action"], job["outcome"]) for job in requested["jobs"]] == [("merge_deletes", "merged")]
    called = decider.command("merge-deletes", "merged", "--dry-run")
    assert "3 are to be merged" in called.stdout.replace("\n", " ")
    write_deltalake(tmp_path / "delta", pa.table({"id": [1]}))
    register(decider, str(tmp_path / "delta"), name="delta", properties={"lakewright.merge-deletes-at": "4"})
    for body in ({}, {"dry_run": True}):
        refused = decider.post("/v1/tables/delta/actions/merge-deletes", body)
        assert (refused.status_code, "have no delete files" in refused.text) == (httpx.codes.CONFLICT, True)


def test_deletes_by_value_are_counted_and_converted_when_due(
    decider: LiveDecider, tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("decider.decide.metadata_upkeep.EVALUATED_AFTER_MS", 0)
    made = IcebergFolder(tmp_path / "converted")
    made.create("0-00abcd")
    made.commit([made.file(200 << 20, rows=1_000)])
    register(decider, made.location, name="converted", properties={"lakewright.convert-deletes-at": "2"})
    for is_due in (False, True):
        file = made.file(9, content=DataFileContent.EQUALITY_DELETES, rows=1)
        made.commit([file], operation="delete")
        decider.post("/v1/events", {"table": made.location})
        decider.drain()
        decider.run(decider.task("timers").run_once())
        assert ("convert_deletes" in kinds(redis_url)) is is_due
    shown = decider.post("/v1/tables/converted/actions/convert-deletes", {"dry_run": True}).json()
    assert (shown["count"], shown["due"], shown["reason"]) == (2, True, "many_deletes_by_value")
    requested = decider.post("/v1/tables/converted/actions/convert-deletes", {}).json()
    assert [(job["action"], job["outcome"]) for job in requested["jobs"]] == [("convert_deletes", "merged")]


def test_deletes_by_value_that_an_actor_refused_are_not_counted_again(
    decider: LiveDecider, tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They count again with others that are new, or once a data file is gone that they may have waited for."""
    monkeypatch.setattr("decider.decide.metadata_upkeep.EVALUATED_AFTER_MS", 0)
    made = IcebergFolder(tmp_path / "refused")
    made.create("0-00abcd")
    made.commit([made.file(200 << 20, rows=1_000), made.file(200 << 20, rows=1_000)])
    register(decider, made.location, name="refused", properties={"lakewright.convert-deletes-at": "2"})
    queue = SyncQueueExecutor(connect(redis_url), "default")

    def commit(*, deletes: int = 0, gone: Sequence[str] = ()) -> bool:
        """Return whether a conversion is due after a commit; it is refused at once."""
        new = [made.file(9, content=DataFileContent.EQUALITY_DELETES, rows=1) for _ in range(deletes)]
        made.commit(new, gone, operation="overwrite", summary={"deleted-data-files": str(len(gone))} if gone else {})
        decider.post("/v1/events", {"table": made.location})
        decider.drain()
        decider.run(decider.task("timers").run_once())
        shown = decider.post("/v1/tables/refused/actions/convert-deletes", {"dry_run": True}).json()
        nonce = str(made.commits)
        for claim in queue.run(commands.claim("default", worker="w", nonce=nonce, slots=9, lease_ms=60_000)):
            refused = RefusedFiles("INT96", reason=RefusalReason.TYPES)
            refused.examined = ExaminedTable(position_digest(made.uuid, made.snapshot))
            known = NOTHING.in_force(TableFingerprint(*JobPayload.decode(claim.payload).fingerprint))
            known = known.after_job(claim.key.kind, refused, claim.version, now_ms=1)
            end = {"run_result": RunResult.DONE, "cost_bytes": 0, "seen_version": claim.version}
            end["refusals"] = known.encode()
            queue.run(commands.finish("default", worker="w", nonce=nonce, id=claim.id, token=claim.token, **end))
            assert (claim.key.kind, shown["due"]) == ("convert_deletes", True)
            return True
        assert not shown["due"]
        return False

    (path, _) = made.live
    assert [commit(deletes=1), commit(deletes=1), commit(), commit(deletes=1)] == [False, True, False, False]
    assert [commit(deletes=1), commit(), commit(gone=[path]), commit()] == [True, False, True, False]
    last = decider.get("/v1/tables/refused/decisions", limit=1)["decisions"][0]
    assert last["reason"] == "few_deletes_by_value"
    assert "The last run refused 4 of them" in json.dumps(last)


def test_what_pyiceberg_does_not_know_blocks_no_table_and_an_unknown_type_is_refused_once(
    decider: LiveDecider, lake: Lake
) -> None:
    """Statistics of Presto, a variant column, a geometry and keys of the future."""
    lake.append(3)

    def extend(raw: dict[str, Any]) -> None:
        blob = {"type": "presto-sum-data-size-bytes-v1", "snapshot-id": 1, "sequence-number": 1, "fields": [1]}
        place = {"snapshot-id": raw["current-snapshot-id"], "statistics-path": f"{raw['location']}/metadata/s.stats"}
        sizes = {"file-size-in-bytes": 9, "file-footer-size-in-bytes": 1, "blob-metadata": [blob]}
        raw["statistics"] = [place | sizes]
        raw["a-key-of-the-future"] = {"nested": [1]}
        for number, kind in enumerate(("variant", "geometry(srid:4326)"), start=50):
            raw["schemas"][-1]["fields"].append({"id": number, "name": f"c{number}", "required": False, "type": kind})

    lake.tamper(extend)
    with pytest.raises(ValidationError, match="geometry"):
        lake.catalog.load_table("sales.orders")
    register(decider, PLACE, name="orders")
    assert sum(counts(decider, "orders").values()) == 6
    assert decider.get("/v1/tables/orders")["refusal"] is None
    assert decider.post("/v1/tables/orders/actions/vacuum", {"dry_run": True, "orphans": True}).is_success

    def unknown(raw: dict[str, Any]) -> None:
        raw["schemas"][-1]["fields"].append({"id": 60, "name": "v", "required": False, "type": "vector[3]"})
        raw["partition-specs"][-1]["fields"][0]["transform"] = "days"

    lake.tamper(unknown)
    decider.sweep()
    refusal = decider.get("/v1/tables/orders")["refusal"]
    assert "the transform 'days'" in json.dumps(refusal)
    assert "refused" in cli(decider, "tables", "show", "orders")


def test_a_table_under_two_names_is_not_vacuumed_and_both_are_named(decider: LiveDecider, lake: Lake) -> None:
    """The metadata of the second name stay as they are, and need files that expire by the first one."""
    lake.append(2)
    lake.catalog.register_table("sales.copy", lake.table.metadata_location)
    register(decider, PLACE, name="orders")
    path = "/v1/tables/orders/actions/vacuum"
    assert decider.post(path, {"dry_run": True}).status_code == httpx.codes.OK
    register(decider, "catalog://lake/sales/copy", name="copy")
    for name, other in (("orders", "copy"), ("copy", "orders")):
        for body in ({"dry_run": True}, {"retain_hours": 0, "force": True}):
            refused = decider.post(f"/v1/tables/{name}/actions/vacuum", body)
            assert refused.status_code == httpx.codes.CONFLICT, refused.text
            assert f"{name} and {other} are one table" in refused.text
    lake.catalog.drop_table("sales.copy")
    decider.post("/v1/events", {"table": "catalog://lake/sales/copy"})
    decider.drain()
    assert decider.post(path, {"dry_run": True}).status_code == httpx.codes.OK, "a name that is gone is none"


def test_a_vacuum_of_an_iceberg_table_is_due_when_files_expire_and_its_end_is_followed(
    decider: LiveDecider, lake: Lake, redis_url: str
) -> None:
    lake.configure(**{"lakewright__vacuum": "on", "lakewright__orphans-every": "off"})
    lake.append(2)
    register(decider, PLACE, name="orders")
    lake.table.overwrite(pa.table({"id": [1], "kind": ["a"]}, schema=SCHEMA))
    decider.sweep()
    assert "vacuum" not in kinds(redis_url), "nothing is older than a week"
    timers = decider.run(TimerStore(decider.services.queue.executor, ledger_kept=1).all(table_id(PLACE)))
    (due_ms,) = (timer for name, timer in timers.items() if name.startswith("vacuum"))
    assert 6 * DAY_MS < due_ms - now_ms() < 8 * DAY_MS
    before = decider.run(TableStateStore(decider.services.queue.executor).state(table_id(PLACE)))
    assert (before.removals.files, before.removals.vacuumed_ms) == (7, 0)
    mark = CommitMetadata(CommitOrigin("job", 1), vacuumed_until_ms=now_ms() + DAY_MS, vacuumed_orphans=1)
    with lake.table.transaction() as change:
        change.set_properties({VACUUM_KEY: mark.encode()})
    decider.sweep()
    after = decider.run(TableStateStore(decider.services.queue.executor).state(table_id(PLACE)))
    assert (after.removals.files, after.rebuilds) == (0, before.rebuilds)
    assert after.removals.vacuumed_ms == after.removals.listed_ms > 0


def test_waiting_jobs_that_no_actor_runs_any_more_are_cancelled_even_if_a_person_requested_them(
    decider: LiveDecider, lake: Lake, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.append(12)
    with monkeypatch.context() as patched:
        patched.setattr("shared.formats.registry.SUPPORT", {})
        register(decider, PLACE, name="orders")
        for path in ("vacuum", "checkpoint"):
            assert decider.post(f"/v1/tables/orders/actions/{path}", {}).status_code == httpx.codes.ACCEPTED
        assert kinds(redis_url) == {"compact", "vacuum", "checkpoint"}
    decider.sweep()
    assert kinds(redis_url) == {"compact", "vacuum"}


def test_a_name_without_a_table_and_an_unknown_catalog_are_refused(decider: LiveDecider) -> None:
    answer = register(decider, "catalog://lake/sales/none", wait_s=20)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "there is no table" in answer.text
    assert register(decider, "catalog://other/sales/none").status_code == httpx.codes.UNPROCESSABLE_ENTITY


def test_a_catalog_that_does_not_answer_is_a_failure_of_the_moment(decider: LiveDecider) -> None:
    answer = register(decider, "catalog://down/sales/orders", wait_s=20)
    assert answer.status_code == httpx.codes.CREATED
    reading = answer.json()["reading"]
    assert (reading["version"], reading["refusal"]) == (None, None)
    assert "catalog down" in reading["error"]


def test_many_manifests_are_counted_rewritten_when_due_and_never_on_delta_tables(
    decider: LiveDecider, lake: Lake, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("decider.decide.metadata_upkeep.EVALUATED_AFTER_MS", 0)
    lake.configure(**{"lakewright__rewrite-manifests-at": "4", "lakewright__enabled": "true"})
    lake.append(4)
    register(decider, PLACE, name="orders")
    decider.run(decider.task("timers").run_once())
    assert "rewrite_manifests" not in kinds(redis_url), "three of four are superfluous"
    lake.append(1)
    decider.sweep()
    shown = decider.post("/v1/tables/orders/actions/rewrite-manifests", {"dry_run": True}).json()
    sizes = [one.manifest_length for one in lake.table.refresh().current_snapshot().manifests(lake.table.io)]  # type: ignore[union-attr]
    assert (shown["count"], shown["bytes"], shown["excess"]) == (len(sizes), sum(sizes), 4) == (5, sum(sizes), 4)
    assert (shown["due"], shown["reason"]) == (True, "many_manifests")
    assert "rewrite_manifests" not in kinds(redis_url)
    decider.run(decider.task("timers").run_once())
    assert "rewrite_manifests" in kinds(redis_url)
    decisions = decider.get("/v1/tables/orders/decisions", limit=100)["decisions"]
    reasons = [one["reason"] for one in decisions if one["action"] == "rewrite_manifests"]
    assert reasons == ["many_manifests", "few_manifests"]
    (made, _) = (one for one in decisions if one["action"] == "rewrite_manifests")
    assert "Manifests of its snapshot: 5 " in made["message"]
    requested = decider.post("/v1/tables/orders/actions/rewrite-manifests", {}).json()
    assert [(job["action"], job["outcome"]) for job in requested["jobs"]] == [("rewrite_manifests", "merged")]
    called = decider.command("rewrite-manifests", "orders", "--dry-run")
    assert "1 would be enough" in called.stdout.replace("\n", " ")
    write_deltalake(tmp_path / "delta", pa.table({"id": [1]}))
    register(decider, str(tmp_path / "delta"), name="delta", properties={"lakewright.rewrite-manifests-at": "4"})
    for body in ({}, {"dry_run": True}):
        refused = decider.post("/v1/tables/delta/actions/rewrite-manifests", body)
        assert (refused.status_code, "have no manifests" in refused.text) == (httpx.codes.CONFLICT, True)
    (note,) = decider.get("/v1/tables/delta")["policy"]["notes"]
    assert note == "rewrite-manifests-at has no effect on Delta tables: they have no manifests"


def test_statistics_of_columns_are_due_where_rows_changed_and_never_on_delta_tables(
    decider: LiveDecider, lake: Lake, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("decider.decide.metadata_upkeep.EVALUATED_AFTER_MS", 0)
    lake.configure(**{"lakewright__compute-statistics-at": "0.5", "lakewright__enabled": "true"})
    lake.append(2)
    register(decider, PLACE, name="orders")
    decider.run(decider.task("timers").run_once())
    assert "compute_statistics" in kinds(redis_url)
    (made,) = (
        one
        for one in decider.get("/v1/tables/orders/decisions", limit=100)["decisions"]
        if "statistics" in one["action"]
    )
    assert (made["reason"], "rows changed" in made["message"]) == ("statistics_old", True)
    requested = decider.post("/v1/tables/orders/actions/compute-statistics", {}).json()
    assert [(job["action"], job["outcome"]) for job in requested["jobs"]] == [("compute_statistics", "merged")]
    shown = decider.post("/v1/tables/orders/actions/compute-statistics", {"dry_run": True}).json()
    assert (shown["due"], shown["excess"] == shown["count"] > 0) == (True, True), "there are no statistics yet"
    called = decider.command("compute-statistics", "orders")
    assert called.exit_code == 0
    write_deltalake(tmp_path / "delta", pa.table({"id": [1]}))
    register(decider, str(tmp_path / "delta"), name="delta")
    refused = decider.post("/v1/tables/delta/actions/compute-statistics", {})
    assert (refused.status_code, "no place for statistics" in refused.text) == (httpx.codes.CONFLICT, True)
