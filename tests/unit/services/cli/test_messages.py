"""Failures, progress and output are told in the words of whoever typed the command."""

import json
import time
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
from typer.testing import CliRunner

from services.cli import job_progress
from services.cli.__main__ import app
from services.cli.cli_context import CliContext, name_values
from services.cli.client import ApiClient, CallFailed
from services.cli.job_progress import EndedJob, follow, show_ended
from services.cli.locations import is_location, location_of
from services.cli.render import Output, counted, time_span
from tests.tools.cli_page import commands

PROBLEM = {"type": "about:blank", "title": "Not found", "status": 404, "detail": "there is no table 'sales'"}


def failure(answer: httpx.Response) -> str:
    with (
        ApiClient("http://decider:7420", transport=httpx.MockTransport(lambda _: answer)) as api,
        pytest.raises(CallFailed) as caught,
    ):
        api.get("/v1/tables/sales")
    return str(caught.value)


def test_a_failed_call_shows_the_sentence_and_neither_verb_nor_path() -> None:
    assert failure(httpx.Response(404, json=PROBLEM)) == "there is no table 'sales'"


def test_a_call_that_the_api_advises_is_shown_as_the_command_that_makes_it() -> None:
    problem = PROBLEM | {"detail": "the name is 'a.b'; change it with PATCH /v1/tables/a.b"}
    stated = failure(httpx.Response(409, json=problem))
    assert stated == "the name is 'a.b'; change it with `lakewright tables change a.b`"


def test_what_is_allowed_is_shown() -> None:
    problem = PROBLEM | {"detail": "unknown state 'ready'", "allowed": "queued, leased"}
    assert failure(httpx.Response(422, json=problem)) == "unknown state 'ready' (allowed: queued, leased)"
    problem = PROBLEM | {"detail": "the name is 'a.b'; change it", "allowed": "a.b"}
    assert failure(httpx.Response(409, json=problem)) == "the name is 'a.b'; change it"


@pytest.mark.parametrize(("status", "advice"), [(401, "set LAKEWRIGHT_TOKEN"), (403, "LAKEWRIGHT_TOKEN")])
def test_a_refused_caller_gets_the_setting_to_change(status: int, advice: str) -> None:
    assert advice in failure(httpx.Response(status, json=PROBLEM))


def test_an_answer_of_another_program_names_the_address_to_check() -> None:
    stated = failure(httpx.Response(502, text="<html>"))
    assert stated == "http://decider:7420 answered with status 502 and is no decider; check the address"


def test_a_broken_stream_is_reported_the_same_way() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(404, json=PROBLEM))
    with ApiClient("http://decider:7420", transport=transport) as api, pytest.raises(CallFailed) as caught:
        list(api.events("/v1/stream", {}, None))
    assert str(caught.value) == "there is no table 'sales'"


@pytest.mark.parametrize(
    ("seconds", "stated"),
    [
        (0, "0 s"), (0.034, "0.034 s"), (1, "1 s"), (9.96, "10 s"), (59, "59 s"), (60, "1 min"), (74, "1.2 min"),
        (3_599, "60 min"), (3_600, "1 h"), (11_940, "3.3 h"), (45_000, "12 h"), (86_400, "1 d"), (108_000, "1.2 d"),
        (86_400 * 12_345, "12,345 d"),
    ],
)  # fmt: skip
def test_a_time_span_has_one_unit_and_no_more_digits_than_are_read(seconds: float, stated: str) -> None:
    assert time_span(seconds) == stated


def test_one_of_a_thing_is_in_the_singular() -> None:
    assert (counted(1, "file"), counted(2, "file"), counted(1_000, "file")) == ("1 file", "2 files", "1,000 files")


def problem(status: int) -> httpx.Response:
    return httpx.Response(status, json={"detail": "why"})


def view(state: str, **more: Any) -> httpx.Response:
    job = {"state": state, "partition_label": "dt=1", "result": "", "error": "", "attempts": 0, "measured": {}} | more
    return httpx.Response(200, json={"job": job})


def followed(answers: list[httpx.Response], monkeypatch: pytest.MonkeyPatch) -> tuple[list[EndedJob], list[float]]:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    left = iter(answers)
    with ApiClient("http://decider", None, httpx.MockTransport(lambda _: next(left))) as api:
        return follow(api, ["t.1.compact"]), pauses


def test_a_job_is_asked_for_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    done = view("finished", result="done", measured={"files_removed": 11, "bytes": 5})
    ended, pauses = followed([view("queued"), problem(503), view("leased"), done], monkeypatch)
    assert ended == [EndedJob("t.1.compact", "done", "", 11, 5)]
    assert ended[0].is_done
    assert pauses == [job_progress.AGAIN_S, job_progress.AWAY_S, job_progress.AGAIN_S]


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (problem(404), "cancelled"),
        (view("quarantined", error="odd"), "quarantined"),
        (view("finished", result="fail", error="odd"), "fail"),
    ],
)
def test_a_job_that_did_not_succeed_fails_the_command(
    answer: httpx.Response, result: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, _ = followed([answer], monkeypatch)
    assert [one.result for one in ended] == [result]
    with pytest.raises(CallFailed, match=f"1 job of 1 did not succeed; t.1.compact {result}"):
        show_ended(Output(100, as_json=True), ended)


def test_each_failed_attempt_is_said_while_the_command_waits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = [view("delayed", attempts=attempt, error=f"odd [{attempt}]") for attempt in (1, 1, 2)]
    followed([view("delayed"), *failed, view("finished", result="done")], monkeypatch)
    lines = capsys.readouterr().err.splitlines()
    assert [line.strip() for line in lines if line.strip()] == [
        f"Attempt {attempt} failed, the next one follows: odd [{attempt}]" for attempt in (1, 2)
    ]


def test_any_other_refusal_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CallFailed, match="why") as refused:
        followed([problem(403)], monkeypatch)
    assert refused.value.status == 403


STATUS = {"actors": [], "busy_slots": 0, "slots": 0, "unserved": []}


def answered(*arguments: str) -> str:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=STATUS))
    result = CliRunner().invoke(
        app, list(arguments), obj=CliContext("http://decider", as_json=False, transport=transport)
    )
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def test_json_may_stand_behind_the_command() -> None:
    assert json.loads(answered("actors", "list", "--json")) == STATUS


def test_without_json_people_get_a_table() -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(answered("actors", "list"))


@pytest.mark.parametrize("command", ["tables list", "optimize", "what-if", "queue show", "status", "tables index t"])
def test_every_command_offers_json_in_its_help(command: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "120"})
    assert "--json" in result.stdout


def test_the_version_is_that_of_the_package() -> None:
    found = CliRunner().invoke(app, ["--version"])
    assert (found.exit_code, found.stdout) == (0, f"lakewright {version('lakewright')}\n")
    declared = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())["project"]["version"]
    assert version("lakewright") == declared


IMPERATIVES = {
    "Cancel", "Change", "Check", "Compute", "Convert", "Delete", "Dispatch", "Explain", "Keep", "Let", "List", "Make",
    "Merge", "Move", "Optimize", "Post", "Rebuild", "Register", "Rename", "Replay", "Run", "Set", "Show", "Simulate",
    "Sort", "Stop", "Stream", "Unregister", "Write",
}  # fmt: skip


ALL = dict(commands(typer.main.get_command(app)))


def test_every_command_is_covered() -> None:
    assert len(ALL) > 35
    assert {"tables add", "tables index", "doctor"} <= set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_a_help_text_is_an_instruction(name: str) -> None:
    command = ALL[name]
    assert command.help.split()[0].rstrip(",") in IMPERATIVES, command.help
    texts = [command.help, *(one.help for one in command.params if getattr(one, "help", None))]
    for text in texts:
        assert text.rstrip().endswith("."), text


COMMANDS = [
    ("optimize", "sales.orders"),
    ("optimize", "/lake/orders", "--dry-run"),
    ("what-if", "sales.orders"),
    ("what-if", "/lake/orders"),
    ("tables", "add", "/lake/orders"),
    ("tables", "change", "sales.orders"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("given", ["foo", "=4", "fan-in="])
def test_what_is_no_name_and_value_is_wrong_use_in_every_command(command: tuple[str, ...], given: str) -> None:
    setting = CliContext("http://decider", as_json=False, transport=httpx.MockTransport(lambda _: httpx.Response(500)))
    result = CliRunner().invoke(app, [*command, "--set", given], obj=setting)
    assert result.exit_code == 2, result.output
    assert "expected name=value" in result.stderr


def test_blanks_do_not_count_and_the_last_value_of_a_name_stays() -> None:
    assert name_values(["a = 1", "b=x=y", "a=2"]) == {"a": "2", "b": "x=y"}
    assert name_values(None) == {}
    with pytest.raises(typer.BadParameter, match="found ' = '"):
        name_values([" = "])


def test_a_name_in_one_of_the_catalogs_is_a_location(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEWRIGHT_CATALOGS", '{"prod": {}}')
    assert is_location("prod.sales.orders")
    assert location_of("prod.sales.eu.orders") == "catalog://prod/sales/eu/orders"
    assert location_of("catalog://prod/sales/orders") == "catalog://prod/sales/orders"
    for name in ("prod.orders", "other.sales.orders", "prod..orders", "orders"):
        assert not is_location(name)


def test_without_catalogs_every_name_is_that_of_a_registered_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKEWRIGHT_CATALOGS", raising=False)
    assert not is_location("prod.sales.orders")
