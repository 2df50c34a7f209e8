"""What the benches of rivals stand on, without Spark: rows that are merged, goals, and the page."""

from collections import Counter

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from tests.bench.machine import exit_code
from tests.bench.rivals import autocomp, olake
from tests.bench.rivals.fabric_200 import OURS, ROWS, UPDATED, Merges, Played, goals
from tests.bench.rivals.trickle import TrickledTable
from tests.bench.rivals.upserts import Upserts


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


def test_a_sync_upserts_keys_that_came_last_and_new_ones() -> None:
    upserts, again = Upserts(1), Upserts(1)
    assert upserts.next(20, 10)["id"].to_pylist() == [*range(20)]  # There is nothing to update.
    updated = Counter[bool]()
    for number in range(1, 20):
        rows, known = upserts.next(20, 10), 10 * number + 10
        ids = rows["id"].to_pylist()
        assert len(set(ids)) == len(ids) == 20
        old = [one for one in ids if one < known]
        assert len(old) == 10
        updated.update(one >= known // 2 for one in old)
        left = upserts.expected()
        assert left["id"].to_pylist() == [*range(known + 10)]
        assert left.take(ids) == rows
    assert updated[True] > 2 * updated[False]
    assert [again.next(20, 10) for _ in range(20)][-1] == rows


def streams(**ours: float) -> list[olake.Played]:
    figures = {"none": (10, 8), "rewrite": (110, 5), "lakewright": (ours.get("cpu_s", 60), ours.get("query_cpu_s", 5))}
    played = [
        olake.Played(olake.SIDES[name].title, cpu_s=cpu_s, query_cpu_s=query_cpu_s)
        for name, (cpu_s, query_cpu_s) in figures.items()
    ]
    played[-1].aborted = int(ours.get("aborted", 0))
    return played


@pytest.mark.parametrize(("ours", "code"), [({}, 0), ({"cpu_s": 80}, 1), ({"query_cpu_s": 6}, 1), ({"aborted": 1}, 1)])
def test_ours_costs_less_than_rewrites_of_the_stream_and_leaves_queries_as_fast(
    ours: dict[str, float], code: int
) -> None:
    assert exit_code(olake.goals(streams(**ours))) == code


def test_a_side_that_failed_has_a_row_that_says_so_and_no_goal() -> None:
    played = streams()
    played[1].failed, played[2].deletes = "Py4JJavaError: out of memory", [1, 0]
    assert olake.goals(played) == []
    first, second, *others = olake.row(played[1], 10)
    assert (first, second, {*others}) == (olake.THEIRS, "failed: Py4JJavaError: out of memory", {""})
    assert len(others) + 2 == len(olake.HEAD) == len(olake.row(played[2], 10))


def trickled(rounds: int) -> TrickledTable:
    adds = [({"path": f"{number}", "size": 40_000, "partitionValues": {}},) for number in range(rounds)]
    return TrickledTable("orders", {}, (), tuple(adds))


def test_a_replay_of_optimize_leaves_what_came_after_it_and_ours_after_a_day_of_rest_no_more() -> None:
    data = [autocomp.commits(trickled(7), 2)]
    (left,) = autocomp.optimized(data, 6)
    assert (left.jobs, left.files_at_end) == (2, 3)
    (rested,) = autocomp.replayed(data, autocomp.REPLAYS[autocomp.RESTED])
    assert rested.files_at_end == 1


def test_files_at_rest_and_cpu_are_goals_of_the_trickle() -> None:
    def left(title: str, files: int) -> autocomp.Replay:
        return autocomp.Replay(title, 24, 20.0, files, 10**6, 5)

    replays = [left("OPTIMIZE every 6 rounds", 9), left("Lakewright", 34), left(autocomp.RESTED, 9)]
    played = [autocomp.Played("OPTIMIZE every 6 rounds", 20.0), autocomp.Played("Lakewright", 6.0)]
    assert [goal.found for goal in autocomp.goals(played, replays)] == [1.0, 0.3]
    assert exit_code(autocomp.goals([], [*replays[:2], left(autocomp.RESTED, 10)])) == 1
    assert autocomp.replay_table(replays).splitlines()[2] == "| OPTIMIZE every 6 rounds | 20 / 9 | 1.0 MB |"
