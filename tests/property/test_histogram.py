"""The histogram of a partition that the API shows holds every file, whatever their sizes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.api.routes.partitions import layout_view
from shared.layout.partition_stats import stats_of_sizes
from shared.policy.policy import MIB, Policy

SMALL = Policy(target_bytes=MIB)


@given(st.lists(st.integers(0, 3 * MIB), max_size=60))
def test_the_histogram_holds_every_file_on_the_level_of_its_size(sizes: list[int]) -> None:
    layout = layout_view(stats_of_sizes(SMALL.size_levels, sizes), SMALL.size_levels)
    for level in layout.levels:
        inside = [
            size
            for size in sizes
            if level.from_bytes <= size and (level.below_bytes is None or size < level.below_bytes)
        ]
        assert (level.files, level.bytes) == (len(inside), sum(inside))
    assert sum(level.files for level in layout.levels) == layout.files == len(sizes)
    mean = sum((MIB - min(size, MIB)) ** 2 for size in sizes) / len(sizes) if sizes else 0
    assert layout.mse_bytes2 == pytest.approx(mean)
    assert layout.rms_shortfall == pytest.approx(math.sqrt(mean) / MIB, abs=1e-6)
