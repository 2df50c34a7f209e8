"""Row expiry on real Iceberg tables: exactly the rows that are over go, whatever version and partitions they have.

The rows before and after are read by Spark, pyiceberg and DuckDB.
"""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from shared.errors import RefusedFiles, Unsupported
from shared.formats.iceberg.names import COMMIT_KEY, PROOFREAD_KEY
from shared.jobs.payload import EXPIRE
from shared.layout import commit_metadata
from shared.layout.key_runs import KeyRuns
from shared.table import CommitOrigin
from tests.support.aged_iceberg import AgedIceberg
from tests.support.aged_rows import NOW, at_ms, days_ago
from tests.support.local_vacuum import Control

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning"),
]

CHANGED = ("rows_removed", "files_removed", "bytes_removed")
ROWS = "90 days of ts, rows"
MERGE_ON_READ = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}


def of(version: int) -> dict[str, str]:
    return {"format-version": str(version)}


def test_files_go_whose_rows_are_all_over_and_the_dry_run_says_which(ice: "IcebergLab") -> None:
    table = AgedIceberg(ice, "t")
    table.append((1, days_ago(91)), (2, days_ago(200)))
    table.append((3, days_ago(90.01)))
    table.append((4, days_ago(91)), (5, days_ago(89)))
    table.append((6, days_ago(91)), (7, None))
    table.append((8, days_ago(89.99)))
    table.append((9, days_ago(0)))
    at = asyncio.run(ice.reader(table.name).snapshot())
    dry = table.run(dry=True)
    assert (dry.version, dry.commits, table.ids()) == (-1, (), [*range(1, 10)])
    assert "files with rows of `ts` < TIMESTAMP '20" in dry.reason
    done = table.run()
    assert table.ids() == [4, 5, 6, 7, 8, 9]
    figures = [done.figures[name] for name in CHANGED]
    assert figures == [dry.figures[name] for name in CHANGED]
    assert figures[:2] == [3, 2]
    (ended, noted), (deleted, summary), *_ = table.snapshots()
    assert (ended, deleted) == ("replace", "delete")
    assert (summary["deleted-records"], summary[PROOFREAD_KEY]) == ("3", "rows")
    marks = [commit_metadata.decode(one[COMMIT_KEY]) for one in (summary, noted)]
    assert [(one.mode, one.origin, one.deduplicated_version) for one in marks if one] == [
        (EXPIRE, CommitOrigin("job", 7), None),
        (EXPIRE, CommitOrigin("job", 7), done.version),
    ]

    async def follow() -> None:
        of_rows, of_end = [one async for one in ice.reader(table.name).changes(at.position, at.metadata)]
        assert (of_rows.version, of_end.version) == done.commits
        assert (of_rows.operation, of_rows.data_change, of_rows.origin) == ("DELETE", True, CommitOrigin("job", 7))
        assert (len(of_rows.removed), of_end.removed, of_end.data_change) == (2, (), False)
        runs = KeyRuns(appended_version=at.position.version).after(of_rows).after(of_end)
        assert not runs.is_pending

    asyncio.run(follow())
    again = table.run()
    assert {name for name, count in again.figures.items() if count} == set()
    assert len(again.commits) == 1


@pytest.mark.long("contracts")
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    ("kind", "spelled"),
    [
        ("DATE", lambda day: day.date()),
        ("STRING", lambda day: f"{day:%Y-%m-%d}"),
        ("INT", lambda day: int(f"{day:%Y%m%d}")),
    ],
    ids=["date", "days", "numbers"],
)
def test_a_partition_goes_once_its_day_is_over_everywhere(
    ice: "IcebergLab", kind: str, spelled: Any, version: int
) -> None:
    """A day is over when it has ended in the last zone, which is 36 hours after it began in UTC."""
    begins = (NOW - timedelta(days=90)).replace(hour=0, minute=0, second=0)
    table = AgedIceberg(ice, "t", kind, "ts", properties=of(version))
    table.append((1, spelled(begins - timedelta(days=2))), (2, spelled(begins)), (3, None), (4, spelled(NOW)))
    dry = table.run(dry=True)
    done = table.run()
    assert [done.figures[name] for name in CHANGED] == [dry.figures[name] for name in CHANGED]
    assert "ts=" in dry.reason
    assert table.ids() == [2, 3, 4]
    assert "groups_proofread_by_rows" not in done.figures, "values of partitions are in the metadata"


@pytest.mark.long("contracts")
@pytest.mark.parametrize("by", ["ts", "hours(ts)", "days(ts)", "months(ts)", "years(ts)", "bucket(2, id)"])
@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NTZ"])
def test_partitions_that_are_computed_and_files_without_metrics_lose_exactly_what_is_over(
    ice: "IcebergLab", kind: str, by: str
) -> None:
    table = AgedIceberg(ice, "t", kind, by, properties={"write.metadata.metrics.default": "none"}, rule=ROWS)
    ages = (800.0, 400.0, 91.0, 90.51, 90.49, 89.99, 30.0, 0.0)
    table.append(*((number, days_ago(age)) for number, age in enumerate(ages)), (20, None))
    limit = 90 if kind == "TIMESTAMP" else 90.5
    kept = [number for number, age in enumerate(ages) if age < limit]
    dry = table.run(dry=True)
    done = table.run()
    assert table.ids() == [*kept, 20]
    assert done.figures["rows_removed"] == dry.figures["rows_removed"] == len(ages) - len(kept)
    if by in ("ts", "hours(ts)", "days(ts)"):
        assert done.figures["files_removed"] >= 2, "by the value of the partition"
    assert "groups_unverified" not in done.figures


@pytest.mark.long("contracts")
@pytest.mark.parametrize(("version", "properties"), [(1, {}), (2, {}), (2, MERGE_ON_READ), (3, MERGE_ON_READ)])
@pytest.mark.parametrize("by", ["", "bucket(2, id)"])
def test_rows_leave_files_that_hold_others_by_the_owners_word(
    ice: "IcebergLab", version: int, properties: dict[str, str], by: str
) -> None:
    table = AgedIceberg(ice, "t", by=by, properties=of(version) | properties, rule=ROWS)
    table.append(*((number, days_ago(80.5 + number)) for number in range(20)), (20, None))
    table.append(*((number, days_ago(number)) for number in range(30, 40)))
    table.append((50, days_ago(300)), (51, days_ago(301)))
    table.append((60, days_ago(91)), (62, days_ago(1)))
    ice.sql(f"DELETE FROM {table.name} WHERE id IN (19, 0)")
    without = "duckdb" if version > 2 else ""  # It applies the deletion vector of one file to another.
    before, kept = table.ids(without=without), [*range(1, 10), 20, *range(30, 40), 62]
    text = f"SELECT id, _row_id FROM {table.name}"
    row_ids = {row[0]: row[1] for row in ice.sql(text).collect()} if version > 2 else {}
    java = ice.java(table.name)
    java.manageSnapshots().createTag("kept", java.currentSnapshot().snapshotId()).commit()
    java.manageSnapshots().createBranch("side", java.currentSnapshot().snapshotId()).commit()
    dry = table.run(dry=True)
    done = table.run()
    assert table.ids(without=without) == [one for one in before if one in kept]
    for name in ("rows_removed", "files_removed", "files_replaced", "bytes_replaced"):
        assert done.figures.get(name, 0) == dry.figures.get(name, 0), name
    assert done.figures["rows_removed"] == len(before) - len(kept)
    assert done.figures["groups_proofread_by_rows"] >= 2
    assert "groups_unverified" not in done.figures
    if row_ids:
        assert {row[0]: row[1] for row in ice.sql(text).collect()} == {one: row_ids[one] for one in kept}
    assert [table.at(f"'{name}'") for name in ("kept", "side")] == [before, before]
    assert {operation for operation, _ in table.snapshots()[: len(done.commits)]} <= {"replace", "overwrite", "delete"}
    assert "rows_removed" not in {name for name, count in table.run().figures.items() if count}
    assert table.ids(without=without) == kept


@pytest.mark.long("contracts")
@pytest.mark.parametrize("rule", ["90 days of ts", ROWS], ids=["files", "rows"])
def test_rows_that_are_deleted_by_value_count_for_nothing_and_do_not_come_back(ice: "IcebergLab", rule: str) -> None:
    from tests.support.iceberg_foreign import ForeignWriter, field

    table = AgedIceberg(ice, "t", rule=rule)
    table.append((1, days_ago(100)), (2, days_ago(101)))
    table.append((3, days_ago(100)), (4, days_ago(1)), (5, days_ago(2)))
    key = pa.schema([field("id", pa.int64(), {"id": 1})])
    ForeignWriter(ice, table.name).delete_values(pa.table({"id": [2, 4]}, schema=key), [1])
    without = "pyiceberg"  # It reads no deletes by value.
    assert table.ids(without=without) == [1, 3, 5]
    dry = table.run(dry=True)
    done = table.run()
    assert table.ids(without=without) == ([5] if rule == ROWS else [3, 5])
    removed = 2 if rule == ROWS else 1
    assert (done.figures["rows_removed"], dry.figures["rows_removed"]) == (removed, removed)


@pytest.mark.long("contracts")
@pytest.mark.parametrize("version", [2, 3])
def test_rows_that_others_add_change_or_delete_meanwhile_end_as_they_want(ice: "IcebergLab", version: int) -> None:
    table = AgedIceberg(ice, "t", properties=of(version) | MERGE_ON_READ)
    without = "duckdb" if version > 2 else ""
    table.append((1, days_ago(100)), (2, days_ago(101)))
    table.append((3, days_ago(100)))
    control = Control()

    def others(change: int) -> None:
        if change == 1:
            ice.sql(f"UPDATE {table.name} SET ts = current_timestamp() WHERE id = 1")
            table.append((4, days_ago(200)))
            table.append((5, days_ago(1)))

    control.before_change = others
    done = table.run(control=control)
    # A row of the file of 1 and 2 was deleted by position: it is read again, and row 2 is alone in it.
    assert (done.figures["conflicts"], table.ids(without=without)) == (1, [1, 5])
    table = AgedIceberg(ice, "rows", properties=of(version) | MERGE_ON_READ, rule=ROWS)
    table.append((1, days_ago(100)), (2, days_ago(1)), (3, days_ago(1)))

    def deletes(change: int) -> None:
        if change == 1:
            ice.sql(f"DELETE FROM {table.name} WHERE id = 3")
            table.append((4, days_ago(200)), (5, days_ago(1)))

    control = Control()
    control.before_change = deletes
    done = table.run(control=control)
    assert (done.figures["conflicts"], table.ids(without=without)) == (1, [2, 5])
    assert ice.files_on_disk(table.name) == ice.known_files(table.name), "what was written for nothing is gone"


@pytest.mark.long("contracts")
@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE {0} UNSET TBLPROPERTIES ('lakewright.delete-rows-after')",
        "ALTER TABLE {0} SET TBLPROPERTIES ('lakewright.delete-rows-after' = '200 days of ts')",
        "ALTER TABLE {0} RENAME COLUMN ts TO other",
        "ALTER TABLE {0} DROP COLUMN ts",
    ],
)
@pytest.mark.parametrize("rule", ["90 days of ts", ROWS], ids=["files", "rows"])
def test_an_owner_who_changes_rule_or_column_meanwhile_keeps_the_rows(
    ice: "IcebergLab", change: str, rule: str
) -> None:
    table = AgedIceberg(ice, "t", rule=rule)
    table.append((1, days_ago(100)), *([(2, days_ago(1))] if rule == ROWS else []))
    before, control = table.ids(), Control()
    control.before_change = lambda number: ice.sql(change.format(table.name)) if number == 1 else None
    if "COLUMN" in change:
        with pytest.raises(Unsupported, match="does not have"):
            table.run(control=control)
    else:
        assert "no deletion of rows by their age" in table.run(control=control).reason
    assert (table.ids(), control.changes) == (before, 1)


@pytest.mark.long("contracts")
def test_a_column_that_is_not_in_the_newest_snapshot_or_had_another_name_is_the_same_one(ice: "IcebergLab") -> None:
    table = AgedIceberg(ice, "t", rule="90 days of ts")
    table.append((1, days_ago(100)), (2, days_ago(101)))
    ice.sql(f"ALTER TABLE {table.name} RENAME COLUMN ts TO moment")
    table.rule = "90 days of moment"
    ice.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('lakewright.delete-rows-after' = '{table.rule}')")
    assert table.run(dry=True).figures["rows_removed"] == 2
    ice.sql(f"ALTER TABLE {table.name} ADD COLUMN ts TIMESTAMP")
    assert table.run(dry=True).figures["rows_removed"] == 2, "another column has the old name"
    table.rule = "90 days of ts"
    ice.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('lakewright.delete-rows-after' = '{table.rule}')")
    assert table.run().figures.get("rows_removed", 0) == 0, "rows of before the column have no time"
    table.rule = "90 days of moment"
    ice.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('lakewright.delete-rows-after' = '{table.rule}')")
    assert table.run().figures["rows_removed"] == 2
    assert table.ids() == []


@pytest.mark.long("contracts")
def test_files_of_other_partition_specs_go_by_their_own(ice: "IcebergLab") -> None:
    table = AgedIceberg(ice, "t", "DATE", rule=ROWS)
    table.append((1, days_ago(100).date()), (2, days_ago(1).date()))
    ice.java(table.name).updateSpec().addField("ts").commit()
    table.append((3, days_ago(100).date()), (4, days_ago(1).date()))
    month = ice.engine._scala.resolve("org.apache.iceberg.expressions.Expressions").month("ts")
    ice.java(table.name).updateSpec().removeField("ts").addField(month).commit()
    table.append((5, days_ago(400).date()), (6, days_ago(1).date()))
    done = table.run()
    assert (table.ids(), done.figures["rows_removed"], done.figures["files_replaced"]) == ([2, 4, 6], 3, 1)
    days = AgedIceberg(ice, "days", "STRING")
    days.append((1, f"{days_ago(100):%Y-%m-%d}"))
    with pytest.raises(Unsupported, match="no date or timestamp"):
        days.run()
    ice.java(days.name).updateSpec().addField("ts").commit()
    with pytest.raises(Unsupported, match="is not partitioned by 'ts'"):
        days.run()
    assert days.ids() == [1]


@pytest.mark.long("contracts")
def test_a_clock_that_is_ahead_deletes_nothing_that_writers_have_not_outlived(
    ice: "IcebergLab", monkeypatch: pytest.MonkeyPatch
) -> None:
    table = AgedIceberg(ice, "t")
    table.append((1, days_ago(89)))
    table.append((2, days_ago(91)))
    later = NOW + timedelta(days=400)
    monkeypatch.setattr("actor.row_expiry.time.time_ns", lambda: at_ms(later) * 1_000_000)
    assert table.run(dry=True, at=later).figures["rows_removed"] == 1
    assert table.run(at=later).figures["rows_removed"] == 1
    # Our own commits say nothing of the time: they may have been made by the same clock.
    assert "rows_removed" not in {name for name, count in table.run(at=later).figures.items() if count}
    assert table.ids() == [1]


@pytest.mark.long("contracts")
def test_a_file_that_holds_more_than_its_metrics_say_stays_and_is_named(ice: "IcebergLab") -> None:
    table = AgedIceberg(ice, "t")
    table.append((1, days_ago(1)))
    table.append((2, days_ago(100)))
    path = _swap_metrics(ice, table)
    with pytest.raises(RefusedFiles, match="newer than its statistics say") as refused:
        table.run()
    assert refused.value.files == (path,)
    assert [row[0] for row in ice.sql(f"SELECT id FROM {table.name}").collect()] == [1]


def _swap_metrics(ice: "IcebergLab", table: AgedIceberg) -> str:
    """Give the file of the newest row the metrics of the oldest; return its path."""
    java, resolve = ice.java(table.name), ice.engine._scala.resolve
    tasks = ice.engine._scala.iceberg_ages.planned(java, java.currentSnapshot().snapshotId(), 2, 2**62)
    files = sorted((task.file() for task in tasks), key=lambda one: str(one.upperBounds()))
    by_age = {bytes(one.upperBounds().get(2).array()): one for one in files}
    old, new = (by_age[one] for one in sorted(by_age, key=lambda one: int.from_bytes(one, "little")))
    metrics = resolve("org.apache.iceberg.Metrics")(
        new.recordCount(), None, None, old.nullValueCounts(), None, old.lowerBounds(), old.upperBounds()
    )
    builder = resolve("org.apache.iceberg.DataFiles").builder(java.spec()).copy(new).withMetrics(metrics)
    java.newOverwrite().deleteFile(new).commit()
    java.newAppend().appendFile(builder.build()).commit()
    return str(new.location())


@pytest.mark.long("contracts")
def test_only_the_tables_own_properties_delete_rows(ice: "IcebergLab") -> None:
    table = AgedIceberg(ice, "t")
    table.append((1, days_ago(100)))
    table.rule = "10 days of ts"
    assert (table.run().commits, table.ids()) == ((), [1])
    ice.sql(f"ALTER TABLE {table.name} UNSET TBLPROPERTIES ('lakewright.delete-rows-after')")
    table.rule = "90 days of ts"
    assert (table.run().commits, table.ids()) == ((), [1])
    other = AgedIceberg(ice, "other", "BIGINT")
    with pytest.raises(Unsupported, match="no date or timestamp"):
        other.run()
    empty = AgedIceberg(ice, "empty")
    assert (empty.run().commits, empty.run().is_complete) == ((), True)
