"""The depths of a sorted table, followed commit by commit with Spark, Delta and deltalake, are those of its files."""

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from decider.state.fold import fold
from decider.storage.object_reads import ReadMeter
from shared.layout.partition_stats import EMPTY_STATS, stats_of_files
from shared.partitions import WHOLE_TABLE
from tests.support.delta_lab import DeltaLab
from tests.support.delta_tables import open_log
from tests.support.memory_log import count_live_files
from tests.support.sorted_table import (
    SORTED,
    Table,
    batch,
)

deltalake = pytest.importorskip("deltalake", reason="deltalake is in the extra `decider`")
pytestmark = pytest.mark.spark


@pytest.mark.long("contracts")
def test_the_depths_of_a_followed_table_are_those_of_its_live_files(lab: DeltaLab) -> None:
    """Our rewrites repeat bounds where they remove files; after Spark's DELETE and OPTIMIZE a rebuild follows."""
    table = Table(lab, "followed", SORTED)
    dice = random.Random(1)
    for at in range(80):
        deltalake.write_deltalake(table.path, batch(dice, at), mode="append")
        if at % 20 == 19:
            table.care()
    lab.sql(f"DELETE FROM delta.`{table.location}` WHERE k < 1000")
    lab.sql(f"OPTIMIZE delta.`{table.location}`")

    async def folded() -> tuple[Any, list[str], Any]:
        reader = open_log(table.location, meter=ReadMeter())
        first = await reader.snapshot(0)
        metadata, state, reasons = first.metadata, EMPTY_STATS, []
        newest = (await reader.snapshot()).version
        async for commit in reader.commits(range(1, newest + 1), metadata):
            found = fold(commit, metadata, SORTED)
            if found.rebuild_reason is not None:
                reasons.append(commit.operation)
                state = count_live_files((await reader.snapshot(commit.version)).files, SORTED)[WHOLE_TABLE]
                continue
            state = (state + found.changes.get(WHOLE_TABLE, EMPTY_STATS)).clamped()
        counted = count_live_files((await reader.snapshot()).files, SORTED)[WHOLE_TABLE]
        return state, reasons, counted

    state, reasons, counted = asyncio.run(folded())
    assert reasons == ["DELETE", "OPTIMIZE"]
    assert counted.depths
    assert replace(state, depths=()) == replace(counted, depths=())
    assert [level for level, _ in state.depths] == [level for level, _ in counted.depths]
    for (_, known), (_, live) in zip(state.depths, counted.depths, strict=True):
        assert known.at_shift(live.shift) == live.at_shift(known.shift)
    assert counted == stats_of_files(table.live(), SORTED.size_levels), "decider and actor count alike"
