"""Row expiry on real Delta: exactly the files whose rows are all over go, whatever the table's features are.

The rows before and after are read by Spark, deltalake and DuckDB.
"""

import json
from datetime import timedelta
from typing import Any

import pytest

from shared.errors import RefusedFiles, Unsupported
from tests.support.aged_rows import NOW, AgedTable, at_ms, days_ago
from tests.support.aged_table import commit_file
from tests.support.delta_lab import DeltaLab
from tests.support.local_vacuum import Control

pytestmark = pytest.mark.spark

CHANGED = ("rows_removed", "files_removed", "bytes_removed")


def test_files_go_whose_rows_are_all_over_and_the_dry_run_says_which(lab: DeltaLab) -> None:
    table = AgedTable(lab, "t", properties={"delta.enableChangeDataFeed": "true"})
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
    figures = [done.figures[name] for name in CHANGED]
    assert figures == [dry.figures[name] for name in CHANGED]
    assert figures[:2] == [3, 2]
    marked, deleted = lab.sql(f"DESCRIBE HISTORY {table.name} LIMIT 2")
    assert (marked["operation"], marked["operationMetrics"]["numDeletedRows"]) == ("DELETE", "0")
    assert (deleted["operation"], deleted["operationMetrics"]["numDeletedRows"]) == ("DELETE", "3")
    assert "ts < 20" in deleted["operationParameters"]["predicate"]
    assert table.changes(deleted["version"]) == [("delete", 1), ("delete", 2), ("delete", 3)]
    assert table.changes(marked["version"]) == []
    assert "files_removed" not in {name for name, count in table.run().figures.items() if count}


@pytest.mark.long("contracts")
@pytest.mark.parametrize(
    ("kind", "spelled"),
    [
        ("DATE", lambda day: day.date()),
        ("STRING", lambda day: f"{day:%Y-%m-%d}"),
        ("STRING", lambda day: f"{day:%Y%m%d}"),
        ("INT", lambda day: int(f"{day:%Y%m%d}")),
        ("TIMESTAMP", lambda day: day),
        ("TIMESTAMP_NTZ", lambda day: day),
    ],
    ids=["date", "days", "plain days", "numbers", "timestamp", "without a zone"],
)
def test_a_partition_goes_once_its_time_is_over_everywhere(lab: DeltaLab, kind: str, spelled: Any) -> None:
    """A day is over when it has ended in the last zone, which is 36 hours after it began in UTC."""
    days = kind in ("DATE", "STRING", "INT")
    begins = (NOW - timedelta(days=90)).replace(hour=0, minute=0, second=0)
    gone, kept = (
        (begins - timedelta(days=2), begins - timedelta(days=0)) if days else (days_ago(90.51), days_ago(90.49))
    )
    table = AgedTable(lab, "t", kind, "PARTITIONED BY (ts)")
    table.append((1, spelled(gone)), (2, spelled(kept)), (3, None), (4, spelled(NOW)))
    dry = table.run(dry=True)
    done = table.run()
    assert [done.figures[name] for name in CHANGED] == [dry.figures[name] for name in CHANGED]
    assert "ts=" in dry.reason
    assert table.ids(1) == [2, 3, 4]


@pytest.mark.long("contracts")
@pytest.mark.parametrize(
    "properties",
    [
        {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
        {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
        {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true"},
    ],
    ids=["vectors and feed", "mapped columns", "row ids"],
)
@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NTZ", "DATE"])
def test_exactly_the_files_that_are_over_go_whatever_the_tables_features(
    lab: DeltaLab, kind: str, properties: dict[str, str]
) -> None:
    def spelled(days: float) -> Any:
        return days_ago(days).date() if kind == "DATE" else days_ago(days)

    table = AgedTable(lab, "t", kind, properties=properties)
    table.append(*((number, spelled(92 + number)) for number in range(10)))
    table.append(*((number, spelled(85 + number)) for number in range(10, 20)), (20, spelled(80)))
    table.append((30, spelled(100)), (31, spelled(1)))
    # The file of these rows is over for its readers; its statistics still count the hidden one, so it stays.
    lab.sql(f"DELETE FROM {table.name} WHERE id IN (0, 31)")
    before, version = table.ids(1), lab.sql(f"DESCRIBE HISTORY {table.name} LIMIT 1")[0]["version"]
    has_vectors = properties.get("delta.enableDeletionVectors") == "true"
    expected = [*range(10, 21), *([30] if has_vectors else [])]
    done = table.run()
    assert table.ids(1) == expected
    assert done.figures["rows_removed"] == len(before) - len(expected)
    assert [row[0] for row in lab.sql(f"SELECT id FROM {table.name} VERSION AS OF {version} ORDER BY id")] == before
    if "delta.enableChangeDataFeed" in properties:
        gone = sorted(set(before) - set(expected))
        assert table.changes(done.commits[0]) == [("delete", number) for number in gone]


@pytest.mark.long("contracts")
@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
        {"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"},
    ],
    ids=["plain", "vectors and feed", "mapped columns and row ids"],
)
def test_rows_leave_files_that_hold_others_by_the_owners_word(lab: DeltaLab, properties: dict[str, str]) -> None:
    table = AgedTable(lab, "t", properties=properties, rule="90 days of ts, rows")
    table.append(*((number, days_ago(80.5 + number)) for number in range(20)), (20, None))
    table.append(*((number, days_ago(number)) for number in range(30, 40)))
    table.append((50, days_ago(300)), (51, days_ago(301)))
    table.append((60, days_ago(91)), (61, days_ago(1)))
    lab.sql(f"DELETE FROM {table.name} WHERE id IN (19, 0)")
    before, kept = table.ids(1), [*range(1, 10), 20, *range(30, 40), 61]
    ids = f"SELECT id, _metadata.row_id FROM {table.name} ORDER BY id"
    row_ids = dict(lab.sql(ids)) if "delta.enableRowTracking" in properties else {}
    dry = table.run(dry=True)
    done = table.run()
    assert table.ids(1) == [one for one in before if one in kept]
    for name in ("rows_removed", "files_removed", "files_replaced", "bytes_replaced"):
        assert done.figures[name] == dry.figures[name], name
    assert done.figures["rows_removed"] == len(before) - len(kept)
    assert done.figures["groups_proofread_by_rows"] >= 2
    assert "groups_unverified" not in done.figures
    if row_ids:
        assert dict(lab.sql(ids)) == {one: row_ids[one] for one in kept}
    if "delta.enableChangeDataFeed" in properties:
        changes = [change for version in done.commits for change in table.changes(version)]
        assert sorted(changes) == [("delete", one) for one in before if one not in kept]
    assert "rows_removed" not in {name for name, count in table.run().figures.items() if count}


@pytest.mark.long("contracts")
def test_rows_that_others_add_or_change_meanwhile_stay_unless_they_are_over(lab: DeltaLab) -> None:
    table = AgedTable(lab, "t", properties={"delta.enableDeletionVectors": "true"})
    table.append((1, days_ago(100)), (2, days_ago(101)))
    table.append((3, days_ago(100)))
    control = Control()

    def others(change: int) -> None:
        if change == 1:
            lab.sql(f"UPDATE {table.name} SET ts = current_timestamp() WHERE id = 1")
            table.append((4, days_ago(200)))
            table.append((5, days_ago(1)))

    control.before_change = others
    done = table.run(control=control)
    # The file of 1 and 2 was changed: it is read again, and row 2 is alone in it.
    assert (done.figures["conflicts"], table.ids()) == (1, [1, 5])
    table = AgedTable(lab, "rows", rule="90 days of ts, rows")
    table.append((1, days_ago(100)), (2, days_ago(1)))
    control.changes = 0
    done = table.run(control=control)
    assert (done.figures["conflicts"], table.ids()) == (1, [1, 2, 5])


@pytest.mark.long("contracts")
def test_a_stream_that_skips_changes_goes_on_and_sees_no_row_again(lab: DeltaLab) -> None:
    table = AgedTable(lab, "t")
    table.append((1, days_ago(100)))
    seen: list[int] = []

    def read() -> None:
        stream = lab.spark.readStream.format("delta").option("skipChangeCommits", "true").load(str(table.path))
        writer = stream.writeStream.option("checkpointLocation", str(lab.directory / "at")).trigger(availableNow=True)
        writer.foreachBatch(
            lambda frame, _: seen.extend(row["id"] for row in frame.collect())
        ).start().awaitTermination()

    read()
    table.append((2, days_ago(1)))
    assert table.run().figures["rows_removed"] == 1
    table.append((3, days_ago(0)))
    read()
    assert sorted(seen) == [1, 2, 3]


@pytest.mark.long("contracts")
def test_a_clock_that_is_ahead_deletes_nothing_that_writers_have_not_outlived(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = AgedTable(lab, "t")
    table.append((1, days_ago(89)))
    table.append((2, days_ago(91)))
    later = NOW + timedelta(days=400)
    monkeypatch.setattr("actor.row_expiry.time.time_ns", lambda: at_ms(later) * 1_000_000)
    dry = table.run(dry=True, at=later)
    assert dry.figures["rows_removed"] == 1
    assert table.run(at=later).figures["rows_removed"] == 1
    # Our own commits say nothing of the time: they were made by the same clock.
    assert "rows_removed" not in {name for name, count in table.run(at=later).figures.items() if count}
    assert table.ids() == [1]


@pytest.mark.long("contracts")
def test_a_file_that_holds_more_than_its_statistics_say_stays_and_is_named(lab: DeltaLab) -> None:
    table = AgedTable(lab, "t")
    table.append((1, days_ago(1)))
    table.append((2, days_ago(100)))
    place = commit_file(table.path, 1)
    actions = [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()]
    (add,) = (action["add"] for action in actions if "add" in action)
    stats = json.loads(add["stats"])
    stats["maxValues"]["ts"] = stats["minValues"]["ts"] = "2001-01-01T00:00:00.000Z"
    add["stats"] = json.dumps(stats)
    place.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    (place.parent / f".{place.name}.crc").unlink(missing_ok=True)
    place.with_suffix(".crc").unlink(missing_ok=True)
    with pytest.raises(RefusedFiles, match="newer than its statistics say") as refused:
        table.run()
    assert refused.value.files == (add["path"],)
    assert [row[0] for row in lab.sql(f"SELECT id FROM {table.name}")] == [1]


@pytest.mark.long("contracts")
def test_tables_whose_rows_must_not_go_are_refused_by_name(lab: DeltaLab) -> None:
    forbidden = AgedTable(lab, "a", properties={"delta.appendOnly": "true"})
    forbidden.append((1, days_ago(100)))
    with pytest.raises(Unsupported, match="appendOnly"):
        forbidden.run()
    for name, kind, rule, why in (
        ("b", "TIMESTAMP", "90 days of other", "does not have"),
        ("c", "BIGINT", "90 days of ts", "no date or timestamp"),
    ):
        with pytest.raises(Unsupported, match=why):
            AgedTable(lab, name, kind, rule=rule).run()
    odd = AgedTable(lab, "d", "STRING", "PARTITIONED BY (ts)")
    odd.append((1, "2001-01-01"), (2, "north"))
    with pytest.raises(Unsupported, match="'north', which is no day"):
        odd.run()
    assert odd.ids() == [1, 2]


@pytest.mark.long("contracts")
def test_only_the_tables_own_properties_delete_rows(lab: DeltaLab) -> None:
    table = AgedTable(lab, "t")
    table.append((1, days_ago(100)))
    table.rule = "10 days of ts"
    assert (table.run().commits, table.ids()) == ((), [1])
    lab.sql(f"ALTER TABLE {table.name} UNSET TBLPROPERTIES ('lakewright.delete-rows-after')")
    table.rule = "90 days of ts"
    assert (table.run().commits, table.ids()) == ((), [1])
