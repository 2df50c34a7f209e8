"""Outputs that are copied, merged by columns or encoded by Spark hold the same rows for Spark, DuckDB and deltalake."""

import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as f

from actor.formats.parquet.copy_rules import MERGED_REASONS
from actor.ports import GroupOutcome, GroupStatus
from shared.errors import Unsupported
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab
from tests.support.duckdb_extensions import scan
from tests.support.forced_copies import NEVER_COPIES

if TYPE_CHECKING:
    from tests.support.parquet_lab import Recipe

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra `decider`")
deltalake = pytest.importorskip("deltalake", reason="deltalake is in the extra `decider`")

pytestmark = [pytest.mark.spark, pytest.mark.timeout(0)]

# The default is a sample; `make copies` takes two hundred, with each of the writers.
EXAMPLES = int(os.environ.get("LAKEWRIGHT_COPY_EXAMPLES", "1"))
SEED = int(os.environ.get("LAKEWRIGHT_COPY_SEED", "6"))


@pytest.mark.long("contracts")
def test_copied_and_encoded_outputs_hold_the_same_rows_for_all_readers(lab: DeltaLab) -> None:
    from tests.support.parquet_lab import copied, make, recipe  # It imports what was skipped for above.

    copying, by_column = lab.copying(), lab.copying(NEVER_COPIES)
    seen: Counter[str] = Counter()
    for seed in range(SEED, SEED + EXAMPLES):
        dice = random.Random(seed)
        made = recipe(dice)
        print(f"seed {seed}: {made}", flush=True)
        original = lab.directory / f"t{seed}"
        make(original, made, dice, lab.spark)
        expected = read_by_all(lab, original)
        if made.uses_int96 and "at" in made.columns:
            # It reads INT96 as nanoseconds: years after 2262 are others, until a rewrite stores microseconds.
            expected.pop("deltalake", None)
        copy = rewritten(copying, copied(original, lab.directory / f"copied{seed}"), made)
        columns = rewritten(by_column, copied(original, lab.directory / f"columns{seed}"), made)
        ways = {"copied": copy, "columns": columns}
        if copy is not None and columns is not None:
            assert columns.by_column == (copy.is_copied or copy.encoded_because in MERGED_REASONS)
        if "spark" in expected:
            ways["encoded"] = rewritten(
                copying, copied(original, lab.directory / f"encoded{seed}"), made, may_copy=False
            )
            assert (ways["encoded"] is None) == made.is_never_encoded
        else:
            with pytest.raises(Unsupported, match="does not read this encoding"):
                rewritten(copying, copied(original, lab.directory / f"encoded{seed}"), made, may_copy=False)
        for name, end in ways.items():
            found = read_by_all(lab, lab.directory / f"{name}{seed}")
            for reader, rows in expected.items():
                assert found.get(reader) == rows, f"{reader} reads other rows of the {name} output of seed {seed}"
            if end is not None:
                check_statistics(lab.directory / f"{name}{seed}")
        seen[f"{made.writer} {'refused' if copy is None else copy.encoded_because or 'copied'}"] += 1
    print(f"groups by writer and reason: {dict(sorted(seen.items()))}")
    assert sum(count for name, count in seen.items() if name.endswith("copied")) >= EXAMPLES // 3


def rewritten(lab: DeltaLab, path: Path, made: "Recipe", *, may_copy: bool = True) -> GroupOutcome | None:
    """Return what became of the table's files as one group, None if they had to be encoded and never are."""
    location, before = f"file://{path}", tables.live(path)
    group = FileGroup(WHOLE_TABLE, lab.files(location), RewriteMode.MINOR)
    try:
        (end,) = lab.rewrite(location, [group], may_copy=may_copy).groups
    except Unsupported as refusal:
        if not made.is_never_encoded or "would become INT64" not in str(refusal):
            raise
        assert tables.live(path) == before
        return None
    assert end.status is GroupStatus.COMMITTED
    assert len(tables.live(path)) == 1
    return end


def read_by_all(lab: DeltaLab, path: Path) -> dict[str, list[str]]:
    """All rows as each reader has them, and those that a filter on the statistics leaves.

    Not those of a reader that cannot read the table: some cannot read what others write.
    """
    readers: dict[str, Callable[[], list[str]]] = {
        "spark": lambda: _spark(lab, path),
        "duckdb": lambda: _duckdb(path),
        "deltalake": lambda: _deltalake(path),
    }
    found = {}
    for name, read in readers.items():
        try:
            found[name] = read()
        except Exception as error:  # noqa: BLE001 - whatever a reader raises for what it cannot read
            print(f"  {name} does not read {path.name}: {str(error)[:200]}", flush=True)
    assert len(found) >= 2
    return found


def _spark(lab: DeltaLab, path: Path) -> list[str]:
    frame = lab.spark.read.format("delta").load(str(path))
    rows = frame.select(f.to_json(f.struct("*"), {"ignoreNullFields": "false"})).collect()
    filtered = frame.where("id between 900 and 1050").select("id").collect()
    return sorted(row[0] for row in rows) + sorted(str(row[0]) for row in filtered)


def _duckdb(path: Path) -> list[str]:
    found = [scan(path), scan(path, "id BETWEEN 900 AND 1050")]
    return [row for rows in found for row in sorted(map(repr, rows.to_pylist()))]


def _deltalake(path: Path) -> list[str]:
    reader = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(path)))
    rows = pa.table(reader.execute("SELECT * FROM t")).to_pylist()
    filtered = pa.table(reader.execute("SELECT id FROM t WHERE id BETWEEN 900 AND 1050")).to_pylist()
    return sorted(map(repr, rows)) + sorted(map(repr, filtered))


def check_statistics(path: Path) -> None:
    """What the log says of the one file holds for its rows."""
    (add,) = tables.live(path).values()
    stats = json.loads(add["stats"])
    reader = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(path)))
    (counted,) = pa.table(reader.execute("SELECT count(*) n, min(id) low, max(id) high FROM t")).to_pylist()
    assert stats["numRecords"] == counted["n"]
    if "id" in stats.get("minValues", {}):
        assert (stats["minValues"]["id"], stats["maxValues"]["id"]) == (counted["low"], counted["high"])
