"""A catalog that answers nothing keeps a few threads of its own, and every further call fails at once."""

import asyncio
import threading

import pytest

from decider.formats import catalog_calls
from decider.formats.catalog_calls import CALLS_AT_ONCE, CatalogCalls
from shared.errors import RetryableError


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
