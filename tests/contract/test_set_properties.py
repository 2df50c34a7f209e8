"""One ALTER TABLE sets a table's properties: the log has it, all else is as before, and the next decision uses it."""

import json
import secrets
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from actor.ports import TableJob, TableJobOutcome
from decider.background.auto_analyze import AdviceSources, AnalysisOutcome, AutoAnalyze
from shared.errors import LeaseLost, OtherTable
from shared.jobs.options import ALREADY_SET, PropertyOptions
from shared.jobs.payload import SET_PROPERTIES
from shared.layout import commit_metadata
from shared.policy.policy import KIB, Policy
from shared.policy.properties import policy_digest
from shared.table import CommitOrigin
from tests.support.advised_histories import AdvisedLog, Process, write
from tests.support.live_decider import LiveDecider, decider_settings
from tests.support.local_vacuum import Control
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.delta_lab import DeltaLab
    from tests.support.iceberg_lab import IcebergLab

pytestmark = [pytest.mark.spark, pytest.mark.redis]

VALUES = {"lakewright.target-file-size": "32MiB", "lakewright.filter": "day >= '2026-01-01'", "lakewright.fan-in": "4"}
"""One of them has quotes in it."""


def job(location: str, values: dict[str, str] = VALUES, *, before: dict[str, str] | None = None) -> TableJob:
    digest = "" if before is None else policy_digest(before)
    options = PropertyOptions(values).encode()
    return TableJob(SET_PROPERTIES, location, Policy(), CommitOrigin("job-1", 7), options=options, policy_digest=digest)


def actions(table: Path, version: int) -> list[dict]:
    text = (table / "_delta_log" / f"{version:020d}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def newest(table: Path) -> int:
    return max(int(path.stem) for path in (table / "_delta_log").glob("*.json"))


@pytest.mark.long("contracts")
def test_one_commit_sets_them_and_metadata_protocol_and_rows_are_otherwise_as_before(lab: "DeltaLab") -> None:
    table = lab.directory / "t"
    lab.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT, day STRING) USING delta PARTITIONED BY (day) TBLPROPERTIES "
        "('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true', 'team' = 'x')"
    )
    lab.sql(f"INSERT INTO delta.`{table}` SELECT id, '2026-01-01' FROM range(100)")
    lab.sql(f"DELETE FROM delta.`{table}` WHERE id = 3")
    before, protocol = lab.digest(str(table)), lab.sql(f"DESCRIBE DETAIL delta.`{table}`")[0]
    version, control = newest(table), Control()

    def run(asked: TableJob) -> TableJobOutcome:
        return lab.engine.run_table_job(asked, control)

    done = run(job(table.as_uri(), before={}))
    assert (done.version, done.commits, done.figures) == (version, (version + 1,), {"changed": 3})
    assert newest(table) == version + 1
    info, metadata = actions(table, version + 1)
    found = commit_metadata.decode(info["commitInfo"]["userMetadata"])
    assert found is not None
    assert (found.origin, found.mode) == (CommitOrigin("job-1", 7), SET_PROPERTIES)
    after = lab.sql(f"DESCRIBE DETAIL delta.`{table}`")[0]
    assert after["properties"] == {**protocol["properties"], **VALUES}
    for same in ("minReaderVersion", "minWriterVersion", "tableFeatures", "partitionColumns", "id", "numFiles"):
        assert after[same] == protocol[same], same
    assert metadata["metaData"]["id"] == protocol["id"]
    assert lab.digest(str(table)) == before

    # A run that died behind its statement comes again: the properties are no longer those of the decision.
    again = run(job(table.as_uri(), before={}))
    assert (again.commits, again.figures, again.reason) == ((), {"changed": 0}, ALREADY_SET)
    lab.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('lakewright.fan-in' = '6')")
    late = run(job(table.as_uri(), before=VALUES))
    assert (late.commits, late.figures) == ((), {})
    assert "changed since the decision" in late.reason
    with pytest.raises(OtherTable):
        run(TableJob(SET_PROPERTIES, table.as_uri(), Policy(), CommitOrigin("j", 1), table_uuid="another"))
    lost = Control()
    lost.before_change = _lose
    with pytest.raises(LeaseLost):
        lab.engine.run_table_job(job(table.as_uri()), lost)
    assert newest(table) == version + 2


def _lose(_count: int) -> None:
    raise LeaseLost("another actor has the job")


@pytest.mark.long("iceberg")
def test_iceberg_tables_get_them_in_one_commit_of_the_metadata_without_a_snapshot(ice: "IcebergLab") -> None:
    table = ice.create("t", by="dt")
    ice.append(table, 0)
    rows, snapshots = ice.rows(table), len(ice.sql(f"SELECT * FROM {table}.snapshots").collect())
    done = ice.engine.run_table_job(job(ice.location(table)), Control())
    assert (done.commits, done.figures) == ((), {"changed": 3})
    properties = {row[0]: row[1] for row in ice.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    assert {name: properties[name] for name in VALUES} == VALUES
    assert ice.rows(table) == rows
    assert len(ice.sql(f"SELECT * FROM {table}.snapshots").collect()) == snapshots
    files = len(ice.sql(f"SELECT * FROM {table}.metadata_log_entries").collect())
    assert ice.engine.run_table_job(job(ice.location(table)), Control()).reason == ALREADY_SET
    assert len(ice.sql(f"SELECT * FROM {table}.metadata_log_entries").collect()) == files


@pytest.mark.long("contracts")
def test_advice_is_found_applied_by_an_actor_and_used_by_the_next_decision(lab: "DeltaLab", redis_url: str) -> None:
    """Decider, queue, worker and Spark are real; the history is a recorded log without data files."""
    from actor.engines import EngineSet
    from actor.heartbeat import Heartbeat, LeaseTimes
    from actor.queue_executor import SyncQueueExecutor, connect
    from actor.worker import ActorContext, Worker, WorkerSettings

    start_ms = 1_767_225_600_000
    log = AdvisedLog(lab.directory / "events", start_ms)
    commits = write(Process(2, 300 * KIB, 0.4, 20, 36, 4), 1, 400)
    log.write(commits[:80])
    decider = LiveDecider(decider_settings(redis_url, roots=(lab.directory.as_uri(),))).start()
    queue = SyncQueueExecutor(connect(redis_url), "default")
    heartbeat = Heartbeat(SyncQueueExecutor(connect(redis_url), "default"), "a-1", LeaseTimes())
    heartbeat.start()
    try:
        name = decider.register(log.path, "events")
        url, tables = f"/v1/tables/{name}", decider.services.tables

        async def has_jobs() -> bool:
            return False

        analyze = AutoAnalyze(
            tables.advice,
            AdviceSources(
                *(tables.registry, tables.states, tables.formats, tables.defaults, decider.services.queue.reads),
                twins=decider.services.requests.tracker.twins,
            ),
            share=1.0,
            has_jobs=has_jobs,
            is_needed=lambda: False,
            now_ms=lambda: start_ms + 864_000_000,
        )
        assert decider.run(analyze.run_once()).outcome is AnalysisOutcome.ADVISED
        advice = decider.get(f"{url}/advice")["advice"]
        decider.run(decider.task("applied_advice").run_once())
        applying = decider.post(f"{url}/advice/{advice['id']}/apply", {}).json()
        assert applying["status"] == "applying"

        # Compactions of files that are not there would fail: only this job is run.
        for one in decider.get("/v1/jobs")["jobs"]:
            if one["id"] != applying["job"]:
                decider.client.delete(f"/v1/jobs/{one['id']}").raise_for_status()
        actor = ActorContext(secrets.token_hex(4), heartbeat, threading.Event())
        assert Worker(EngineSet([lab.engine]), queue, actor, WorkerSettings()).run_next()

        until("the advice is applied", lambda: decider.get(f"{url}/advice")["advice"]["status"] == "applied")
        altered = newest(log.path)
        assert altered == log.version + 1
        assert actions(log.path, altered)[1]["metaData"]["configuration"] == advice["change"]
        until("the commit is read", lambda: decider.get(url)["state"]["version"] == altered)
        policy = decider.get(url)["policy"]
        sources = {one["property"]: one["source"] for one in policy["values"]}
        assert {sources[changed] for changed in advice["change"]} == {"table"}

        log.version = altered
        log.write(commits[80:81])
        decider.sweep()
        newest_decision = decider.get(f"{url}/decisions", limit=1)["decisions"][0]
        assert (newest_decision["version"], newest_decision["policy_version"]) == (log.version, policy["version"])
        assert decider.get("/v1/status")["funnel"]["set_properties_changed"] == len(advice["change"])
    finally:
        heartbeat.close()
        decider.close()
