"""The `lakewright` command against a live decider: what people and scripts see, and the exit codes they rely on."""

import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from services.cli.__main__ import app
from services.cli.client import CallFailed
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.stack import free_port, lakewright
from tests.support.waiting import until

pytestmark = pytest.mark.redis


@pytest.fixture
def table(tmp_path: Path) -> WrittenTable:
    """A table of one partition that is worth a rewrite."""
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",))
    table.append(11)
    return table


def call(decider: LiveDecider, *arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, ["--url", decider.url, *arguments], input=given, env={"COLUMNS": "200"})


def stated(decider: LiveDecider, *arguments: str, given: str | None = None) -> str:
    result = call(decider, *arguments, given=given)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def as_json(decider: LiveDecider, *arguments: str) -> object:
    return json.loads(stated(decider, "--json", *arguments))


def test_what_if_by_name_asks_the_decider(decider: LiveDecider, table: WrittenTable) -> None:
    stated(decider, "tables", "add", str(table.path), "--name", "sales.orders")
    decider.drain()
    answer = as_json(decider, "what-if", "sales.orders", "--queries-per-hour", "100")
    assert isinstance(answer, dict)
    assert answer["location"] == table.path.as_uri()
    assert answer["cost_model"]["queries_per_hour"] == 100
    assert answer["policy"]["target_bytes"] == 256 * 1024
    assert "Lakewright by target size" in stated(decider, "what-if", "sales.orders")
    stated(decider, "tables", "change", "sales.orders", "--set", "lakewright.fan-in=16")
    with_mine = as_json(decider, "what-if", "sales.orders", "--set", "fan-in=4")
    assert isinstance(with_mine, dict)
    assert (with_mine["policy"]["fan_in"], with_mine["custom"]["fan_in"]) == (16, 4)
    refused = call(decider, "what-if", "sales.orders", "--set", "fan-in=banana")
    assert "lakewright.fan-in = 'banana' cannot be used" in str(refused.exception)
    assert call(decider, "what-if", "unknown").exit_code == 1


def test_a_tables_life_from_the_command_line(decider: LiveDecider, table: WrittenTable) -> None:
    assert "sales.orders is registered" in stated(
        decider, "tables", "add", str(table.path), "--name", "sales.orders", "--tenant", "sales"
    )
    decider.drain()
    assert table.path.as_uri() in stated(decider, "tables", "list", "--prefix", "sales.")
    shown = stated(decider, "tables", "show", "sales.orders")
    assert "1, 1 of them eligible" in shown
    counted = re.compile("state +waiting for an actor: `lakewright actors list` shows")
    until("its job is counted", lambda: counted.search(stated(decider, "tables", "show", "sales.orders")))
    assert re.search(r"lakewright.target-file-size +256\.0 KiB", shown)
    assert stated(decider, "optimizations", "sales.orders") == "Rewrites: none\n"
    assert "lakewright.target-file-size" in shown
    assert "dt=2026-01-01" in stated(decider, "tables", "partitions", "sales.orders")
    table.append(1)
    stated(decider, "events", "post", "--table", "sales.orders", "--version", "12")
    decider.drain()
    assert "Version 12, dt=2026-01-01: enqueue." in stated(decider, "tables", "decisions", "sales.orders")
    reported = stated(decider, "tables", "why", "sales.orders", "--partition", "dt=2026-01-01")
    assert "Version 12, dt=2026-01-01: enqueue." in reported
    assert "to read." in reported
    assert "Now: waiting for an actor" in reported
    stated(decider, "tables", "pause", "sales.orders")
    reported = " ".join(stated(decider, "tables", "why", "sales.orders").split())
    assert "Now: paused: nothing is rewritten before `lakewright tables resume sales.orders`." in reported
    assert "1 job. The table is paused, so nothing runs" in stated(decider, "vacuum", "sales.orders")
    assert "2 queued jobs cannot start now: paused" in stated(decider, "queue", "show")
    stated(decider, "tables", "resume", "sales.orders")
    now = datetime.now(UTC).isoformat()
    assert "Version 12" in stated(decider, "tables", "why", "sales.orders", "--at", now)
    assert call(decider, "tables", "why", "sales.orders", "--at", "2099-01-01T14:03:00Z").exit_code == 2
    assert "is kept here" in stated(decider, "tables", "why", "sales.orders", "--at", "2020-01-01T14:03")
    assert call(decider, "tables", "why", "sales.orders", "--at", "14:61").exit_code == 2
    assert "unregistered; table data untouched" in stated(decider, "tables", "remove", "sales.orders")
    assert as_json(decider, "tables", "list") == {"tables": [], "next_page_token": None}


def test_jobs_are_listed_shown_and_cancelled(decider: LiveDecider, table: WrittenTable) -> None:
    name = decider.register(table.path, "orders")
    listed = as_json(decider, "jobs", "list", "--table", name, "--state", "queued")
    assert listed == decider.get("/v1/jobs", state="queued", limit=50)
    (job,) = decider.get("/v1/jobs")["jobs"]
    assert job["id"] in stated(decider, "jobs", "list")
    assert "files_removed=11" in stated(decider, "jobs", "show", job["id"])
    assert "was deleted" in stated(decider, "jobs", "cancel", job["id"])
    assert decider.get("/v1/jobs")["jobs"] == []


def test_optimize_shows_the_plan_or_the_jobs(decider: LiveDecider, table: WrittenTable) -> None:
    name = decider.register(table.path, "orders")
    plan = stated(decider, "optimize", name, "--dry-run", "--partition", "dt=2026-01-01")
    assert "12 files would be replaced, the file count would decrease by 11" in plan
    jobs = stated(decider, "optimize", name, "--priority", "high")
    assert "1 job." in jobs
    assert "already queued: joined the waiting job" in jobs
    answer = as_json(decider, "optimize", name, "--partition", "dt=1999-01-01")
    assert isinstance(answer, dict)
    assert answer["ignored"] == "no_partition"


def test_events_are_posted_from_a_file_from_standard_input_and_by_name(
    decider: LiveDecider, table: WrittenTable, tmp_path: Path
) -> None:
    name = decider.register(table.path, "orders")
    file = tmp_path / "event.json"
    file.write_text(json.dumps([{"table": name}, {"table": "no.such"}]))
    assert stated(decider, "events", "post", str(file)) == "1 accepted; ignored: 1 unknown_table\n"
    assert stated(decider, "events", "post", "-", given=json.dumps({"table": name})) == "1 accepted\n"
    assert stated(decider, "events", "post", "--table", table.path.as_uri()) == "1 accepted\n"


def test_status_is_one_page(decider: LiveDecider, table: WrittenTable) -> None:
    decider.register(table.path, "orders")
    page = stated(decider, "status")
    assert "queued=1" in page
    assert "tables_initialized" not in page, "what people read has words"
    status = as_json(decider, "status")
    assert isinstance(status, dict)
    assert status["queue"]["depth"]["queued"] == 1


def test_the_token_travels_with_every_call(redis_url: str) -> None:
    token = "t0ken-for-tests-only"  # noqa: S105
    with LiveDecider(decider_settings(redis_url, token=token)) as live:
        with_token = CliRunner().invoke(app, ["--url", live.url, "status"], env={"LAKEWRIGHT_TOKEN": token})
        without = CliRunner().invoke(app, ["--url", live.url, "status"], env={"LAKEWRIGHT_TOKEN": ""})
    assert with_token.exit_code == 0
    assert isinstance(without.exception, CallFailed)
    assert "LAKEWRIGHT_TOKEN" in str(without.exception)


@pytest.mark.parametrize(
    ("arguments", "stated_cause"),
    [
        (("tables", "show", "no.such"), "table 'no.such' does not exist"),
        (("jobs", "show", "no.such"), "job 'no.such' does not exist"),
        (("tables", "add", "no/such/table"), "no/such/table"),
        (("optimize", "orders", "--priority", "asap"), "priority"),
        (("jobs", "list", "--state", "lost"), "state"),
        (("events", "post", "/no/such/file"), "cannot be read"),
    ],
)
def test_a_failure_is_one_line_that_says_what_and_where(
    decider: LiveDecider, table: WrittenTable, arguments: tuple[str, ...], stated_cause: str
) -> None:
    decider.register(table.path, "orders")
    failed = call(decider, *arguments)
    assert isinstance(failed.exception, CallFailed), failed.output
    assert stated_cause in str(failed.exception)
    assert "\n" not in str(failed.exception)


@pytest.mark.parametrize(
    "arguments",
    [("events", "post"), ("events", "post", "x", "--table", "y"), ("events", "post", "-", "--version", "1"), ("fly",)],
)
def test_wrong_use_is_exit_code_2(decider: LiveDecider, arguments: tuple[str, ...]) -> None:
    assert call(decider, *arguments).exit_code == 2


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a process with an almost empty environment."""
    return lakewright(*arguments, env={"PATH": "", **environment})


@pytest.mark.e2e
def test_no_decider_is_exit_code_1_and_one_line_on_standard_error() -> None:
    done = run("status", LAKEWRIGHT_URL=f"http://127.0.0.1:{free_port()}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("lakewright: no decider answers at http://127.0.0.1:")
    assert done.stderr.count("\n") == 1


@pytest.mark.e2e
def test_a_service_is_started_with_the_words_behind_its_name(tmp_path: Path) -> None:
    done = run("decider", LAKEWRIGHT_HTTP_ADDRESS="nonsense")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("lakewright decider: LAKEWRIGHT_HTTP_ADDRESS")
    helped = run("standalone", "--help", LAKEWRIGHT_DATA_DIR=str(tmp_path))
    assert helped.returncode == 0
    assert "--data-dir" in helped.stdout
