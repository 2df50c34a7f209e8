"""Figures of the decider's benchmark are what they are called."""

import pytest

from tests.bench.decide.latency import quantile


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1), (0.5, 51), (0.99, 100), (1.0, 100)])
def test_a_quantile_is_one_of_the_values(share: float, expected: float) -> None:
    assert quantile([float(n) for n in range(100, 0, -1)], share) == expected
