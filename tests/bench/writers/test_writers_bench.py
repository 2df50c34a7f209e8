"""What the benchmark under writers stands on, without Spark: its rows, and the figures that decide."""

from collections import Counter

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from tests.bench.machine import exit_code
from tests.bench.writers.playing import OURS, THEIRS, Played, limits
from tests.bench.writers.rows import change, differences, digest


def test_each_statement_changes_one_row_of_those_that_are_expected() -> None:
    rows = {1: (0, digest("a")), 2: (0, digest("b"))}
    for number, one, after in [
        (0, 1, {2: (0, digest("b"))}),
        (1, 1, {2: (0, digest("b"))}),  # Nothing is left to update.
        (4, 2, {2: (4, digest("b"))}),
        (2, 1, {1: (2, digest("")), 2: (4, digest("b"))}),
        (5, 2, {1: (2, digest("")), 2: (5, digest("b"))}),
    ]:
        text, apply = change(number, one, rows, number)
        before = dict(rows)
        assert (str(one) in text.format(t="t"), rows) == (True, before)
        apply()
        assert rows == after


@pytest.mark.parametrize(
    ("found", "wrong"), [([(1, 0, "a")], 0), ([], 1), ([(1, 0, "a")] * 2, 1), ([(1, 1, "a")], 2), ([(1, 0, "b")], 2)]
)
def test_rows_that_are_lost_doubled_or_changed_are_found(found: list[tuple[int, int, str]], wrong: int) -> None:
    columns = ([row[place] for row in found] for place in range(3))
    assert differences({1: (0, "a")}, pa.table(list(columns), names=["id", "v", "t"])) == wrong


def figures(side: str, **more: int) -> Played:
    return Played("c", side, **{"statements": 10, "written": 4, "landed": 4, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("missed", ["failed", "kept", "in_vain", "left", "written", "aborted"])
def test_each_figure_of_ours_has_a_limit(missed: str) -> None:
    theirs = figures(THEIRS, aborted=1)
    assert exit_code(limits([figures(OURS, aborted=1), theirs])) == 0
    assert [one.is_met for one in limits([figures(OURS, **{missed: 5}), theirs])].count(False) == 1
    nothing = figures(OURS, written=1, landed=0)
    assert nothing.attempts == float("inf")


def test_a_wrong_row_of_any_side_is_a_miss_and_a_command_that_replaced_nothing_is_no_measure() -> None:
    stuck = figures(THEIRS, kept=20, failed=3)
    assert exit_code(limits([figures(OURS, aborted=1), stuck])) == 0
    stuck.wrong = Counter({"Spark": 1})
    assert exit_code(limits([stuck])) == 1
