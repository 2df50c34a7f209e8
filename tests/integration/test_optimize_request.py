"""A request to optimize: every mode and value, refusals of what makes no sense, and three ways to wait for its jobs."""

import json
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest

from actor.queue_executor import SyncQueueExecutor
from decider.store import urgent_jobs
from shared.jobs.payload import JobPayload, RewriteKind
from shared.policy.policy import KIB, MaxMode
from shared.queue import commands, queries
from shared.queue.model import Claim, JobId, RunResult
from tests.support.live_decider import LiveDecider, WrittenTable
from tests.support.queue_bench import end_of
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = pytest.mark.redis

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")


@pytest.fixture
def table(tmp_path: Path) -> WrittenTable:
    """A table of three partitions, of which the first has most files."""
    table = WrittenTable(tmp_path / "orders", days=DAYS[:1])
    table.append(11)
    table.append(3, days=DAYS[1:2])
    table.append(1, days=DAYS[2:], rows=4_000)
    return table


@pytest.fixture
def name(decider: LiveDecider, table: WrittenTable) -> str:
    """The table, registered and paused by its owner, so that only requests lead to jobs."""
    body = {"location": str(table.path), "name": "orders", "properties": {"lakewright.enabled": "false"}}
    assert decider.post("/v1/tables", body).status_code == 201
    decider.drain()
    return "orders"


def request(decider: LiveDecider, name: str, **body: Any) -> dict[str, Any]:
    answer = decider.post(f"/v1/tables/{name}/optimize", body)
    assert answer.status_code in (200, 202), answer.text
    return dict(answer.json())


def payload(queue: SyncQueueExecutor, job: str) -> JobPayload:
    view = queue.run(queries.job("default", JobId(job)))
    assert view is not None
    return JobPayload.decode(view.payload)


BODIES = [
    {},
    {"mode": "minor"},
    {"mode": "major"},
    {"mode": "idle"},
    {"mode": "full"},
    {"values": {"target-file-size": "64KiB"}},
    {"values": {"target-file-size": "8MiB", "min-input-files": "2"}},
    {"values": {"tolerance": "0.9"}},
    {"values": {"fan-in": "4", "full-file-threshold": "0.5"}, "mode": "full"},
    {"mode": "idle", "values": {"max-bytes-per-job": "64KiB"}},
    {"partitions": [f"dt={DAYS[0]}"], "mode": "full"},
    {"partitions": [{"dt": DAYS[1]}], "mode": "idle"},
    {"actions": ["compact"]},
    {"actions": ["compact"], "mode": "idle"},
    {"values": {"max-small-files": "2"}, "mode": "major"},
    {"values": {"delete-ratio-threshold": "0.05"}, "mode": "minor"},
    {"values": {"portable-paths": "always"}},
    {"values": {"row-group-copy": "never"}},
]


def test_the_jobs_of_a_request_are_those_that_its_dry_run_shows(
    decider: LiveDecider, name: str, queue: SyncQueueExecutor
) -> None:
    decider.client.patch(f"/v1/tables/{name}", json={"properties": {}}).raise_for_status()
    decider.drain()
    for body in BODIES:
        plan = request(decider, name, **body, dry_run=True)
        answer = request(decider, name, **body)
        planned = {one["partition_label"] for one in plan["plans"]}
        assert {job["partition_label"] for job in answer["jobs"]} == planned, body
        assert answer["reasons"] == plan["reasons"], body
        for job in answer["jobs"]:
            check_terms(payload(queue, job["id"]), body)
        records = decider.get(f"/v1/tables/{name}/decisions", limit=1)["decisions"]
        assert not answer["jobs"] or records[0]["reason"] == "requested"
        for job in answer["jobs"]:
            decider.client.delete(f"/v1/jobs/{job['id']}").raise_for_status()


def check_terms(found: JobPayload, body: dict[str, Any]) -> None:
    """The waiting job has the terms of the request."""
    mode = body.get("mode", "levels")
    values = body.get("values", {})
    if mode in ("minor", "major"):
        assert found.policy.max_mode is MaxMode(mode), body
    if mode != "levels":
        assert found.rewrite_kind is (RewriteKind(mode) if mode in ("idle", "full") else RewriteKind.LEVELS), body
    if "target-file-size" in values:
        sizes = {"64KiB": 64 * KIB, "8MiB": 8192 * KIB}
        assert found.policy.target_bytes == sizes[values["target-file-size"]], body


def test_a_mode_reaches_further_than_levels_do(decider: LiveDecider, name: str) -> None:
    counts = {
        mode: len(request(decider, name, mode=mode, force=True, dry_run=True)["plans"]) for mode in ("levels", "full")
    }
    assert counts["full"] > counts["levels"] > 0


def test_values_hold_for_one_run_and_not_for_the_table(
    decider: LiveDecider, name: str, table: WrittenTable, queue: SyncQueueExecutor
) -> None:
    decider.client.patch(f"/v1/tables/{name}", json={"properties": {}}).raise_for_status()
    decider.drain()
    (job,) = request(decider, name, values={"target-file-size": "8MiB"}, partitions=[f"dt={DAYS[0]}"])["jobs"]
    # A job of the same version was waiting, with the table's own terms: those of the person replace them.
    assert (job["outcome"], payload(queue, job["id"]).policy.target_bytes) == ("merged", 8192 * KIB)
    table.append(1, days=DAYS[:1])
    decider.sweep()
    assert payload(queue, job["id"]).policy.target_bytes == 256 * KIB


REFUSALS: list[tuple[dict[str, Any], str, str]] = [
    ({"mode": "all"}, "mode", "'levels', 'minor', 'major', 'idle' or 'full'"),
    ({"priority": "asap"}, "priority", "'urgent', 'high', 'normal' or 'low'"),
    ({"mode": "full", "values": {"tolerance": "0.3"}}, "values.tolerance", "no effect in mode full"),
    ({"mode": "idle", "values": {"min-input-files": "2"}}, "values.min-input-files", "no effect in mode idle"),
    ({"force": True, "values": {"tolerance": "0.3"}}, "values.tolerance", "no effect with force"),
    ({"values": {"vacuum": "on"}}, "values.vacuum", "no value of a single run; set it on the table"),
    ({"values": {"max-mode": "minor"}}, "values.max-mode", "set mode to minor or major"),
    ({"values": {"priority": "high"}}, "values.priority", "set priority"),
    ({"values": {"fan-in": "banana"}}, "lakewright.fan-in", "cannot be used"),
    ({"values": {"banana": "1"}}, "lakewright.banana", "unknown property"),
    ({"values": {"full-file-threshold": "0.25", "fan-in": "4"}}, "", "must exceed 1/fan-in"),
    ({"mode": "full", "actions": ["sort"]}, "actions", "only compact has modes and values"),
    (
        {"values": {"fan-in": "4"}, "actions": ["compact", "sort"]},
        "actions",
        "values cannot be used with the action",
    ),
    ({"actions": ["tidy"]}, "", "tidy"),
    ({"partitions": ["country=de"]}, "", "country"),
    ({"wait": True}, "wait", "Extra inputs"),
]


def test_what_makes_no_sense_is_refused_with_the_reason(decider: LiveDecider, name: str) -> None:
    for body, field, why in REFUSALS:
        for dry_run in (False, True):
            refused = decider.post(f"/v1/tables/{name}/optimize", body | {"dry_run": dry_run})
            assert refused.status_code == 422, (body, refused.text)
            assert why in refused.json()["detail"], body
            assert refused.json()["field"] == field or not field, body
    assert decider.get("/v1/jobs")["jobs"] == []


def test_a_job_waits_in_the_requested_band(decider: LiveDecider, name: str) -> None:
    for band in ("low", "normal", "high", "urgent"):
        (job, *_) = request(decider, name, priority=band, force=True)["jobs"]
        assert decider.get(f"/v1/jobs/{job['id']}")["job"]["band"] == band


def test_a_tenants_requests_beyond_its_allowance_wait_where_its_other_jobs_do(
    decider: LiveDecider, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests of one operator for 2,000 partitions took eight of nine claims from all other tenants."""
    monkeypatch.setattr(urgent_jobs, "URGENT_PER_HOUR", 1)
    assert len(request(decider, name, mode="full", force=True)["jobs"]) == 2
    waiting = decider.get("/v1/jobs")["jobs"]
    assert sorted(job["band"] for job in waiting) == ["normal", "urgent"]
    for job in waiting:
        decider.client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
    assert request(decider, name, mode="full", force=True)["jobs"]
    assert {job["band"] for job in decider.get("/v1/jobs")["jobs"]} == {"normal"}, "others have the strict band"
    for job in decider.get("/v1/jobs")["jobs"]:
        assert decider.post(f"/v1/jobs/{job['id']}/expedite", {}).json()["state"] == "queued"
    expedited = decider.get("/v1/jobs")["jobs"]
    assert {(job["band"], job["priority"]) for job in expedited} == {("normal", 0)}, "expedited in their own band"


def claimed(queue: SyncQueueExecutor) -> Claim:
    (claim,) = queue.run(commands.claim("default", worker="w", nonce="c", slots=1, lease_ms=600_000))
    return claim


def finished(queue: SyncQueueExecutor, claim: Claim, how: RunResult = RunResult.DONE, error: str = "") -> None:
    result = json.dumps({"measured": {"files_removed": 11}})
    queue.run(end_of(claim, how, seen_version=100, result=result, error=error))


def test_a_call_waits_for_the_end_of_a_job(decider: LiveDecider, name: str, queue: SyncQueueExecutor) -> None:
    (job, *_) = request(decider, name, partitions=[f"dt={DAYS[0]}"], force=True)["jobs"]
    still = decider.get(f"/v1/jobs/{job['id']}", wait_s=0.1)
    assert still["job"]["state"] == "queued"
    claim = claimed(queue)
    timer = threading.Timer(0.3, finished, (queue, claim))
    timer.start()
    over = decider.get(f"/v1/jobs/{job['id']}", wait_s=20)
    timer.join()
    assert (over["job"]["state"], over["job"]["result"]) == ("finished", "done")
    assert decider.client.get(f"/v1/jobs/{job['id']}", params={"wait_s": 31}).status_code == 422


def test_the_stream_is_limited_to_the_jobs_of_a_request(decider: LiveDecider, name: str) -> None:
    jobs = [job["id"] for job in request(decider, name, mode="full", force=True)["jobs"]]
    assert len(jobs) > 1
    seen: list[dict[str, Any]] = []

    def read() -> None:
        params = {"about": "jobs", "job": jobs[1]}
        with decider.client.stream("GET", "/v1/stream", params=params) as answer:
            for line in answer.iter_lines():
                if line.startswith("data:"):
                    seen.append(json.loads(line.removeprefix("data:")))
                if any("job" in one for one in seen):
                    return

    reader = threading.Thread(target=read)
    reader.start()
    until("the stream is connected", lambda: seen)
    for job in jobs:
        decider.client.delete(f"/v1/jobs/{job}").raise_for_status()
    reader.join(scaled(60))
    assert [one["job"] for one in seen if "job" in one] == [jobs[1]]


@pytest.mark.parametrize(
    ("how", "code", "stated"),
    [(RunResult.DONE, 0, "1 job done; 11 files fewer."), (RunResult.CANCELLED, 1, "0 jobs done")],
)
def test_the_command_waits_for_its_jobs(
    decider: LiveDecider, name: str, queue: SyncQueueExecutor, how: RunResult, code: int, stated: str
) -> None:
    def act() -> None:
        finished(queue, until("a job waits", lambda: claimed_or_none(queue)), how, "no")

    timer = threading.Timer(0.0, act)
    timer.start()
    ran = decider.command("optimize", name, "--mode", "full", "--force", "--partition", f"dt={DAYS[0]}", "--wait")
    timer.join()
    assert ran.exit_code == code, ran.output
    assert stated in ran.stdout
    assert "No actor takes jobs now" in ran.stdout
    assert code == 0 or "did not succeed" in str(ran.exception)


def claimed_or_none(queue: SyncQueueExecutor) -> Claim | None:
    found = queue.run(commands.claim("default", worker="w", nonce=uuid.uuid4().hex, slots=1, lease_ms=600_000))
    return found[0] if found else None


def test_a_job_that_is_cancelled_before_it_runs_ends_the_wait(decider: LiveDecider, name: str) -> None:
    def cancel() -> None:
        (job,) = until("a job waits", lambda: decider.get("/v1/jobs", state="queued")["jobs"])
        decider.client.delete(f"/v1/jobs/{job['id']}").raise_for_status()

    timer = threading.Timer(0.0, cancel)
    timer.start()
    ran = decider.command("optimize", name, "--force", "--partition", f"dt={DAYS[0]}", "--wait", "--json")
    timer.join()
    assert ran.exit_code == 1
    (ended,) = json.loads(ran.stdout)["ended"]
    assert ended["result"] == "cancelled"


def test_a_dry_run_and_the_status_say_what_a_filter_that_moves_is_now(decider: LiveDecider, name: str) -> None:
    text = "dt < current_date - 3650 days"
    patched = decider.client.patch(f"/v1/tables/{name}", json={"properties": {"lakewright.filter": text}})
    patched.raise_for_status()
    decider.drain()
    plan = request(decider, name, force=True, dry_run=True)
    assert (plan["plans"], list(plan["reasons"])) == ([], ["filtered"])
    assert f"lakewright.filter = {text} is now dt < date '20" in plan["message"]
    assert any(text in note for note in decider.get(f"/v1/tables/{name}")["policy"]["notes"])
    listed = decider.get(f"/v1/tables/{name}/partitions")["partitions"]
    assert {one["decisions"][0]["reason"] for one in listed} == {"filtered"}
    wrong = {"properties": {"lakewright.filter": "dt < current_date - 7 fortnights"}}
    refused = decider.client.patch(f"/v1/tables/{name}", json=wrong)
    assert refused.status_code == 422
    assert "expected hours, days, weeks or months instead of 'fortnights'" in refused.text


def test_values_and_modes_are_options_of_the_command(decider: LiveDecider, name: str) -> None:
    plan = json.loads(
        decider.command(
            *("--json", "optimize", name, "--dry-run", "--force", "--mode", "minor"),
            *("--target-file-size", "8MiB", "--set", "min-input-files=2"),
        ).stdout
    )
    body = {"mode": "minor", "values": {"target-file-size": "8MiB", "min-input-files": "2"}}
    assert plan == request(decider, name, **body, force=True, dry_run=True)
    assert plan["plans"]
    assert decider.command("optimize", name, "--mode", "all").exit_code == 1
    assert decider.command("optimize", name, "--dry-run", "--wait").exit_code == 2
    assert decider.command("optimize", name, "--yes").exit_code == 2
    assert decider.command("optimize", "no/such", "--wait").exit_code == 2
