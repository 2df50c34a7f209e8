"""What people read is in units and words: no raw bytes, no ids where there are names, no riddle for an outcome."""

import json
import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from services.cli.__main__ import app
from services.cli.cli_context import CliContext
from services.cli.commands import tables
from services.cli.render import budget_use, measured_runs, shown
from tests.unit.services.cli.test_every_call import documented


def ran(answer: dict[str, Any] | httpx.Response, *arguments: str) -> Result:
    found = answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)
    failed = httpx.Response(200, json={"jobs": []})  # `tables show` reads these, too
    is_of_jobs = "jobs" in arguments
    transport = httpx.MockTransport(lambda asked: failed if asked.url.path == "/v1/jobs" and not is_of_jobs else found)
    setting = CliContext("http://decider", as_json=False, transport=transport)
    return CliRunner().invoke(app, list(arguments), obj=setting, env={"COLUMNS": "200"})


def test_bytes_and_times_in_a_list_of_values_have_units() -> None:
    values = {"files_removed": 11, "bytes": 12_582_912, "commit_ms": 61_000, "groups_proofread_by_bytes": 1}
    assert shown(values) == "files_removed=11, bytes=12.0 MiB, commit_ms=1 min 1 s, groups_proofread_by_bytes=1"


def test_one_run_and_one_file_are_in_the_singular() -> None:
    learned = {
        "runs": 1, "measured_bytes": 1024, "predicted_bytes": 2048, "measured_files_removed": 1,
        "predicted_files_removed": 2,
    }  # fmt: skip
    assert measured_runs(learned) == "over 1 run: read 1.0 KiB of 2.0 KiB predicted, removed 1 file of 2"


@pytest.mark.parametrize(
    ("scope", "used", "stated"),
    [
        ("table", 0.5, "2 x: 0.5 used, until 2027-12-31 00:00:00 UTC"),
        ("tenant", None, "2 x: no prices in its currency, so nothing starts, until 2027-12-31 00:00:00 UTC"),
        ("amplification", None, "2 x: rewritten, and nothing added, until 2027-12-31 00:00:00 UTC"),
    ],
)
def test_a_budget_says_what_is_used_or_why_that_is_not_known(scope: str, used: float | None, stated: str) -> None:
    assert budget_use({"scope": scope, "budget": "2 x", "used": used, "renewed_at": "2027-12-31T00:00:00Z"}) == stated


def test_advice_of_bounds_states_what_reads_cost_and_what_its_owner_has_to_do() -> None:
    answer = documented("GET /v1/tables/{name}/advice", 200).json()
    advice, change = answer["advice"], {"write.metadata.metrics.column.c": "truncate(16)"}
    advice |= {"status": "open", "needs_owner": True, "change": change, "statement": "ALTER"}
    stated = ran(answer, "advice", "show", "sales.orders").stdout
    assert "Run `ALTER`" in stated
    assert "after" not in stated, "what reads will cost is not known"
    advice["statement"] = ""
    stated = ran(answer, "advice", "show", "sales.orders").stdout
    assert "Its owner sets write.metadata.metrics.column.c=truncate(16)" in stated
    advice["proof"]["bounds"] = None
    assert "after" in ran(answer, "advice", "show", "sales.orders").stdout


def test_a_chosen_target_is_shown_with_its_newest_reason() -> None:
    answer = documented("GET /v1/tables/{name}", 200).json() | {"worth": {"text": "pays"}}  # Of its history.
    change = {"at": "2027-12-31T00:00:00Z", "reason": "more reads"}
    answer["target"] = {"bytes": 256 << 20, "changes": [change | {"reason": "before"}, change]}
    stated = ran(answer, "tables", "show", "sales.orders").stdout
    assert "Worth of the rewrites: pays" in stated
    assert "chosen: 256.0 MiB, since 2027-12-31 00:00:00 UTC: more reads" in re.sub(r"[\s│]+", " ", stated)
    answer["target"] = None
    assert "chosen" not in ran(answer, "tables", "show", "sales.orders").stdout


def test_a_table_without_own_properties_is_shown_with_the_command_that_lists_all_of_them() -> None:
    answer = documented("GET /v1/tables/{name}", 200).json() | {"worth": {"text": "pays"}, "name": "sales.orders"}
    answer["policy"]["values"] = [one | {"source": "default"} for one in answer["policy"]["values"]]
    answer["layout"] |= {"files": 120, "files_needed": 2}
    stated = ran(answer, "tables", "show", "sales.orders").stdout
    assert "All " in stated
    assert "properties have their defaults: lakewright --json tables show sales.orders" in stated
    layout = next(line for line in stated.splitlines() if line.startswith("Layout: 120 files, "))
    assert "; 2 would do; " in layout


def test_a_commit_of_several_partitions_is_no_blank() -> None:
    answer = documented("GET /v1/tables/{name}/optimizations", 200).json()
    answer["optimizations"] = [one | {"partition_label": None} for one in answer["optimizations"]]
    assert "  several  " in ran(answer, "optimizations", "sales.orders").stdout


def test_the_queue_is_shown_by_the_names_of_tables() -> None:
    stated = ran(documented("GET /v1/queue", 200), "queue", "show").stdout
    waiting = next(line for line in stated.splitlines() if line.startswith("tables"))
    assert "sales.orders" in waiting
    assert "sales-orders-1f0c7a52" not in waiting
    (job,) = (line for line in stated.splitlines() if line.endswith(".compact"))
    assert job.startswith("sales.orders  dt=2026-01-01 ")
    assert "its table sales.orders" in job


def test_a_dry_run_by_name_shows_what_it_would_gain() -> None:
    answer = json.loads(documented("POST /v1/tables/{name}/optimize", 200).text)
    answer["plans"] = [
        {
            "partition_label": "dt=2026-01-01", "action": "compact",
            "files_replaced": 12, "groups": [{}], "bytes": 1024,
            "before": {"files": 12}, "after": {"files": 3, "files_needed": 1},
        }
    ]  # fmt: skip
    stated = ran(answer, "optimize", "sales.orders", "--dry-run").stdout
    assert "12 files would become 3; then: 3 files, 1 would do." in stated


def test_a_wait_for_jobs_of_a_paused_table_ends_at_once_with_the_reason() -> None:
    answer = json.loads(documented("POST /v1/tables/{name}/optimize", 202).text) | {"paused": "table"}
    result = ran(answer, "optimize", "sales.orders", "--wait")
    assert result.exit_code == 1
    assert "the table is paused; `lakewright tables resume sales.orders`" in str(result.exception)


def test_a_wait_for_a_table_that_is_being_rewritten_follows_the_jobs_that_run() -> None:
    answer = json.loads(documented("POST /v1/tables/{name}/optimize", 202).text)
    answer |= {"jobs": [], "ignored": "already_running", "running": 1, "running_jobs": ["a.1.compact"], "paused": None}
    asked: list[str] = []

    def answered(request: httpx.Request) -> httpx.Response:
        asked.append(f"{request.method} {request.url.path}")
        if request.method == "POST":
            return httpx.Response(202, json=answer)
        if request.url.path == "/v1/actors":
            return documented("GET /v1/actors", 200)
        ended = {"state": "finished", "partition_label": "", "result": "done", "error": "", "attempts": 0}
        return httpx.Response(200, json={"job": ended | {"measured": {"files_removed": 59, "bytes": 1}}})

    setting = CliContext("http://decider", as_json=False, transport=httpx.MockTransport(answered))
    result = CliRunner().invoke(app, ["optimize", "sales.orders", "--wait"], obj=setting)
    assert "1 job done; 59 files fewer." in result.stdout
    assert asked[-1] == "GET /v1/jobs/a.1.compact"


def test_one_paused_table_or_all_of_them_are_resumed() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(200, json={"message": "37 tables resumed."})

    setting = CliContext("http://decider", as_json=False, transport=httpx.MockTransport(answer))
    for arguments in (["a"], ["--all"], [], ["a", "--all"]):
        CliRunner().invoke(app, ["tables", "resume", *arguments], obj=setting)
    assert asked == ["/v1/tables/a/resume", "/v1/tables/resume"]


@pytest.mark.parametrize(
    ("operation", "status", "command"),
    [
        ("GET /v1/tables/{name}/decisions", 200, ("tables", "why", "sales.orders", "--at", "00:00")),
        ("GET /v1/tables/{name}/decisions", 200, ("tables", "decisions", "sales.orders")),
        ("GET /v1/tables/{name}/partitions", 200, ("tables", "partitions", "sales.orders")),
        ("POST /v1/tables/{name}/optimize", 202, ("optimize", "sales.orders")),
    ],
)
def test_decisions_and_jobs_are_shown_with_their_action(operation: str, status: int, command: tuple[str, ...]) -> None:
    answer = json.loads(documented(operation, status).text.replace('"action": "compact"', '"action": "census"'))
    assert " census " in ran(answer, *command).stdout


@pytest.mark.parametrize("outcome", ["queued", "merged", "rerun"])
def test_an_outcome_never_reads_as_done(outcome: str) -> None:
    answer = json.loads(documented("POST /v1/tables/{name}/optimize", 202).text)
    answer["jobs"][0]["outcome"] = outcome
    stated = ran(answer, "optimize", "sales.orders").stdout
    assert "merged" not in stated
    assert {"queued": "queued", "merged": "joined the waiting job", "rerun": "runs again after"}[outcome] in stated


def test_a_minute_is_asked_about_as_a_whole_and_not_beyond_now(monkeypatch: pytest.MonkeyPatch) -> None:
    class Noon(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Noon":
            return cls(2027, 1, 1, 12, 0, 30, tzinfo=tz)

    monkeypatch.setattr(tables, "datetime", Noon)
    stated = [f"{tables._moment(text):%d %H:%M:%S}" for text in ("11:59", "12:00", "11:59:07", "12:31")]
    assert stated == ["01 11:59:59", "01 12:00:30", "01 11:59:07", "31 12:31:59"]


@pytest.mark.parametrize("ahead", [timedelta(hours=2), timedelta(days=400)])
def test_why_in_the_future_is_refused(ahead: timedelta) -> None:
    moment = (datetime.now(UTC) + ahead).isoformat()
    result = ran(httpx.Response(500), "tables", "why", "sales.orders", "--at", moment)
    assert result.exit_code == 2
    assert "is in the future" in re.sub(r"[\s│]+", " ", result.stderr)


@pytest.mark.parametrize("given", ["fan-in=4", "lakewright.fan-in=4"])
def test_set_takes_a_property_with_and_without_its_prefix(given: str) -> None:
    asked: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return documented("POST /v1/tables", 201)

    setting = CliContext("http://decider", as_json=True, transport=httpx.MockTransport(answer))
    result = CliRunner().invoke(app, ["tables", "add", "s3://lake/orders", "--set", given], obj=setting)
    assert result.exit_code == 0, result.output
    assert asked[0]["properties"] == {"lakewright.fan-in": "4"}


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ("agin=60s", "strict-bands, strict-in-row, aging, max-attempts, backoff-base, backoff-cap, half-open"),
        ("aging", "expected name=value"),
        ("aging=60", "expected a time with its unit"),
        ("aging=2d", "aging: expected 0s to 1d, found '2d'"),
        ("aging=0.0001s", "expected a time with its unit"),
        ("max-attempts=0", "max-attempts: expected a whole number from 1 to 100, found '0'"),
        ("slots=4", "'slots' is set by the decider"),
    ],
)
def test_a_wrong_use_is_refused_before_anything_is_sent(pair: str, words: str) -> None:
    transport = httpx.MockTransport(lambda _: pytest.fail("nothing may be sent"))
    setting = CliContext("http://decider", False, transport)
    result = CliRunner().invoke(app, ["queue", "set", pair], obj=setting, env={"COLUMNS": "300"})
    assert result.exit_code == 2
    assert words in result.output
