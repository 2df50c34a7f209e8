"""An answer over HTTP has a size and an end, however its server sends it."""

from itertools import count

import pytest

from shared import bounded_answer
from shared.bounded_answer import joined
from shared.errors import PermanentError, RetryableError


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
