"""Failures, progress and output are told in the words of whoever typed the command."""

import time
from typing import Any

import httpx
import pytest

from services.cli import job_progress
from services.cli.client import ApiClient, CallFailed
from services.cli.job_progress import EndedJob, follow, show_ended
from services.cli.render import Output, counted, time_span

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
