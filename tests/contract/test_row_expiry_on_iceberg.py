"""Row expiry on real Iceberg tables: what of it only Iceberg has."""

import asyncio
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from shared.errors import Unsupported
from shared.formats.iceberg.names import COMMIT_KEY, PROOFREAD_KEY
from shared.jobs.payload import EXPIRE
from shared.layout import commit_metadata
from shared.layout.key_runs import KeyRuns
from shared.table import CommitOrigin
from tests.support.aged_iceberg import AgedIceberg
from tests.support.aged_rows import changed, days_ago
from tests.support.local_vacuum import Control

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning"),
]

ROWS = "90 days of ts, rows"


def test_snapshots_show_a_delete_and_the_end_of_the_run_and_are_followed(ice: "IcebergLab") -> None:
    table = AgedIceberg(ice)
    table.append((1, days_ago(91)), (2, days_ago(200)))
    table.append((3, days_ago(1)))
    at = asyncio.run(ice.reader(table.name).snapshot())
    done = table.run()
    (ended, noted), (deleted, summary), *_ = table.snapshots()
    assert (ended, deleted) == ("replace", "delete")
    assert (summary["deleted-records"], summary[PROOFREAD_KEY]) == ("2", "rows")
    marks = [commit_metadata.decode(one[COMMIT_KEY]) for one in (summary, noted)]
    assert [(one.mode, one.origin, one.deduplicated_version) for one in marks if one] == [
        (EXPIRE, CommitOrigin("job", 7), None),
        (EXPIRE, CommitOrigin("job", 7), done.version),
    ]

    async def follow() -> None:
        of_rows, of_end = [one async for one in ice.reader(table.name).changes(at.position, at.metadata)]
        assert (of_rows.version, of_end.version) == done.commits
        assert (of_rows.operation, of_rows.data_change, of_rows.origin) == ("DELETE", True, CommitOrigin("job", 7))
        assert (len(of_rows.removed), of_end.removed, of_end.data_change) == (1, (), False)
        runs = KeyRuns(appended_version=at.position.version).after(of_rows).after(of_end)
        assert not runs.is_pending

    asyncio.run(follow())
    assert len(table.run().commits) == 1
    empty = AgedIceberg(ice, "empty")
    assert (empty.run().commits, empty.run().is_complete) == ((), True)


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
@pytest.mark.parametrize("rule", ["90 days of ts", ROWS], ids=["files", "rows"])
def test_rows_that_are_deleted_by_value_count_for_nothing_and_do_not_come_back(ice: "IcebergLab", rule: str) -> None:
    from tests.support.iceberg_foreign import ForeignWriter, field

    table = AgedIceberg(ice, rule=rule)
    table.append((1, days_ago(100)), (2, days_ago(101)))
    table.append((3, days_ago(100)), (4, days_ago(1)), (5, days_ago(2)))
    key = pa.schema([field("id", pa.int64(), {"id": 1})])
    ForeignWriter(ice, table.name).delete_values(pa.table({"id": [2, 4]}, schema=key), [1])
    table.without = ("pyiceberg",)  # It reads no deletes by value.
    assert table.ids() == [1, 3, 5]
    dry = table.run(dry=True)
    done = table.run()
    assert table.ids() == ([5] if rule == ROWS else [3, 5])
    removed = 2 if rule == ROWS else 1
    assert (done.figures["rows_removed"], dry.figures["rows_removed"]) == (removed, removed)


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
    table = AgedIceberg(ice, rule=rule)
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
    table = AgedIceberg(ice, rule="90 days of ts")
    table.append((1, days_ago(100)), (2, days_ago(101)))
    ice.sql(f"ALTER TABLE {table.name} RENAME COLUMN ts TO moment")
    table.set_rule("90 days of moment")
    assert table.run(dry=True).figures["rows_removed"] == 2
    ice.sql(f"ALTER TABLE {table.name} ADD COLUMN ts TIMESTAMP")
    assert table.run(dry=True).figures["rows_removed"] == 2, "another column has the old name"
    table.set_rule("90 days of ts")
    assert table.run().figures.get("rows_removed", 0) == 0, "rows of before the column have no time"
    table.set_rule("90 days of moment")
    assert table.run().figures["rows_removed"] == 2
    assert table.ids() == []


@pytest.mark.long("contracts")
def test_files_of_other_partition_specs_go_by_their_own(ice: "IcebergLab") -> None:
    table = AgedIceberg(ice, kind="DATE", rule=ROWS)
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
@pytest.mark.parametrize(("default", "kept"), [("2001-01-01", [9]), ("2999-01-01", [1, 2, 9])])
def test_rows_of_before_the_column_are_as_old_as_its_initial_default(
    ice: "IcebergLab", default: str, kept: list[int]
) -> None:
    table = AgedIceberg(ice, properties={"format-version": "3"}, rule="90 days of at, rows")
    table.append((1, days_ago(1)), (2, days_ago(300)))
    resolve = ice.engine._scala.resolve
    kind = resolve("org.apache.iceberg.types.Types$TimestampType").withZone()
    literal = resolve("org.apache.iceberg.expressions.Literal").of(f"{default}T00:00:00+00:00").to(kind)
    table.java.updateSchema().addColumn("at", kind, "", literal).commit()
    rows = f"(8, NULL, TIMESTAMP '{days_ago(100)}Z'), (9, NULL, TIMESTAMP '{days_ago(1)}Z')"
    table.sql(f"INSERT INTO {{}} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    dry = table.run(dry=True)
    done = table.run()
    assert (table.ids(), changed(done)) == (kept, changed(dry))
    assert "groups_unverified" not in done.figures
    assert changed(table.run()) == {}
