"""What the benches of rivals stand on, without Spark: rows that are merged, goals, and the page."""

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from tests.bench.machine import exit_code
from tests.bench.rivals.fabric_200 import OURS, ROWS, UPDATED, Merges, Played, goals


def test_a_merge_brings_a_thousand_rows_of_which_a_tenth_are_updates() -> None:
    merges, again = Merges(1, 2_000), Merges(1, 2_000)
    for number in range(5):
        before = set(merges.amounts)
        rows = merges.next()
        ids = rows["id"].to_pylist()
        assert min(ids) >= len(before) - 2_000
        assert len(set(ids)) == ROWS
        assert len(before.intersection(ids)) == (UPDATED if number else 0)
        assert {key: merges.amounts[key] for key in ids} == dict(zip(ids, rows["amount"].to_pylist(), strict=True))
        assert again.next() == rows


@pytest.mark.parametrize(("cpu_s", "aborted", "code"), [(9, 0, 0), (11, 0, 1), (9, 1, 1)])
def test_ours_needs_the_least_cpu_and_aborts_no_merge(cpu_s: float, aborted: int, code: int) -> None:
    others = [Played("none", cpu_s=10), Played("auto", cpu_s=20, aborted=3)]
    assert exit_code(goals([*others, Played(OURS, cpu_s=cpu_s, aborted=aborted)])) == code
    assert goals(others) == []
