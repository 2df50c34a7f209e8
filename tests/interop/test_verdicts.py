"""Whose a difference is: an engine's own defect is told from ours, and no row lost or doubled is ever excused."""

from collections import Counter
from typing import Any

import pytest

from tests.interop.values import Rows
from tests.interop.verdicts import Failure, Verdict, judge


def rows(*values: tuple[Any, ...], types: tuple[str, ...] = ("long", "string", "string")) -> Rows:
    return Rows(("id", "a", "b"), types, Counter(values))


EXPECTED = rows((1, "x", "x"), (2, "y", "y"), (3, "z", "z"))


A_WRONG = rows((1, None, "x"), (2, "y", "y"), (3, "z", "z"))
TWO_A_WRONG = rows((1, None, "x"), (2, None, "y"), (3, "z", "z"))


@pytest.mark.parametrize(
    ("seen", "control", "verdict"),
    [
        (EXPECTED, None, "agrees"),
        (A_WRONG, EXPECTED, "OURS"),
        # The same rows wrong, fewer, or more of them in the same column.
        (A_WRONG, A_WRONG, "theirs"),
        (A_WRONG, TWO_A_WRONG, "theirs"),
        (TWO_A_WRONG, A_WRONG, "theirs"),
        # In another column, a row less, a row twice: ours, though the engine is wrong without us as well.
        (rows((1, "x", None), (2, "y", "y"), (3, "z", "z")), A_WRONG, "OURS"),
        (rows((1, None, "x"), (2, None, "y")), A_WRONG, "OURS"),
        (rows((1, None, "x"), (2, None, "y")), rows((1, None, "x"), (2, "y", "y")), "OURS"),
        (rows((1, None, "x"), (1, None, "x"), (2, None, "y"), (3, "z", "z")), A_WRONG, "OURS"),
        (EXPECTED, Failure("cannot"), "agrees"),
        (A_WRONG, Failure("cannot"), "OURS"),
        (Failure("cannot"), Failure("cannot"), "cannot"),
        (Failure("cannot"), Failure("never could"), "cannot"),
        (Failure("cannot"), EXPECTED, "OURS"),
    ],
)
def test_a_difference_is_ours_unless_the_engine_is_wrong_in_the_same_way_without_us(
    seen: Any, control: Any, verdict: str
) -> None:
    assert judge(seen, EXPECTED, lambda: control) is Verdict(verdict)


def test_a_type_is_ours_unless_the_engine_shows_it_without_us() -> None:
    other = ("long", "binary", "string")
    wrong, same = rows((1, "x", "x"), types=other), rows((1, "x", "x"), types=other)
    expected = rows((1, "x", "x"))
    assert judge(wrong, expected, lambda: same) is Verdict.THEIRS
    assert judge(wrong, expected, lambda: expected) is Verdict.OURS


def test_of_several_tables_that_we_never_touched_one_that_shows_the_difference_is_enough() -> None:
    """A table whose timestamps an engine cannot read has a twin that it can: what is wrong there is not ours."""
    cannot, twin = Failure("cannot"), TWO_A_WRONG
    assert judge(A_WRONG, EXPECTED, lambda: cannot, lambda: twin) is Verdict.THEIRS
    assert judge(A_WRONG, EXPECTED, lambda: cannot, lambda: EXPECTED) is Verdict.OURS
