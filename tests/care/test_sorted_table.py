"""A sorted table under five hundred small commits, with Spark, Delta and deltalake: depth, files read, and bytes."""

import random
from dataclasses import replace

import pytest

from shared.layout.partition_stats import sort_level, stats_of_files
from shared.layout.sort_planner import SortReason, evaluate_sort
from tests.support.delta_lab import DeltaLab
from tests.support.sorted_table import (
    COMMITS,
    ROUND,
    SORTED,
    Table,
    batch,
    read_by_deltalake,
    read_by_spark,
    true_depth,
    written_by_others,
)

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the extra `decider`")
deltalake = pytest.importorskip("deltalake", reason="deltalake is in the extra `decider`")
pytestmark = pytest.mark.spark


def test_five_hundred_commits_of_random_keys_settle_within_the_bound_and_ranges_read_a_fifth(
    lab: DeltaLab, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.dataset  # noqa: F401 - used by read_by_deltalake

    one = Table(lab, "sorted", SORTED)
    alone = Table(lab, "alone", replace(SORTED, sort_by=None))
    dice = random.Random(3)
    ingested = 0
    for at in range(COMMITS):
        rows = batch(dice, at)
        for table in (one, alone):
            deltalake.write_deltalake(table.path, rows, mode="append")
        if (at + 1) % ROUND == 0:
            one.care()
            alone.care()
    ingested = sum((one.path / uri).stat().st_size for uri in written_by_others(one.path))
    files = one.live()
    full = [file for file in files if file.size_bytes >= SORTED.size_levels.full_bytes]
    state = stats_of_files(files, SORTED.size_levels)
    levels = sorted({sort_level(file.tags) for file in files})

    assert lab.digest(one.location) == lab.digest(alone.location)
    assert evaluate_sort(state, SORTED) is SortReason.WITHIN_DEPTH
    depth, bound = true_depth(full), SORTED.max_depth * (max(levels) + 1)
    before = {
        "spark": read_by_spark(lab, alone.location, "k", 1_000),
        "deltalake": read_by_deltalake(alone.path, "k", 1_000),
    }
    after = {
        "spark": read_by_spark(lab, one.location, "k", 1_000),
        "deltalake": read_by_deltalake(one.path, "k", 1_000),
    }
    extra = {
        name: {kind: size / ingested for kind, size in table.rewritten.items()}
        for name, table in (("sorted", one), ("alone", alone))
    }
    sizes = {name: sum(file.size_bytes for file in table.live()) for name, table in (("sorted", one), ("alone", alone))}
    with capsys.disabled():
        print(
            f"\n{len(full)} full files, {len(files) - len(full)} small; levels {levels}; depth {depth}, bound {bound}"
        )
        print(f"files read by a range of 0.1%: {before} -> {after}; bytes rewritten per byte: {extra}; sizes {sizes}")
    assert depth <= bound
    assert extra["sorted"]["sort"] <= max(levels), "a byte is sorted again at most once per level"
    for reader, read in after.items():
        assert read <= before[reader] / 5, reader
