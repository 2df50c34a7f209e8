"""Advice over HTTP and the command line: found in the background, applied, dismissed, judged, within its budget."""

import asyncio
import json
import time
from pathlib import Path

import deltalake
import pytest

from decider.background.applied_advice import CANCELLED_WAITING, AppliedAdvice
from decider.background.auto_analyze import JUDGED_WITHIN_MS, LIST_EVERY_MS, AnalysisOutcome
from decider.store.redis.queue_executor import connect
from decider.store.tables.advice_records import Advice, Evidence, ReplayedCost
from decider.store.tables.advice_store import AdviceStore
from shared.jobs.options import ALREADY_SET
from shared.jobs.payload import SET_PROPERTIES
from shared.policy.policy import MIB
from shared.queue import keys
from shared.queue.model import RunResult
from shared.table import TableId
from tests.support.advice_world import AdviceWorld
from tests.support.advised_histories import Process
from tests.support.live_decider import LiveDecider
from tests.support.waiting import until

pytestmark = pytest.mark.redis


@pytest.fixture
def world(decider: LiveDecider, tmp_path: Path) -> AdviceWorld:
    return AdviceWorld(decider, tmp_path)


def test_advice_is_found_listed_applied_and_judged(world: AdviceWorld) -> None:
    name = world.table("sales.events")
    assert world.run_once() is AnalysisOutcome.ADVISED
    (listed,) = world.decider.get("/v1/advice")["advice"]
    assert listed == world.advice(name)
    assert (listed["table"], listed["status"], listed["judgement"]) == (name, "open", None)
    assert listed["proof"]["after"]["cost_s"] < listed["proof"]["before"]["cost_s"]
    for changed, value in listed["change"].items():
        assert f"'{changed}' = '{value}'" in listed["statement"]
    assert world.run_once() is AnalysisOutcome.IDLE

    applied = world.apply(name)
    assert (applied.status_code, applied.json()["status"]) == (200, "applying")
    assert applied.json()["job"].endswith(".set_properties")
    altered = world.alter(name)
    shown = world.decider.get(f"/v1/tables/{name}")
    assert (shown["properties"], shown["state"]["version"]) == ({}, altered)
    assert (world.advice(name)["status"], world.advice(name)["by_owner"]) == ("applied", False)
    again = world.apply(name)
    assert (again.status_code, again.json()["field"]) == (409, "id")
    assert world.decider.get("/v1/advice")["advice"] == []

    world.go_on(name, 60)
    assert world.later() is AnalysisOutcome.JUDGED
    judged = world.advice(name)
    assert judged["status"] == "judged"
    assert 50 <= judged["judgement"]["commits"] <= 60
    # No actor has rewritten anything: nothing was saved against a policy that would have rewritten little.
    assert (
        judged["judgement"]["saved_share"]
        < judged["judgement"]["predicted_share"]
        == pytest.approx(listed["saved_share"], abs=1e-4)
    )
    summary = world.decider.get("/v1/advice", status="judged")
    assert (summary["judged"], summary["tables_analyzed"]) == (1, 1)
    assert summary["saved_share"] == judged["judgement"]["saved_share"]
    # The policy in effect is the advised one now.
    world.go_on(name, 60)
    assert world.later() is AnalysisOutcome.NOTHING
    assert world.advice(name) == judged


LOADS = Process(4, 180 * MIB, 0.1, 60, 24, 4)
LOOK_UP = {"type": "eq", "term": "v", "value": "m"}


def test_an_order_is_advised_by_reported_reads_applied_as_a_property_and_judged(world: AdviceWorld) -> None:
    name = world.table("loads", process=LOADS, bounds=("a", "z"))
    world.report_reads(name, LOOK_UP, 500)
    assert world.run_once() is AnalysisOutcome.ADVISED
    advice = world.advice(name)
    assert advice["change"] == {"lakewright.sort-by": "v"}
    assert advice["former"] == {"lakewright.sort-by": "none"}
    order = advice["proof"]["order"]
    assert (order["column"], order["share_read_now"]) == ("v", 1.0)
    assert 0 < order["share_read_sorted"] < 0.1
    assert "sort-by=v" in world.cli("advice", "list")
    assert "reported reads an hour have filters" in world.cli("advice", "show", name)

    refused = world.apply(name, override=True)
    assert (refused.status_code, refused.json()["field"]) == (409, "override")
    assert world.decider.get(f"/v1/tables/{name}")["properties"] == {}
    assert world.apply(name).json()["status"] == "applying"
    world.alter(name)
    assert world.advice(name)["status"] == "applied"

    world.logs[name].bounds = ("a", "b")
    world.go_on(name, 90)
    assert world.later() is AnalysisOutcome.JUDGED
    judged = world.advice(name)["judgement"]
    assert judged["predicted_share"] == advice["saved_share"]
    assert judged["saved_share"] > 0.5, "new files are not read by the filter"


@pytest.mark.parametrize("days", [0, 1])
def test_no_order_is_advised_without_reads_on_two_days(world: AdviceWorld, days: int) -> None:
    name = world.table("loads", process=LOADS, bounds=("a", "z"))
    if days:
        world.report_reads(name, LOOK_UP, 5_000, days=days)
    world.run_once()
    advice = world.advice(name)
    assert advice is None or "lakewright.sort-by" not in advice["change"]


def test_an_order_that_was_dismissed_leaves_room_for_the_next_best_change(world: AdviceWorld) -> None:
    name = world.table("loads", process=LOADS, bounds=("a", "z"))
    world.report_reads(name, LOOK_UP, 500)
    world.run_once()
    order = world.advice(name)["id"]
    world.decider.post(f"/v1/tables/{name}/advice/{order}/dismiss", {}).raise_for_status()
    world.go_on(name, 60)
    world.later()
    advice = world.advice(name)
    assert advice["id"] == order or "lakewright.sort-by" not in advice["change"]
    assert advice["status"] == ("dismissed" if advice["id"] == order else "open")


def test_cells_are_advised_by_reads_of_two_columns_and_applied_by_the_owner_alone(world: AdviceWorld) -> None:
    name = world.table("loads", process=LOADS, bounds=("a", "z"), is_partitioned=False)
    for column, times in (("v", 501), ("w", 500)):
        world.report_reads(name, {**LOOK_UP, "term": column}, times)
    assert world.run_once() is AnalysisOutcome.ADVISED
    advice = world.advice(name)
    assert (advice["change"], advice["former"]) == ({"lakewright.cluster": "cells"}, {"lakewright.cluster": "off"})
    assert advice["needs_owner"]
    assert advice["proof"]["order"]["column"] == "v, w"
    assert 0 < advice["proof"]["order"]["share_read_sorted"] < 0.3
    clustered, altered = advice["statement"].split("; ")
    assert clustered.endswith("CLUSTER BY (v, w)")
    assert "'lakewright.cluster' = 'cells'" in altered
    assert "Run `ALTER TABLE" in world.cli("advice", "show", name)
    for asked in ({}, {"dry_run": True}, {"override": True}):
        refused = world.apply(name, **asked)
        assert (refused.status_code, world.advice(name)["status"]) == (409, "open")

    log = world.logs[name]
    log.cluster(advice["change"], world.commits[name][log.version].timestamp_ms)
    world.go_on(name, 60)
    assert world.later() is AnalysisOutcome.WAITING
    assert (world.advice(name)["status"], world.advice(name)["by_owner"]) == ("applied", True)
    log.bounds = ("a", "b")
    world.go_on(name, 90)
    assert world.later() is AnalysisOutcome.JUDGED
    assert world.advice(name)["judgement"]["saved_share"] > 0.3, "new files are not read by the filters"


def test_an_applied_advice_that_nothing_judges_any_more_keeps_no_other_back(world: AdviceWorld) -> None:
    name = world.table("loads", process=LOADS, bounds=("a", "z"))
    world.report_reads(name, LOOK_UP, 500)
    assert world.run_once() is AnalysisOutcome.ADVISED
    assert world.advice(name)["change"] == {"lakewright.sort-by": "v"}
    assert world.apply(name).status_code == 200
    world.alter(name)
    table = world.decider.get(f"/v1/tables/{name}")["id"]
    world.decider.run(world.decider.services.operations.redis.delete(keys.reads(table)))
    world.go_on(name, 60)
    assert world.later() is AnalysisOutcome.WAITING
    world.now_ms = int(time.time() * 1000) + JUDGED_WITHIN_MS  # It was applied by the clock.
    world.go_on(name, 60)
    assert world.later() in (AnalysisOutcome.NOTHING, AnalysisOutcome.ADVISED)


def test_bounds_are_advised_by_reads_of_a_column_that_the_properties_leave_out_and_set_by_the_owner(
    world: AdviceWorld,
) -> None:
    name = world.table("loads", process=LOADS)
    log = world.logs[name]
    log.alter({"delta.dataSkippingNumIndexedCols": "0"}, world.commits[name][log.version - 1].timestamp_ms)
    world.report_reads(name, LOOK_UP, 500)
    assert world.run_once() is AnalysisOutcome.ADVISED
    while "delta.dataSkippingNumIndexedCols" not in (advice := world.advice(name))["change"]:
        # A saving that is known goes first.
        world.decider.post(f"/v1/tables/{name}/advice/{advice['id']}/dismiss", {}).raise_for_status()
        world.go_on(name, 60)
        assert world.later() is AnalysisOutcome.ADVISED
    assert advice["change"] == {"delta.dataSkippingNumIndexedCols": "1"}
    assert advice["former"] == {"delta.dataSkippingNumIndexedCols": "0"}
    assert (advice["needs_owner"], advice["saved_s_per_day"], advice["saved_share"]) == (True, None, None)
    bounds = advice["proof"]["bounds"]
    assert (bounds["column"], bounds["share_of_reads"]) == ("v", 1.0)
    assert bounds["files_opened"] == bounds["files"] > 1
    assert "not known" in world.cli("advice", "list")
    assert "SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1')" in " ".join(
        world.cli("advice", "show", name).split()
    )
    for asked in ({}, {"dry_run": True}, {"override": True}):
        refused = world.apply(name, **asked)
        assert (refused.status_code, world.advice(name)["status"]) == (409, "open")

    log.alter(advice["change"], world.commits[name][log.version - 2].timestamp_ms)
    log.bounds = ("a", "b")
    world.go_on(name, 60)
    assert world.later() is AnalysisOutcome.WAITING
    assert (world.advice(name)["status"], world.advice(name)["by_owner"]) == ("applied", True)
    world.go_on(name, 60)
    assert world.later() is AnalysisOutcome.JUDGED
    assert world.advice(name)["judgement"]["saved_share"] > 0.3, "new files are not read by the filter"
    assert world.decider.get("/v1/advice", status="judged")["judged"] == 0, "nothing had been promised"
    assert "predicted" not in world.cli("advice", "show", name)


REPLACED = Process(4, 180 * MIB, 0.1, 60, 8, 2)
"""Every eight hours a partition is dropped whose files stay in the store."""


def test_a_vacuum_is_advised_where_removed_files_are_kept_and_judged_by_what_is_left(world: AdviceWorld) -> None:
    name = world.table("replaced", commits=160, process=REPLACED, has_files=True)
    assert world.run_once() is AnalysisOutcome.ADVISED
    advice = world.advice(name)
    assert advice["change"] == {"lakewright.vacuum": "on"}
    planned = world.decider.post(f"/v1/tables/{name}/actions/vacuum", {"dry_run": True}).json()
    held = advice["proof"]["held"]
    assert held["retention_s"] == 7 * 86_400
    assert 0 < held["files"] <= planned["files"], "more has expired by the clock of the service"
    assert advice["proof"]["before"]["storage_cost_s"] > advice["proof"]["after"]["storage_cost_s"] > 0
    assert "no version of the last 7 days needs" in world.cli("advice", "show", name)

    assert world.apply(name).json()["status"] == "applying"
    world.alter(name)
    world.logs[name].has_files = False
    for path in world.logs[name].path.glob("day=*/*"):
        path.unlink()
    world.go_on(name, 60)
    assert world.later() is AnalysisOutcome.JUDGED
    judged = world.advice(name)["judgement"]
    assert judged["saved_share"] > 0.1
    assert judged["actual_cost_s"] == judged["advised_cost_s"], "nothing is left that no version needs"


FULL = Process(1, 100 * MIB, 0.1, 60, 1, 400)
"""A file for each partition, which nothing merges, and a log without checkpoints."""


def test_checkpoints_are_advised_where_no_writer_makes_them_and_judged_by_those_since(world: AdviceWorld) -> None:
    name = world.table("long", commits=430, process=FULL)
    assert world.run_once() is AnalysisOutcome.ADVISED
    advice = world.advice(name)
    assert advice["change"] == {"lakewright.checkpoint-every": "100"}
    assert advice["proof"]["log"] == {"commits": 431, "checkpoint": -1}
    assert "There is no checkpoint" in world.cli("advice", "show", name)
    assert world.apply(name).json()["status"] == "applying"
    world.alter(name)
    deltalake.DeltaTable(str(world.logs[name].path)).create_checkpoint()
    world.go_on(name, 60)
    assert world.later() is AnalysisOutcome.JUDGED
    judged = world.advice(name)["judgement"]
    assert (judged["commits"], judged["saved_share"] > 0.5) == (60, True)


def test_no_vacuum_is_advised_where_another_engine_deletes_what_expired(world: AdviceWorld) -> None:
    name = world.table("replaced", commits=160, process=REPLACED)
    world.run_once()
    advice = world.advice(name)
    assert advice is None or "lakewright.vacuum" not in advice["change"]


def test_a_change_that_was_applied_is_seen_in_the_next_decision(world: AdviceWorld) -> None:
    name = world.table("events")
    world.run_once()
    advice = world.advice(name)
    before = world.decider.get(f"/v1/tables/{name}")["policy"]
    world.apply(name)
    world.alter(name)
    after = world.decider.get(f"/v1/tables/{name}")["policy"]
    assert before["version"] != after["version"]
    sources = {one["property"]: one["source"] for one in after["values"]}
    assert {sources[changed] for changed in advice["change"]} == {"table"}
    world.go_on(name, 1)
    decisions = world.decider.get(f"/v1/tables/{name}/decisions", limit=50)["decisions"]
    assert (decisions[0]["version"], decisions[0]["policy_version"]) == (world.logs[name].version, after["version"])
    (asked,) = [one for one in decisions if one["action"] == SET_PROPERTIES]
    assert (asked["reason"], asked["outcome"]) == ("requested", "queued")
    (run,) = world.decider.get(f"/v1/jobs/{world.advice(name)['job']}")["runs"]
    assert (run["kind"], run["result"]) == (SET_PROPERTIES, "done")


def test_a_dry_run_shows_the_statement_and_changes_nothing(world: AdviceWorld) -> None:
    name = world.table("events")
    world.run_once()
    advice = world.advice(name)
    shown = world.apply(name, dry_run=True)
    assert (shown.status_code, shown.json()) == (200, advice)
    assert [job["kind"] for job in world.decider.get("/v1/jobs")["jobs"]] in ([], ["compact"])
    both = world.apply(name, dry_run=True, override=True)
    assert (both.status_code, both.json()["field"]) == (422, "override")


def test_an_override_changes_the_registration_and_the_table_gets_no_commit(world: AdviceWorld) -> None:
    name = world.table("events")
    world.run_once()
    advice = world.advice(name)
    applied = world.apply(name, override=True)
    assert (applied.status_code, applied.json()["status"], applied.json()["job"]) == (200, "applied", "")
    world.decider.drain()
    shown = world.decider.get(f"/v1/tables/{name}")
    assert shown["properties"] == advice["change"]
    sources = {one["property"]: one["source"] for one in shown["policy"]["values"]}
    assert {sources[changed] for changed in advice["change"]} == {"request"}
    log = world.logs[name]
    assert len([*(log.path / "_delta_log").iterdir()]) == log.version + 1


def test_an_override_that_would_hide_the_change_is_named_and_nothing_is_queued(world: AdviceWorld) -> None:
    name = world.table("events")
    world.run_once()
    changed = next(iter(world.advice(name)["change"]))
    hidden = {changed: world.advice(name)["former"][changed] or "8"}
    world.decider.client.patch(f"/v1/tables/{name}", json={"properties": hidden}).raise_for_status()
    world.decider.drain()
    for asked in ({}, {"dry_run": True}):
        refused = world.apply(name, **asked)
        assert (refused.status_code, refused.json()["field"]) == (409, "override")
        assert changed in refused.json()["detail"]
    assert world.advice(name)["status"] == "open"


def test_what_an_actor_could_not_alter_is_open_again_with_the_reason(world: AdviceWorld) -> None:
    name = world.table("events")
    world.run_once()
    world.apply(name)
    claim = world.claim()
    world.finish(claim, RunResult.QUARANTINE, {}, "no permission to write")
    until("the advice is open again", lambda: world.advice(name)["status"] == "open")
    assert (world.advice(name)["problem"], world.advice(name)["job"]) == ("no permission to write", "")
    assert "no permission to write" in world.cli("advice", "show", name)


def test_a_table_whose_properties_changed_meanwhile_is_left_alone_and_one_that_has_them_is_applied(
    world: AdviceWorld,
) -> None:
    name = world.table("events")
    world.run_once()
    for report, status, problem in (
        ({"measured": {}, "left_out": "the table's properties changed"}, "open", "the table's properties changed"),
        ({"measured": {"changed": 0}, "left_out": ALREADY_SET, "seen_version": 80}, "applied", ""),
    ):
        world.apply(name)
        # A request whose job may be lost is made again, and joins the job that waits.
        assert world.apply(name).json()["status"] == "applying"
        world.finish(world.claim(), RunResult.DONE, report)
        until("the run was noted", lambda: world.advice(name)["status"] != "applying")
        assert (world.advice(name)["status"], world.advice(name)["problem"]) == (status, problem)


def test_a_job_that_is_cancelled_while_it_waits_leaves_the_advice_open_with_a_note(world: AdviceWorld) -> None:
    name = world.table("events")
    world.run_once()
    applying = world.apply(name).json()
    world.decider.client.delete(f"/v1/jobs/{applying['job']}").raise_for_status()
    until("the advice is open again", lambda: world.advice(name)["status"] == "open")
    assert (world.advice(name)["problem"], world.advice(name)["job"]) == (CANCELLED_WAITING, "")
    # Applied again, it has a job again, which the former note does not concern.
    world.apply(name)
    world.decider.run(world.decider.task("applied_advice").run_once())
    assert world.advice(name)["status"] == "applying"
    world.alter(name)
    assert world.advice(name)["status"] == "applied"


def test_an_advice_that_was_applied_again_before_the_note_was_read_keeps_its_job(world: AdviceWorld) -> None:
    name = world.table("events")
    world.run_once()
    job = world.apply(name).json()["job"]
    services = world.decider.services
    task = AppliedAdvice(
        services.queue.streams,
        services.queue.runs,
        services.tables.advice,
        services.tables.registry,
        services.requests.refresh_queue,
        lambda: world.now_ms,
    )
    world.decider.run(task.run_once())
    world.decider.client.delete(f"/v1/jobs/{job}").raise_for_status()
    world.apply(name)
    world.decider.run(task.run_once())
    assert (world.advice(name)["status"], world.advice(name)["job"]) == ("applying", job)


def test_a_job_that_is_lost_leaves_the_advice_to_the_next_analysis(world: AdviceWorld) -> None:
    name = world.table("events")
    world.run_once()
    job = world.apply(name).json()["job"]
    world.decider.client.delete(f"/v1/jobs/{job}").raise_for_status()
    world.go_on(name, 60)
    assert world.later() in (AnalysisOutcome.ADVISED, AnalysisOutcome.NOTHING)
    found = world.advice(name)
    assert found is None or found["status"] == "open"


def test_jobs_that_wait_are_seen(world: AdviceWorld) -> None:
    assert not world.decider.run(world.decider.services.queue.admin.has_jobs())
    world.table("events")
    assert world.decider.run(world.decider.services.queue.admin.has_jobs())


def test_what_is_dismissed_is_not_advised_again(world: AdviceWorld) -> None:
    name = world.table("events")
    world.run_once()
    advice = world.advice(name)
    dismissed = world.decider.post(f"/v1/tables/{name}/advice/{advice['id']}/dismiss", {})
    assert (dismissed.status_code, dismissed.json()["status"]) == (200, "dismissed")
    refused = world.decider.post(f"/v1/tables/{name}/advice/{advice['id']}/apply", {})
    assert (refused.status_code, "dismissed already" in refused.json()["detail"]) == (409, True)
    world.go_on(name, 60)
    if world.later() is AnalysisOutcome.NOTHING:
        assert world.advice(name)["status"] == "dismissed"
    else:
        assert world.advice(name)["id"] != advice["id"]


def test_an_owner_who_changes_the_table_itself_has_applied_the_advice(world: AdviceWorld) -> None:
    name = world.table("events")
    world.run_once()
    advice = world.advice(name)
    world.decider.client.patch(f"/v1/tables/{name}", json={"properties": advice["change"]}).raise_for_status()
    world.decider.drain()
    world.go_on(name, 60)
    assert world.later() is AnalysisOutcome.WAITING
    found = world.advice(name)
    assert (found["status"], found["by_owner"]) == ("applied", True)
    world.go_on(name, 60)
    assert world.later() is AnalysisOutcome.JUDGED


def test_an_unknown_advice_is_not_found(world: AdviceWorld) -> None:
    name = world.table("events")
    for verb in ("apply", "dismiss"):
        missing = world.decider.post(f"/v1/tables/{name}/advice/{'0' * 12}/{verb}", {})
        assert (missing.status_code, missing.json()["field"]) == (404, "advice")
    assert world.decider.post(f"/v1/tables/{name}/advice/x/apply", {}).status_code == 422


def test_the_command_line_lists_shows_applies_and_dismisses(world: AdviceWorld) -> None:
    name = world.table("sales.events")
    other = world.table("sales.others", seed=2)
    assert "No advice; 0 tables analyzed." in world.cli("advice", "list")
    assert "No advice" in world.cli("advice", "show", name)
    assert [world.run_once(), world.run_once()] == [AnalysisOutcome.ADVISED] * 2
    listed = world.cli("advice", "list")
    assert name in listed
    assert other in listed
    shown = world.cli("advice", "show", name)
    assert "ALTER TABLE delta." in " ".join(shown.split())  # Lines break where the path is long.
    dry = world.cli("advice", "apply", name, world.advice(name)["id"], "--dry-run")
    assert "ALTER TABLE delta." in dry
    assert "applying by the job" in world.cli("advice", "apply", name, world.advice(name)["id"])
    assert "applied" in world.cli("advice", "apply", name, world.advice(name)["id"], "--override")
    assert (
        json.loads(world.cli("advice", "dismiss", other, world.advice(other)["id"], "--json"))["status"] == "dismissed"
    )
    rows = json.loads(world.cli("--json", "advice", "list", "--status", "applied", "--status", "dismissed"))["advice"]
    assert {row["table"]: row["status"] for row in rows} == {name: "applied", other: "dismissed"}


def test_a_table_is_due_once_a_day_and_only_after_enough_commits(world: AdviceWorld) -> None:
    name = world.table("events", commits=30)
    assert world.run_once() is AnalysisOutcome.IDLE
    world.go_on(name, 50)
    world.now_ms += LIST_EVERY_MS
    assert world.run_once() is AnalysisOutcome.ADVISED
    world.go_on(name, 60)
    world.now_ms += LIST_EVERY_MS
    assert world.run_once() is AnalysisOutcome.IDLE
    assert world.later() is AnalysisOutcome.ADVISED
    world.go_on(name, 10)
    assert world.later() is AnalysisOutcome.IDLE


def test_a_log_that_cannot_be_read_is_shown_and_does_not_hold_up_others(world: AdviceWorld) -> None:
    broken, fine = world.table("a_broken"), world.table("fine")
    for file in (world.logs[broken].path / "_delta_log").iterdir():
        file.write_text("{")
    outcomes = {world.run_once(), world.run_once()}
    assert outcomes == {AnalysisOutcome.FAILED, AnalysisOutcome.ADVISED}
    assert world.decider.get(f"/v1/tables/{broken}/advice")["problem"]
    assert world.advice(fine)
    assert world.decider.get("/v1/advice")["tables_failed"] == 1
    assert "The last analysis failed" in world.cli("advice", "show", broken)


def test_nothing_is_advised_by_commits_that_lead_to_another_table_and_a_what_if_notes_it(world: AdviceWorld) -> None:
    """A commit lost its last line after a checkpoint was written: readers of the table see the file, a replay no more.

    `what-if` once told one file too few, without a word.
    """
    name = world.table("events")
    path = world.logs[name].path
    deltalake.DeltaTable(path).create_checkpoint()
    live = len(deltalake.DeltaTable(path).file_uris())
    damaged = path / "_delta_log" / f"{40:020d}.json"
    damaged.write_text(damaged.read_text().rpartition("\n")[0])
    assert world.run_once() is AnalysisOutcome.FAILED
    assert "The commits lead to" in world.decider.get(f"/v1/tables/{name}/advice")["problem"]
    answer = world.decider.post(f"/v1/tables/{name}/what-if", {}).json()
    assert answer["actual"]["files_now"] == live
    assert any(note.startswith("The commits lead to") for note in answer["notes"])


def test_a_bug_in_a_replay_is_shown_and_does_not_end_the_task(
    world: AdviceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = world.table("events")

    def broken(*_: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr("decider.background.auto_analyze.analyze", broken)
    assert world.run_once() is AnalysisOutcome.FAILED
    assert "unexpected ValueError" in world.decider.get(f"/v1/tables/{name}/advice")["problem"]


def test_a_table_of_very_many_files_is_not_analyzed_without_a_request(
    world: AdviceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = world.table("events")
    monkeypatch.setattr("decider.background.auto_analyze.MAX_FILES", 100)
    assert world.run_once() is AnalysisOutcome.FAILED
    assert "lakewright what-if events" in world.decider.get(f"/v1/tables/{name}/advice")["problem"]


def test_only_the_decider_with_the_lease_analyzes(world: AdviceWorld) -> None:
    world.table("events")
    redis = world.decider.services.operations.redis
    world.decider.run(redis.set(keys.ADVICE_LEASE, "another"))
    assert world.run_once() is AnalysisOutcome.IDLE
    world.decider.run(redis.delete(keys.ADVICE_LEASE))
    world.now_ms += LIST_EVERY_MS
    assert world.run_once() is AnalysisOutcome.ADVISED
    world.decider.run(world.decider.services.tables.advice.release())
    assert world.decider.run(redis.exists(keys.ADVICE_LEASE)) == 0


def test_an_unregistered_table_leaves_no_advice(world: AdviceWorld) -> None:
    name = world.table("events")
    world.run_once()
    assert world.decider.client.delete(f"/v1/tables/{name}").status_code == 204
    redis = world.decider.services.operations.redis
    for key in (keys.ADVICE, keys.ANALYZED_TABLES, keys.DISMISSED_ADVICE):
        assert world.decider.run(redis.hlen(key)) == 0


COST = ReplayedCost(write_s=1.0, read_s=1.0, files_mean=10.0, bytes_rewritten=1)
PROOF = Evidence(0, 9, 10, 1.0, 60.0, COST, COST, 0.2)


def advice(table: str, message: str = "larger files") -> Advice:
    return Advice(TableId(table), 1, {"lakewright.target-file-size": "64 MiB"}, "", message, PROOF)


async def test_advice_of_many_tables_at_once_is_kept(redis_url: str) -> None:
    redis = connect(redis_url)
    stores = [AdviceStore(redis, f"decider-{n}") for n in range(2)]
    tables = [advice(f"table-{n}") for n in range(20)]
    replaced = await asyncio.gather(*(stores[n % 2].replace(one.table, None, one) for n, one in enumerate(tables)))
    assert all(replaced)
    assert {one.table for one in await stores[0].all()} == {one.table for one in tables}
    await redis.aclose()


async def test_advice_that_changed_since_it_was_read_is_not_replaced(redis_url: str) -> None:
    redis = connect(redis_url)
    store = AdviceStore(redis, "decider")
    read, newer = advice("orders"), advice("orders", "smaller files")
    assert await store.replace(read.table, None, read)
    assert await store.replace(read.table, read, newer)
    assert not await store.replace(read.table, read, None)
    assert await store.all() == [newer]
    await redis.aclose()
