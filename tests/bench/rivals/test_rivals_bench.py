"""What the benches of rivals stand on, without Spark: rows that are merged, goals, and the page."""

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from tests.bench.machine import exit_code
from tests.bench.rivals import autocomp
from tests.bench.rivals.fabric_200 import OURS, ROWS, UPDATED, Merges, Played, goals
from tests.bench.rivals.trickle import TrickledTable


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
