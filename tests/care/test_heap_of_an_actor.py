"""An actor that has read many tables keeps as much of its heap as one that has read few: its caches are bounded.

Delta keeps the log of each table that it opened, with the query plans of the snapshot that was listed. At 3 MB for each
table, and by its own default of 10,000 tables, that fills any heap.
"""

import gc
import random
import shutil
from typing import Any

import pytest
from deltalake import write_deltalake

from shared.partitions import WHOLE_TABLE
from tests.support.delta_lab import DeltaLab
from tests.support.sorted_table import batch

pytestmark = pytest.mark.spark

TABLES, EVERY, LEVEL_FROM = 150, 25, 50
"""Tables that are read, tables between two measurements, and tables after which the caches are full."""

NOISE_BYTES = 512 * 1024
"""For each further table: a fifth of what the leak was, and several times what Spark's own counters take."""

FILES = 5


def used_bytes(jvm: Any) -> int:
    """Bytes in use after full collections; what only Python held on to in the JVM is let go first."""
    for _ in range(3):
        gc.collect()
        jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def test_the_heap_in_use_is_level_once_the_caches_are_full(lab: DeltaLab) -> None:
    pattern = lab.directory / "pattern"
    dice = random.Random(1)
    for at in range(FILES):
        write_deltalake(pattern, batch(dice, at), mode="append")
    used: dict[int, int] = {}
    for number in range(1, TABLES + 1):
        table = lab.directory / f"t-{number}"
        shutil.copytree(pattern, table)
        assert len(lab.engine.read_partition(table.as_uri(), WHOLE_TABLE).files) == FILES
        if number % EVERY == 0:
            used[number] = used_bytes(lab.spark.sparkContext._jvm)
    print("\nheap in use by tables read: " + ", ".join(f"{number}: {size >> 20} MB" for number, size in used.items()))
    growth = max(size for number, size in used.items() if number >= LEVEL_FROM) - used[LEVEL_FROM]
    assert growth <= (TABLES - LEVEL_FROM) * NOISE_BYTES
