"""The benchmark of a cluster runs at a tiny size, so that it works on the day someone needs it."""

import pytest

from tests.bench.spark_cluster import WAYS, Sizes, measure
from tests.support.spark_world import World

pytestmark = [
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.redis,
    pytest.mark.long("spark-cluster"),
]


def test_every_figure_is_measured(world: World) -> None:
    costs = measure(world, Sizes(rounds=1, jobs=1, groups=3, warm_up=1), seed=1)
    for executors, (costs_by_way,) in costs.items():
        assert costs_by_way.keys() == WAYS.keys()
        for cost in costs_by_way.values():
            assert cost.total_s > cost.writing_s > 0
            assert cost.committing_s > 0
            assert min(cost.driver_cpu_s, cost.executors_cpu_s) > 0
            assert 0 < cost.at_once <= executors
            assert 1 / executors <= cost.busiest <= 1
