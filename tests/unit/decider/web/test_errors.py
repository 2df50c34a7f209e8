"""Failures become problems: the right status, the field at fault, and nothing of our insides."""

import asyncio
import json

import httpx
import pytest
from fastapi import FastAPI
from redis.exceptions import ConnectionError as RedisGone
from structlog.testing import capture_logs

from decider.gateway.authentication import require_credentials_beyond_loopback
from decider.gateway.credentials import Credentials, parse_secrets, parse_tokens
from decider.web.errors import MAX_VALUE_CHARS, MEDIA_TYPE, install, shown
from shared.errors import Conflict, Corrupt, InvalidInput, LakewrightError, LeaseLost, RetryableError, Unsupported


def answer_to(raised: Exception) -> tuple[int, dict[str, object]]:
    app = FastAPI()
    install(app)

    @app.get("/fail")
    async def fail() -> None:
        raise raised

    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://decider") as client:
            return await client.get("/fail")

    answer = asyncio.run(call())
    assert answer.headers["content-type"] == MEDIA_TYPE
    return answer.status_code, answer.json()


@pytest.mark.parametrize(
    ("raised", "status"),
    [
        (InvalidInput("x is wrong", field="x", allowed="1 to 3"), 422),
        (Unsupported("table t uses catalogManaged", field="features"), 409),
        (Conflict("someone was first", kind="ConcurrentAppend"), 409),
        (RetryableError("the store is away"), 503),
        (LeaseLost("gone"), 503),
        (Corrupt("the log contradicts itself"), 502),
        (LakewrightError("something else"), 502),
        (RedisGone("redis://user:secret@host"), 503),
        (ValueError("a secret of ours"), 500),
    ],
)
def test_each_error_of_the_tree_has_its_status(raised: Exception, status: int) -> None:
    with capture_logs():  # To draw the traceback of what was not foreseen takes longer than all else here.
        found, problem = answer_to(raised)
    assert (found, problem["status"]) == (status, status)
    assert str(problem["type"]).startswith("urn:lakewright:problem:")
    assert "secret" not in json.dumps(problem)


def test_an_invalid_input_names_field_and_what_is_allowed() -> None:
    _, problem = answer_to(InvalidInput("x is 7", field="x", allowed="1 to 3"))
    assert (problem["field"], problem["allowed"], problem["detail"]) == ("x", "1 to 3", "x is 7")


@pytest.mark.parametrize("value", ["x" * 10_000, {"a": ["b"] * 5_000}, "\ud800", float("nan"), 10**400, b"\xff"])
def test_a_wrong_value_is_shown_short_and_can_always_be_sent(value: object) -> None:
    text = json.dumps(shown(value), allow_nan=False).encode()
    assert len(text) <= 2 * MAX_VALUE_CHARS + 400


def refusal(host: str, credentials: Credentials) -> InvalidInput | None:
    try:
        require_credentials_beyond_loopback(host, credentials)
    except InvalidInput as refused:
        return refused
    return None


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.8.8"])
def test_the_loopback_address_needs_no_token(host: str) -> None:
    assert refusal(host, Credentials()) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "lakewright.internal", ""])  # noqa: S104 - compared
def test_any_other_address_needs_a_token(host: str) -> None:
    assert "LAKEWRIGHT_TOKEN" in str(refusal(host, Credentials()))
    assert refusal(host, Credentials(parse_tokens("admin:t0ken-for-tests-only"))) is None
    assert refusal(host, Credentials(secrets=parse_secrets("s3cret-" * 6))) is None
