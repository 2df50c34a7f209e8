"""Reads and counts one table in a process of its own, in one of three ways, and prints what that cost.

columns: as a rebuild does; one-by-one: with an object for each file, as before there were columns; deltalake: its own
reader, and the sizes added up by partition.
"""

import asyncio
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from decider.formats.delta.log import DeltaLog
from decider.state.file_columns import count_live
from decider.storage.object_reads import ReadMeter
from shared.layout.partition_count import PartitionCount, count_partitions
from shared.policy.policy import Policy
from tests.support.delta_tables import open_log

Totals = tuple[int, int, int]
"""Partitions, files and bytes."""


def _log(table: Path) -> DeltaLog:
    return open_log(str(table), meter=ReadMeter())


def _totals(counts: dict[object, PartitionCount]) -> Totals:
    states = [count.state for count in counts.values()]
    return len(states), sum(state.files for state in states), sum(state.bytes for state in states)


def columns(table: Path) -> Totals:
    """Read and count in columns."""
    return _totals({**count_live(asyncio.run(_log(table).live_files()), Policy())})


def one_by_one(table: Path) -> Totals:
    """Read and count file by file."""
    return _totals({**count_partitions(asyncio.run(_log(table).snapshot()).files, Policy())})


def deltalake(table: Path) -> Totals:
    """Read with deltalake and add up its table of files."""
    import pyarrow as pa
    from deltalake import DeltaTable

    files = pa.table(DeltaTable(str(table)).get_add_actions(flatten=True))
    grouped = files.group_by("partition.p").aggregate([("size_bytes", "sum"), ([], "count_all")])
    return len(grouped), sum(grouped["count_all"].to_pylist()), sum(grouped["size_bytes_sum"].to_pylist())


SIDES: dict[str, Callable[[Path], Totals]] = {
    "columns": columns,
    "one-by-one": one_by_one,
    "deltalake": deltalake,
}


def main() -> None:
    """Measure one side."""
    side, table = sys.argv[1:]
    # With everything imported, and the threads started.
    small = Path(table).parent / "small"
    SIDES[side](small)
    cpu, wall = time.process_time(), time.monotonic()
    totals = SIDES[side](Path(table))
    cost = {"cpu_s": time.process_time() - cpu, "wall_s": time.monotonic() - wall}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**cost, "peak_mib": peak, "totals": totals}))


if __name__ == "__main__":
    main()
