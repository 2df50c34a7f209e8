"""Newest row per key in Spark: equal to a replay whatever the features of the table, or refused."""

import random
from typing import Any

import pytest

from shared.errors import Conflict, LeaseLost, Unsupported
from shared.jobs.options import DeduplicateOptions
from shared.policy.policy import KeyScope, Policy
from tests.support.delta_lab import DeltaLab
from tests.support.keyed_table import KeyedTable, cdc, newest
from tests.support.local_vacuum import Control

pytestmark = pytest.mark.spark

KEYED = Policy(primary_key="id", sequence_by="ts")
VECTORS, MAPPED, FEED, TRACKED = (
    *("'delta.enableDeletionVectors' = 'true'", "'delta.columnMapping.mode' = 'name'"),
    *("'delta.enableChangeDataFeed' = 'true'", "'delta.enableRowTracking' = 'true'"),
)
FEATURES = {
    "plain": "'delta.minReaderVersion' = '1'",
    "vectors": VECTORS,
    "mapped": MAPPED,
    "feed": FEED,
    "tracked": TRACKED,
    "all": f"{VECTORS}, {MAPPED}, {FEED}, {TRACKED}",
}


@pytest.mark.parametrize("features", FEATURES)
def test_cdc_appends_come_to_the_replay_whatever_the_features(lab: DeltaLab, features: str) -> None:
    seed = 17
    print(f"\nseed {seed}, {features}")
    table = KeyedTable(lab, "t", f"TBLPROPERTIES ({FEATURES[features]})")
    batches = cdc(random.Random(seed), 6, 200)
    for number, batch in enumerate(batches):
        table.append(*batch)
        if number == 3:
            table.run()
    lab.sql(f"DELETE FROM {table.name} WHERE id % 50 = 1 AND ts > 1000")
    expected = newest([row for batch in batches for row in batch if (row[0] or 0) % 50 != 1 or (row[1] or 0) <= 1000])
    before, version = table.count(), table.history(1)[0]["version"]
    ids = row_ids(lab, table) if "RowTracking" in FEATURES[features] else {}
    done = table.run()
    assert table.rows() == expected
    assert done.figures["rows_removed"] == before - len(expected) > 0
    end, removal = table.history(2)
    assert (end["operation"], removal["operation"]) == ("DELETE", "DELETE")
    assert removal["operationMetrics"]["numDeletedRows"] == str(done.figures["rows_removed"])
    assert table.count(version) == before
    if ids:
        assert row_ids(lab, table).items() <= ids.items(), "rows that stay keep their ids"
    if "ChangeDataFeed" in FEATURES[features]:
        feed = (
            lab.spark.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", removal["version"])
            .load(str(table.path))
        )
        found = {row[0]: row[1] for row in feed.groupBy("_change_type").count().collect()}
        assert found == {"delete": done.figures["rows_removed"]}
    again = table.run()
    assert again.figures["rows_removed"] == 0
    assert table.rows() == expected


def test_what_a_writer_computes_and_checks_stays(lab: DeltaLab) -> None:
    columns = ", double BIGINT GENERATED ALWAYS AS (id * 2), number BIGINT GENERATED ALWAYS AS IDENTITY, n INT NOT NULL"
    table = KeyedTable(lab, "t", columns=columns)
    lab.sql(f"ALTER TABLE {table.name} ADD CONSTRAINT positive CHECK (ts > 0)")
    for ts in (1, 2, 3):
        table.append((1, ts, "a", None), (ts + 1, ts, "b", None), extra=", n", value=f", {ts}")
    numbers = {row[1:]: row[0] for row in table.rows("number, id, ts")}
    table.run()
    kept = table.rows("id, ts, v, double, n, number")
    assert [row[:5] for row in kept] == [(1, 3, "a", 2, 3), (2, 1, "b", 4, 1), (3, 2, "b", 6, 2), (4, 3, "b", 8, 3)]
    assert all(numbers[row[:2]] == row[5] for row in kept)
    table.append((9, 9, "c", None), extra=", n", value=", 9")
    assert max(numbers.values()) < dict(table.rows("id, number"))[9], "identities go on where they were"


def test_a_stream_skips_the_commit_or_fails_at_it(lab: DeltaLab) -> None:
    table = KeyedTable(lab, "t")
    table.append((1, 1, "a", None), (2, 1, "b", None))

    def read(name: str, **options: str) -> list[tuple[Any, ...]]:
        stream = lab.spark.readStream.format("delta").options(**options).load(str(table.path))
        query = (
            stream.writeStream.format("delta")
            .trigger(availableNow=True)
            .option("checkpointLocation", str(lab.directory / f"{name}-state"))
            .start(str(lab.directory / name))
        )
        query.awaitTermination()
        return sorted(tuple(row) for row in lab.sql(f"SELECT id, ts FROM delta.`{lab.directory / name}`"))

    assert read("skips", skipChangeCommits="true") == read("fails") == [(1, 1), (2, 1)]
    table.append((1, 2, "aa", None))
    table.run()
    table.append((3, 1, "c", None))
    assert read("skips", skipChangeCommits="true") == [(1, 1), (1, 2), (2, 1), (3, 1)]
    with pytest.raises(Exception, match=r"DELTA_SOURCE_TABLE_IGNORE_CHANGES|DELTA_SOURCE_IGNORE_DELETE"):
        read("fails")


def test_rows_of_other_partitions_are_never_compared(lab: DeltaLab) -> None:
    table = KeyedTable(lab, "t", "PARTITIONED BY (gone)")
    table.append((1, 1, "a", True), (1, 2, "b", False), (1, 3, "c", None), (1, 0, "d", True))
    with pytest.raises(Unsupported, match="key-scope"):
        table.run(KEYED)
    scoped = Policy(primary_key="id", sequence_by="ts", key_scope=KeyScope.PARTITION)
    done = table.run(scoped)
    assert (done.figures["partitions_read"], done.figures["rows_removed"]) == (3, 1)
    assert table.rows() == [(1, 1, "a"), (1, 2, "b"), (1, 3, "c")]
    table.append((2, 1, "e", False))
    changed = table.run(scoped, options=DeduplicateOptions(since_version=done.commits[-1]))
    assert (changed.figures["partitions_read"], changed.figures["rows_removed"]) == (1, 0)


def test_tables_that_must_not_lose_rows_lose_none(lab: DeltaLab) -> None:
    table = KeyedTable(lab, "t", "TBLPROPERTIES ('delta.appendOnly' = 'true')", columns=", score DOUBLE")
    table.append((1, 1, "a", None), (1, 2, "b", None))
    for policy, why in (
        (KEYED, "appendOnly"),
        (Policy(primary_key="other", sequence_by="ts"), "appendOnly"),
    ):
        with pytest.raises(Unsupported, match=why):
            table.run(policy)
    lab.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
    for policy in (Policy(primary_key="other", sequence_by="ts"), Policy(primary_key="score", sequence_by="ts")):
        with pytest.raises(Unsupported, match="primary-key"):
            table.run(policy)
    assert table.count() == 2


def test_without_the_lease_nothing_is_committed_and_nothing_is_left(lab: DeltaLab) -> None:
    table = KeyedTable(lab, "t", f"TBLPROPERTIES ({FEED})")
    table.append((1, 1, "a", None), (1, 2, "b", None))
    before = set(table.path.rglob("*.parquet"))
    control = Control()

    def lost(_change: int) -> None:
        raise LeaseLost("another actor has the job")

    control.before_change = lost
    with pytest.raises(LeaseLost):
        table.run(control=control)
    assert table.count() == 2
    assert set(table.path.rglob("*.parquet")) == before


def test_a_partition_that_others_keep_changing_is_left_to_a_later_job(lab: DeltaLab) -> None:
    table = KeyedTable(lab, "t")
    table.append((1, 1, "a", None), (1, 2, "b", None))
    control = Control()
    control.before_change = lambda change: lab.sql(f"UPDATE {table.name} SET v = 'u{change}' WHERE ts = 2") and None
    with pytest.raises(Conflict, match="tried again later"):
        table.run(control=control)
    assert table.count() == 2
    table.run()
    assert [row[:2] for row in table.rows()] == [(1, 2)]


def row_ids(lab: DeltaLab, table: KeyedTable) -> dict[tuple[Any, ...], tuple[int, int]]:
    rows = lab.sql(f"SELECT id, ts, _metadata.row_id, _metadata.row_commit_version FROM {table.name}")
    return {(row[0], row[1]): (row[2], row[3]) for row in rows}
