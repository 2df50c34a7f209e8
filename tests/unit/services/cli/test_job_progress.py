"""Waiting for jobs: a decider that cannot look now is asked again, a job that is gone was cancelled, else it fails."""

import time
from typing import Any

import httpx
import pytest

from services.cli import job_progress
from services.cli.client import ApiClient, CallFailed
from services.cli.job_progress import EndedJob, follow, show_ended
from services.cli.render import Output


def problem(status: int) -> httpx.Response:
    return httpx.Response(status, json={"detail": "why"})


def view(state: str, **more: Any) -> httpx.Response:
    job = {"state": state, "partition_label": "dt=1", "result": "", "error": "", "measured": {}} | more
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


def test_any_other_refusal_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CallFailed, match="why") as refused:
        followed([problem(403)], monkeypatch)
    assert refused.value.status == 403
