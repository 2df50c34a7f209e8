"""A catalog that answers nothing keeps a few threads of its own; what it answers is read within limits."""

import asyncio
import itertools
import threading
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from pyiceberg import exceptions
from requests.adapters import BaseAdapter

from decider.formats import catalog_calls
from decider.formats.catalog_calls import CALLS_AT_ONCE, CatalogCalls
from decider.formats.iceberg import rest_client
from decider.formats.iceberg.catalogs import translated
from decider.formats.iceberg.rest_client import LimitedRestCatalog
from shared import bounded_answer
from shared.errors import LakewrightError, PermanentError, RetryableError
from tests.support.failure_classes import OF_PYICEBERG


@pytest.fixture
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_calls, "PATIENCE_S", 0.02)


@pytest.mark.usefixtures("little_patience")
def test_calls_beyond_the_threads_of_a_silent_catalog_fail_and_those_that_wait_are_answered_later() -> None:
    answers, asked = threading.Event(), []

    def ask(number: int) -> int:
        asked.append(number)
        answers.wait()
        return number

    async def run() -> list[int]:
        calls = CatalogCalls("prod")
        waiting = [asyncio.ensure_future(calls.run(ask, number)) for number in range(CALLS_AT_ONCE)]
        await asyncio.sleep(0)  # Each asks, before the next one does.
        with pytest.raises(RetryableError, match="catalog prod leaves 8 calls unanswered"):
            await calls.run(ask, 8)
        with pytest.raises(RetryableError, match="asked again later"):
            await calls.run(ask, 9)
        assert sorted(asked) == list(range(CALLS_AT_ONCE))
        answers.set()
        done = await asyncio.gather(*waiting)
        return [*done, await calls.run(ask, 10)]

    assert asyncio.run(run()) == [*range(CALLS_AT_ONCE), 10]


def test_calls_wait_for_a_thread_while_others_are_answered() -> None:
    turns = threading.Semaphore(0)

    def ask(number: int) -> int:
        turns.acquire()
        return number

    async def run() -> list[int]:
        calls = CatalogCalls("prod")
        waiting = [asyncio.ensure_future(calls.run(ask, number)) for number in range(3 * CALLS_AT_ONCE)]
        for _ in waiting:
            await asyncio.sleep(0)
            turns.release()
        return sorted(await asyncio.gather(*waiting))

    assert asyncio.run(run()) == list(range(3 * CALLS_AT_ONCE))


def test_what_a_call_raises_reaches_its_caller_in_every_event_loop() -> None:
    calls = CatalogCalls("prod")

    def fail() -> None:
        raise KeyError("uri")

    for _ in range(2):
        with pytest.raises(KeyError, match="uri"):
            asyncio.run(calls.run(fail))


PARTS = 1_000
"""Parts that a client may ask for, of some 64 KiB each: many times the limit of the test."""


class Endless(BaseAdapter):
    """Answers every request with more than anyone may read."""

    def __init__(self, status: int) -> None:
        self._status = status

    def send(self, request: Any, **_: object) -> requests.Response:
        answer = requests.Response()
        answer.status_code, answer.request, answer.url = self._status, request, request.url
        answer.headers["location"] = "http://catalog/elsewhere"
        parts = itertools.count(1)
        answer.raw = SimpleNamespace(
            read=lambda size: b" " * size if next(parts) < PARTS else pytest.fail("read on and on"),
            release_conn=lambda: None,
        )
        return answer

    def close(self) -> None:
        pass


@pytest.mark.parametrize("status", [200, 302, 500])
def test_an_answer_without_an_end_is_read_up_to_a_size_and_a_moment(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that redirect, too, which are read to their end before the next request."""
    rest: Any = object.__new__(LimitedRestCatalog)
    rest.name, rest.properties = "lake", {}
    with requests.Session() as session:
        rest._config_headers(session)
        session.mount("http://", Endless(status))
        monkeypatch.setattr(bounded_answer, "MAX_ANSWER_BYTES", 1_000_000)
        with pytest.raises(PermanentError, match=r"catalog lake: an answer of http://catalog/v1 has more than 1000000"):
            session.get("http://catalog/v1")
        monkeypatch.setattr(rest_client, "time", SimpleNamespace(monotonic=itertools.count(0, 200).__next__))
        with pytest.raises(RetryableError, match="took too long"):
            session.get("http://catalog/v1")


def judged(problem: Exception) -> type[LakewrightError]:
    try:
        with translated("reading lake/db.t"):
            raise problem
    except LakewrightError as ours:
        return type(ours)


def test_every_exception_of_the_library_is_judged_as_its_table_says() -> None:
    """A new release that adds one fails here."""
    kinds = {name: kind for name, kind in vars(exceptions).items() if isinstance(kind, type)}
    found = {name: judged(kind("no")) for name, kind in kinds.items()}
    assert found == {name: meant for meant, names in OF_PYICEBERG.items() for name in names.split()}
