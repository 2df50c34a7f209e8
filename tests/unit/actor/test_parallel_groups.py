"""Groups are written several at once, in any order, and none is begun after a failure or a request to stop."""

import threading

import pytest

from actor.parallel_groups import attempt_all
from tests.support.time_limits import scaled


def never() -> bool:
    return False


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_results_have_the_order_of_the_groups(threads: int) -> None:
    assert attempt_all("abc", str.upper, threads=threads, should_stop=never) == ["A", "B", "C"]


def test_nothing_is_written_where_there_are_no_groups() -> None:
    assert attempt_all("", str.upper, threads=2, should_stop=never) == []


def test_as_many_groups_as_there_are_threads_are_written_at_once() -> None:
    all_of_them = threading.Barrier(3, timeout=scaled(20))

    def write(group: str) -> str:
        all_of_them.wait()
        return group

    assert attempt_all("abc", write, threads=3, should_stop=never) == ["a", "b", "c"]


def test_a_failure_does_not_interrupt_a_group_that_was_begun() -> None:
    both, has_failed = threading.Barrier(2, timeout=scaled(20)), threading.Event()

    def write(group: str) -> str:
        both.wait()
        if group == "a":
            has_failed.set()
            raise OSError(group)
        assert has_failed.wait(scaled(20))
        return group

    failed, written = attempt_all("ab", write, threads=2, should_stop=never)
    assert isinstance(failed, OSError)
    assert written == "b"


def test_a_failure_that_says_nothing_of_others_spares_them() -> None:
    def write(group: str) -> str:
        if group == "a":
            raise OSError(group)
        return group

    found = attempt_all("abc", write, threads=1, should_stop=never, spares_others=lambda _failure: True)
    assert found[1:] == ["b", "c"]
    stopped = attempt_all("abc", write, threads=1, should_stop=never)
    assert stopped[1:] == [None, None]


def test_asked_to_stop_no_further_group_is_begun() -> None:
    written: list[str] = []

    def write(group: str) -> str:
        written.append(group)
        return group

    assert attempt_all("abc", write, threads=1, should_stop=lambda: bool(written)) == ["a", None, None]
