"""A failure is told in the words of whoever typed the command: no HTTP call, no traceback."""

import httpx
import pytest

from services.cli.client import ApiClient, CallFailed

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
