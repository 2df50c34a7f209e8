"""Row expiry on real tables of each format: exactly the rows that are over go, whatever features a table has.

The rows before and after are read by Spark and by two engines that are not ours.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from shared.errors import RefusedFiles, Unsupported
from tests.support.aged_iceberg import AgedIceberg
from tests.support.aged_rows import NOW, AgedDelta, at_ms, changed, days_ago
from tests.support.local_vacuum import Control
from tests.support.long_suites import beyond

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning"),
]

ROWS = "90 days of ts, rows"
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
MAPPED = {"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"}
BUCKETS = "bucket(2, id)"
MERGE_ON_READ = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}

NewTable = Callable[..., AgedDelta | AgedIceberg]
FORMATS: Mapping[str, tuple[NewTable, str]] = {"delta": (AgedDelta, "lab"), "iceberg": (AgedIceberg, "ice")}


def of(version: int, **more: str) -> tuple[str, dict[str, str]]:
    return "iceberg", {"format-version": str(version), **more}


@pytest.fixture(params=FORMATS)
def new_table(request: pytest.FixtureRequest) -> NewTable:
    made, lab = FORMATS[request.param]
    return partial(made, request.getfixturevalue(lab))


def test_files_go_whose_rows_are_all_over_and_the_dry_run_says_which(new_table: NewTable) -> None:
    table = new_table()
    table.append((1, days_ago(91)), (2, days_ago(200)))
    table.append((3, days_ago(90.01)))
    table.append((4, days_ago(91)), (5, days_ago(89)))
    table.append((6, days_ago(91)), (7, None))
    table.append((8, days_ago(89.99)))
    table.append((9, days_ago(0)))
    dry = table.run(dry=True)
    assert (dry.version, dry.commits, table.ids()) == (-1, (), [*range(1, 10)])
    assert "files with rows of `ts` < TIMESTAMP '20" in dry.reason
    done = table.run()
    assert table.ids() == [4, 5, 6, 7, 8, 9]
    assert changed(done) == changed(dry)
    assert (done.figures["rows_removed"], done.figures["files_removed"]) == (3, 2)
    assert changed(table.run()) == {}


TIMES: Mapping[str, tuple[str, Callable[[datetime], Any]]] = {
    "timestamp": ("TIMESTAMP", lambda day: day),
    "without a zone": ("TIMESTAMP_NTZ", lambda day: day),
    "date": ("DATE", lambda day: day.date()),
    "days": ("STRING", lambda day: f"{day:%Y-%m-%d}"),
    "plain days": ("STRING", lambda day: f"{day:%Y%m%d}"),
    "numbers": ("INT", lambda day: int(f"{day:%Y%m%d}")),
}
"""Types of a partition's column, and how it spells a moment."""
PLACES = (("delta", {}), of(1), of(2), of(3))
IN_TURN = [
    (*PLACES[(turn + place) % len(PLACES)], time) for turn in range(len(PLACES)) for place, time in enumerate(TIMES)
]
"""Each time in one place, then a timestamp in Iceberg, whose partitions end at an instant, then all others."""


@pytest.mark.parametrize(
    ("new_table", "properties", "time"), beyond(len(TIMES) + 1, IN_TURN, "care"), indirect=["new_table"]
)
def test_a_partition_goes_once_its_time_is_over_everywhere(
    new_table: NewTable, properties: Mapping[str, str], time: str
) -> None:
    """A day is over when it has ended in the last zone, which is 36 hours after it began in UTC.

    Partitions of Iceberg by an instant have its value, and others a text without a zone.
    """
    kind, spelled = TIMES[time]
    days = kind in ("DATE", "STRING", "INT")
    begins = (NOW - timedelta(days=90)).replace(hour=0, minute=0, second=0)
    table = new_table(kind=kind, by="ts", properties=properties)
    limit = 90 if kind == "TIMESTAMP" and table.format == "iceberg" else 90.5
    gone, kept = (begins - timedelta(days=2), begins) if days else (days_ago(limit + 0.01), days_ago(limit - 0.01))
    table.append((1, spelled(gone)), (2, spelled(kept)), (3, None), (4, spelled(NOW)))
    dry = table.run(dry=True)
    done = table.run()
    assert changed(done) == changed(dry)
    assert "ts=" in dry.reason
    assert table.ids() == [2, 3, 4]
    assert "groups_proofread_by_rows" not in done.figures, "values of partitions are in the metadata"


LAID_OUT = [
    ("delta", VECTORS | FEED | MAPPED, ""),
    (*of(1), BUCKETS),
    (*of(2, **MERGE_ON_READ), BUCKETS),
    (*of(3, **MERGE_ON_READ), ""),
    *(("delta", properties, "") for properties in ({}, VECTORS | FEED, MAPPED)),
    *((*of(version), by) for version, by in ((1, ""), (2, ""), (2, BUCKETS))),
    *((*of(version, **MERGE_ON_READ), by) for version, by in ((2, ""), (3, BUCKETS))),
]


@pytest.mark.parametrize(
    ("new_table", "properties", "by"),
    beyond(4, LAID_OUT, "care"),
    indirect=["new_table"],
)
def test_rows_leave_files_that_hold_others_by_the_owners_word(
    new_table: NewTable, properties: Mapping[str, str], by: str
) -> None:
    table = new_table(by=by, properties=properties, rule=ROWS)
    table.append(*((number, days_ago(80.5 + number)) for number in range(20)), (20, None))
    table.append(*((number, days_ago(number)) for number in range(30, 40)))
    table.append((50, days_ago(300)), (51, days_ago(301)))
    table.append((60, days_ago(91)), (62, days_ago(1)))
    table.sql("DELETE FROM {} WHERE id IN (19, 0)")
    before, kept, refs = table.ids(), [*range(1, 10), 20, *range(30, 40), 62], table.refs()
    row_ids = table.row_ids()
    dry = table.run(dry=True)
    done = table.run()
    assert table.ids() == kept
    assert changed(done) == changed(dry)
    assert done.figures["rows_removed"] == len(before) - len(kept)
    assert done.figures["groups_proofread_by_rows"] >= 2
    assert "groups_unverified" not in done.figures
    assert table.row_ids() == {one: number for one, number in row_ids.items() if one in kept}
    assert [table.at(ref) for ref in refs] == [before] * len(refs)
    if isinstance(table, AgedDelta) and FEED.items() <= properties.items():
        changes = [change for version in done.commits for change in table.changes(version)]
        assert sorted(changes) == [("delete", one) for one in before if one not in kept]
    assert changed(table.run()) == {}
    assert table.ids() == kept


@pytest.mark.parametrize(
    ("new_table", "properties"),
    beyond(2, [("delta", VECTORS), of(3, **MERGE_ON_READ), of(2, **MERGE_ON_READ)], "care"),
    indirect=["new_table"],
)
def test_rows_that_others_add_change_or_delete_meanwhile_end_as_they_want(
    new_table: NewTable, properties: Mapping[str, str]
) -> None:
    table = new_table(properties=properties)
    table.append((1, days_ago(100)), (2, days_ago(101)))
    table.append((3, days_ago(100)))

    def others(change: int) -> None:
        if change == 1:
            table.sql("UPDATE {} SET ts = current_timestamp() WHERE id = 1")
            table.append((4, days_ago(200)))
            table.append((5, days_ago(1)))

    control = Control()
    control.before_change = others
    done = table.run(control=control)
    # A row of the file of 1 and 2 was changed: it is read again, and row 2 is alone in it.
    assert (done.figures["conflicts"], table.ids()) == (1, [1, 5])
    rows = new_table("rows", properties=properties, rule=ROWS)
    rows.append((1, days_ago(100)), (2, days_ago(1)), (3, days_ago(1)))

    def deletes(change: int) -> None:
        if change == 1:
            rows.sql("DELETE FROM {} WHERE id = 3")
            rows.append((4, days_ago(200)), (5, days_ago(1)))

    control = Control()
    control.before_change = deletes
    done = rows.run(control=control)
    assert (done.figures["conflicts"], rows.ids()) == (1, [2, 5])
    assert rows.unknown_files() == set(), "what was written for nothing is gone"


@pytest.mark.long("contracts")
def test_a_clock_that_is_ahead_deletes_nothing_that_writers_have_not_outlived(
    new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table()
    table.append((1, days_ago(89)))
    table.append((2, days_ago(91)))
    later = NOW + timedelta(days=400)
    monkeypatch.setattr("actor.row_expiry.time.time_ns", lambda: at_ms(later) * 1_000_000)
    assert table.run(dry=True, at=later).figures["rows_removed"] == 1
    assert table.run(at=later).figures["rows_removed"] == 1
    # Our own commits say nothing of the time: they may have been made by the same clock.
    assert changed(table.run(at=later)) == {}
    assert table.ids() == [1]


@pytest.mark.long("contracts")
def test_a_file_that_holds_more_than_its_statistics_say_stays_and_is_named(new_table: NewTable) -> None:
    table = new_table()
    table.append((1, days_ago(1)))
    table.append((2, days_ago(100)))
    path = table.make_first_look_old()
    with pytest.raises(RefusedFiles, match="newer than its statistics say") as refused:
        table.run()
    assert refused.value.files == (path,)
    assert [row[0] for row in table.sql("SELECT id FROM {}")] == [1]


@pytest.mark.long("contracts")
def test_only_the_tables_own_properties_delete_rows_and_those_of_a_wrong_column_are_refused(
    new_table: NewTable,
) -> None:
    table = new_table()
    table.append((1, days_ago(100)))
    table.rule = "10 days of ts"
    assert (table.run().commits, table.ids()) == ((), [1])
    table.sql("ALTER TABLE {} UNSET TBLPROPERTIES ('lakewright.delete-rows-after')")
    table.rule = "90 days of ts"
    assert (table.run().commits, table.ids()) == ((), [1])
    for name, kind, rule, why in (
        ("b", "TIMESTAMP", "90 days of other", "does not have"),
        ("c", "BIGINT", "90 days of ts", "no date or timestamp"),
    ):
        with pytest.raises(Unsupported, match=why):
            new_table(name, kind, rule=rule).run()
    odd = new_table("d", "STRING", "ts")
    odd.append((1, "2001-01-01"), (2, "north"))
    with pytest.raises(Unsupported, match="'north', which is no day"):
        odd.run()
    assert odd.ids() == [1, 2]
