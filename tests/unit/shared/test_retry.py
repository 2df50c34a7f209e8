"""Pauses double up to a bound, and an answer over HTTP has a size and an end."""

import math
from itertools import count

import pytest

from shared import bounded_answer
from shared.bounded_answer import joined
from shared.errors import PermanentError, RetryableError
from shared.retry import RetryPolicy


def test_pauses_double_up_to_a_bound() -> None:
    policy = RetryPolicy(8, 1.0, 60.0)
    assert [policy.pause_s(failures) for failures in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert [RetryPolicy(3, 0.1).pause_s(failures) for failures in (1, 2, 10)] == [0.1, 0.2, 51.2]


def test_an_outage_of_days_overflows_nothing() -> None:
    assert RetryPolicy(None, 1.0, 30.0).pause_s(1_000_000) == 30
    assert math.isfinite(RetryPolicy(None, 1.0).pause_s(1_000_000))


@pytest.mark.parametrize(("draw", "share"), [(0.0, 1.0), (0.5, 0.75), (1.0, 0.5)])
def test_jitter_takes_off_up_to_half_of_a_pause_and_of_its_bound(draw: float, share: float) -> None:
    assert RetryPolicy(8, 1.0, 60.0).pause_s(3, draw=draw) == 4 * share
    assert RetryPolicy(8, 1.0, 60.0).pause_s(30, draw=draw) == 60 * share


def test_as_many_tries_are_made_as_the_policy_has() -> None:
    assert [RetryPolicy(3, 0.1).is_exhausted(failures) for failures in range(1, 5)] == [False, False, True, True]
    assert not RetryPolicy(None, 0.1).is_exhausted(1_000_000)


def test_an_answer_is_its_parts_in_their_order() -> None:
    assert joined([b"a", b"", b"bc"], "an answer", until_s=1, now_s=lambda: 0) == b"abc"


def test_a_server_that_sends_without_an_end_is_not_listened_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_answer, "MAX_ANSWER_BYTES", 10)
    with pytest.raises(PermanentError, match="an answer has more than 10 bytes"):
        joined((b"abc" for _ in count()), "an answer", until_s=1, now_s=lambda: 0)


def test_a_server_that_sends_slowly_is_not_waited_for() -> None:
    clock = count()
    with pytest.raises(RetryableError, match="an answer took too long"):
        joined((b"a" for _ in count()), "an answer", until_s=5, now_s=lambda: next(clock))
