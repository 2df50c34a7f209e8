"""What the benchmark of a cluster computes from what it measured."""

from dataclasses import replace

import pytest

from tests.bench.spark_cluster import JobCost, at_once, busy_spans, figures
from tests.support.spark_events import TaskEnd

COST = JobCost(20.0, 16.0, 2.0, 5.0, 15.0, 0.5, 1.5)


@pytest.mark.parametrize(
    ("spans", "mean"),
    [
        ([], 0.0),
        ([(0, 10)], 1.0),
        ([(0, 10), (20, 30)], 1.0),
        ([(0, 10), (0, 10)], 2.0),
        ([(5, 10), (0, 10), (0, 5)], 2.0),
        ([(0, 20), (5, 15)], 1.5),
    ],
)
def test_how_many_tasks_ran_at_once_is_their_mean_while_any_ran(spans: list[tuple[int, int]], mean: float) -> None:
    assert at_once(spans) == mean


def test_an_executor_is_busy_once_where_its_tasks_overlap() -> None:
    spans = [("0", 0, 10), ("0", 9, 20), ("0", 20, 30), ("1", 5, 10)]
    tasks = [TaskEnd(frozenset(), executor, "Success", began, ended) for executor, began, ended in spans]
    assert busy_spans(tasks) == [(0, 20), (20, 30), (5, 10)]
    assert at_once(busy_spans(tasks[:3])) == 1.0


def test_medians_are_compared() -> None:
    one = [{"copied": COST, "encoded": replace(COST, total_s=seconds)} for seconds in (20.0, 30.0, 100.0)]
    two = [{"copied": COST, "encoded": replace(COST, total_s=seconds)} for seconds in (10.0, 20.0, 50.0)]
    found = figures({1: one, 2: two})
    assert found["copied"]["times_as_fast"] == 1.0
    assert found["encoded"]["times_as_fast"] == 1.5
    assert found["encoded"]["total_s_of_each"] == {"1": [20.0, 30.0, 100.0], "2": [10.0, 20.0, 50.0]}
    assert found["encoded"]["executors"]["2"]["total_s"] == 20.0
