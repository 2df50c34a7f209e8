"""Removals of older rows under attack: in each of these stories some row must stay, although it looks superseded."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from actor.formats.delta.row_removal import RemovalWriter
from actor.formats.delta.superseded_rows import SupersededRows
from actor.ports import TableJob
from shared.errors import Unsupported
from shared.jobs.options import DeduplicateOptions
from shared.jobs.payload import DEDUPLICATE
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import KeyScope, Policy
from shared.policy.properties import policy_digest
from shared.table import CommitOrigin
from tests.support.aged_table import commit_file, undo_to, versions
from tests.support.delta_lab import DeltaLab
from tests.support.keyed_table import KeyedTable
from tests.support.local_vacuum import Control

pytestmark = pytest.mark.spark

KEYED = Policy(primary_key="id", sequence_by="ts")


def append(table: Path, *rows: tuple[int, int]) -> None:
    columns = pa.table({"id": [row[0] for row in rows], "ts": [row[1] for row in rows]})
    write_deltalake(table, columns, mode="append", configuration={"delta.checkpointInterval": "1000"})


def rows_in(table: Path) -> list[tuple[int, int]]:
    return sorted((row["id"], row["ts"]) for row in DeltaTable(table).to_pyarrow_table().to_pylist())


def remove_older(lab: DeltaLab, table: Path, policy: Policy = KEYED, since: int = -1) -> dict[str, int]:
    return dict(lab.engine.run_table_job(job(table, policy, since), Control()).figures)


@pytest.mark.parametrize("later", [0, 1, 3])
def test_a_newer_row_whose_commit_was_undone_supersedes_nothing(lab: DeltaLab, tmp_path: Path, later: int) -> None:
    """An operator restores `_delta_log`; writers make other commits of the same numbers; the JVM knows the old ones."""
    table = tmp_path / "t"
    append(table, (1, 1))
    append(table, (2, 1))
    append(table, (1, 9), (2, 9))
    remove_older(lab, table, Policy(primary_key="ts", sequence_by="id"), since=2)
    lab.engine.read_partition(table.as_uri(), WHOLE_TABLE)
    assert lab.spark.read.format("delta").load(str(table)).count() == 4
    undo_to(table, 1)
    for number in range(3, 4 + later):
        append(table, (number, 1))
    truth = rows_in(table)
    remove_older(lab, table)
    assert rows_in(table) == truth


@pytest.mark.parametrize("name", ["a b.parquet", "a%b.parquet", "ü.parquet", "a+b.parquet", "a%20b.parquet"])
def test_files_of_special_names_lose_their_older_rows_alone(lab: DeltaLab, tmp_path: Path, name: str) -> None:
    table = tmp_path / "t"
    append(table, (1, 1), (2, 1))
    rename(table, 0, name)
    append(table, (1, 2), (3, 1))
    append(table, (3, 2))
    figures = remove_older(lab, table)
    assert figures["rows_removed"] == 2
    assert rows_in(table) == [(1, 2), (2, 1), (3, 2)]


def rename(table: Path, version: int, name: str) -> None:
    """Give the file of a commit another name, escaped in the log as Spark escapes it."""
    place = commit_file(table, version)
    actions = [json.loads(line) for line in place.read_text().splitlines() if line]
    for action in actions:
        if "add" in action:
            (table / action["add"]["path"]).rename(table / name)
            action["add"]["path"] = name.replace("%", "%25").replace(" ", "%20")
    place.write_text("".join(json.dumps(action) + "\n" for action in actions))


@pytest.mark.parametrize("part", [(SupersededRows, "counts"), (RemovalWriter, "write")])
def test_an_owner_who_changes_the_key_meanwhile_stops_the_removal(
    lab: DeltaLab, monkeypatch: pytest.MonkeyPatch, part: tuple[type, str]
) -> None:
    table = KeyedTable(lab, "t", "TBLPROPERTIES ('lakewright.primary-key' = 'id', 'lakewright.sequence-by' = 'ts')")
    table.append((1, 1, "a", None), (1, 2, "b", None))
    decided = policy_digest(DeltaTable(table.path).metadata().configuration)
    after(
        monkeypatch,
        part,
        lambda: lab.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('lakewright.primary-key' = 'id, v')"),
    )
    before = set(table.path.rglob("*.parquet"))
    done = lab.engine.run_table_job(job(table.path, KEYED, policy_digest=decided), Control())
    assert (done.commits, done.is_complete) == ((), False)
    assert "properties changed" in done.reason
    assert table.rows() == [(1, 1, "a"), (1, 2, "b")]
    assert set(table.path.rglob("*.parquet")) == before


def test_a_newer_row_whose_commit_is_undone_meanwhile_supersedes_nothing(
    lab: DeltaLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "t"
    append(table, (1, 1))
    append(table, (2, 1))
    append(table, (1, 9), (2, 9))

    def undo() -> None:
        if versions(table)[-1] == 2 and (1, 9) in rows_in(table):
            undo_to(table, 1)
            append(table, (3, 1))

    after(monkeypatch, (SupersededRows, "counts"), undo)
    remove_older(lab, table)
    assert rows_in(table) == [(1, 1), (2, 1), (3, 1)]


def after(monkeypatch: pytest.MonkeyPatch, part: tuple[type, str], what: Callable[[], object]) -> None:
    """Let something happen after each call of a method."""
    place, name = part
    original = getattr(place, name)

    def patched(*args: Any, **more: Any) -> Any:
        found = original(*args, **more)
        what()
        return found

    monkeypatch.setattr(place, name, patched)


def job(place: Path, policy: Policy, since: int = -1, **more: Any) -> TableJob:
    options = DeduplicateOptions(since).encode()
    return TableJob(DEDUPLICATE, place.as_uri(), policy, CommitOrigin("job", 7), options=options, **more)


def test_partitions_outside_the_owners_filter_lose_no_row(lab: DeltaLab) -> None:
    table = KeyedTable(lab, "t", "PARTITIONED BY (p)", columns=", p STRING")
    for ts in (1, 2):
        for part in ("'a'", "'b'", "NULL"):
            table.append((1, ts, "x", None), extra=", p", value=f", {part}")
    policy = Policy(primary_key="id", sequence_by="ts", key_scope=KeyScope.PARTITION, filter="p = 'b'")
    assert table.run(policy).figures["rows_removed"] == 1
    assert table.rows("p, ts") == [("a", 1), ("a", 2), ("b", 2), (None, 1), (None, 2)]


def test_a_mark_by_partition_brings_no_deleted_row_back(lab: DeltaLab) -> None:
    table = KeyedTable(lab, "t", "PARTITIONED BY (gone)")
    table.append((1, 1, "a", False), (1, 2, "b", True))
    with pytest.raises(Unsupported, match="delete-marker"):
        table.run(Policy(primary_key="id", sequence_by="ts", delete_marker="gone", key_scope=KeyScope.PARTITION))
    assert table.count() == 2


KINDS: Mapping[str, tuple[str, Sequence[Sequence[str]]]] = {
    "byte": ("TINYINT", [["1"], ["2"]]),
    "decimal": ("DECIMAL(9,2)", [["1.10", "1.1"], ["1.11"], ["-0.00", "0"]]),
    "string": (
        "STRING",
        [["'a'"], ["'A'"], ["'a '"], ["' a'"], ["'\u00e1'"], ["'a\u0301'"], ["'\U0001f600'"], ["'a\u007f'"]],
    ),
    "char": ("CHAR(3)", [["'a'", "'a '"], ["'b'"]]),
    "varchar": ("VARCHAR(3)", [["'a'"], ["'a '"], ["'b'"]]),
    "timestamp": (
        "TIMESTAMP",
        [
            ["TIMESTAMP'2026-01-01 00:00:00.000001Z'"],
            ["TIMESTAMP'2026-01-01 00:00:00Z'", "TIMESTAMP'2026-01-01 01:00:00+01:00'"],
            ["TIMESTAMP'1500-01-01 00:00:00Z'"],
        ],
    ),
    "timestamp_ntz": (
        "TIMESTAMP_NTZ",
        [["TIMESTAMP_NTZ'2026-03-29 02:30:00'"], ["TIMESTAMP_NTZ'2026-03-29 03:30:00'"]],
    ),
    "date": ("DATE", [["DATE'2026-01-01'"], ["DATE'0001-01-01'"], ["DATE'1582-10-04'"], ["DATE'1582-10-15'"]]),
    "boolean": ("BOOLEAN", [["true"], ["false"]]),
}
"""For each kind of key its SQL type, and literals: those in one list are one key."""


@pytest.mark.parametrize("is_partitioned", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_of_each_key_one_row_stays_whatever_its_type(lab: DeltaLab, kind: str, *, is_partitioned: bool) -> None:
    sql, keys = KINDS[kind]
    name, by = f"delta.`{lab.directory / 't'}`", "PARTITIONED BY (k)" if is_partitioned else ""
    lab.sql(f"CREATE TABLE {name} (k {sql}, ts BIGINT, v BIGINT) USING delta {by}")
    newest: dict[int, int] = {}
    nulls, number = [], 0
    for ts in (1, 3, 2):
        rows = []
        for key, literals in enumerate(keys):
            for place, literal in enumerate(literals):
                number += 1
                rows.append(f"({literal}, {ts * 10 + place}, {number})")
                if ts == 3:
                    newest[key] = number
        number += 1
        nulls.append(number)
        lab.sql(f"INSERT INTO {name} VALUES {', '.join(rows)}, (NULL, {ts}, {number})")
    policy = Policy(primary_key="k", sequence_by="ts")
    if is_partitioned and sql.startswith("CHAR"):
        before = lab.digest(str(lab.directory / "t"))
        with pytest.raises(Unsupported, match="of type CHAR"):
            remove_older(lab, lab.directory / "t", policy)
        assert lab.digest(str(lab.directory / "t")) == before
        return
    remove_older(lab, lab.directory / "t", policy)
    assert sorted(row[0] for row in lab.sql(f"SELECT v FROM {name}")) == sorted([*nulls, *newest.values()])


@pytest.mark.parametrize(
    "kinds", [("TINYINT", "INT"), ("SMALLINT", "BIGINT"), ("DECIMAL(5,1)", "DECIMAL(9,2)"), ("DATE", "TIMESTAMP_NTZ")]
)
def test_a_key_and_a_sequence_that_were_widened_are_compared_as_they_are_now(
    lab: DeltaLab, kinds: tuple[str, str]
) -> None:
    narrow, wide = kinds
    name, cast = f"delta.`{lab.directory / 't'}`", "DATE'2026-01-01' + INTERVAL {} DAY" if narrow == "DATE" else "{}"
    columns = f"k {narrow}, s {narrow}, v BIGINT"
    properties = "'delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported'"
    lab.sql(f"CREATE TABLE {name} ({columns}) USING delta TBLPROPERTIES ({properties})")

    def add(*rows: tuple[int, int, int]) -> None:
        texts = (f"({cast.format(key)}, {cast.format(sequence)}, {value})" for key, sequence, value in rows)
        lab.sql(f"INSERT INTO {name} VALUES {', '.join(texts)}")

    add((1, 1, 1), (2, 9, 2), (3, 3, 3))
    for column in ("k", "s"):
        lab.sql(f"ALTER TABLE {name} ALTER COLUMN {column} TYPE {wide}")
    add((1, 2, 4), (2, 8, 5))
    figures = remove_older(lab, lab.directory / "t", Policy(primary_key="k", sequence_by="s"))
    assert figures["rows_removed"] == 2
    assert sorted(row[0] for row in lab.sql(f"SELECT v FROM {name}")) == [2, 3, 4]


@pytest.mark.parametrize(
    ("property_", "column"),
    [
        ("'delta.columnMapping.mode' = 'name'", "`my p`"),
        ("'delta.randomizeFilePrefixes' = 'true'", "p"),
        ("'delta.minReaderVersion' = '1'", "p"),
    ],
    ids=["column mapping", "random folders", "folders of partitions"],
)
def test_a_change_feed_names_the_removed_rows_in_each_partition(lab: DeltaLab, property_: str, column: str) -> None:
    features = "'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true'"
    table = KeyedTable(
        lab, "t", f"PARTITIONED BY ({column}) TBLPROPERTIES ({features}, {property_})", columns=f", {column} STRING"
    )
    policy = Policy(primary_key="id", sequence_by="ts", key_scope=KeyScope.PARTITION)
    for ts in (1, 2, 3):
        for part in ("'a b'", "'c%d'", "NULL"):
            table.append(
                (1, ts, f"{part[-2]}{ts}", None), (2, -ts, f"x{ts}", None), extra=f", {column}", value=f", {part}"
            )
    lab.sql(f"DELETE FROM {table.name} WHERE ts = 3")
    version = table.history(1)[0]["version"]
    before = set(table.rows(f"id, ts, v, {column}"))
    done = table.run(policy)
    left = set(table.rows(f"id, ts, v, {column}"))
    assert {row[1] for row in left} == {2, -1}
    changes = lab.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", version + 1)
    found = changes.load(str(table.path)).select("id", "ts", "v", column, "_change_type")
    feed = [tuple(row) for row in found.collect()]
    assert sorted(feed, key=repr) == sorted([(*row, "delete") for row in before - left], key=repr)
    assert len(feed) == done.figures["rows_removed"] == len(before) - len(left)


def test_of_equal_rows_in_a_file_of_many_row_groups_one_stays(lab: DeltaLab) -> None:
    name = f"delta.`{lab.directory / 't'}`"
    lab.sql(f"CREATE TABLE {name} (id BIGINT, ts BIGINT, v STRING) USING delta")
    with_groups = {"parquet.block.size": "20000", "parquet.page.size": "4000"}
    rows = lab.spark.range(0, 20_000, 1, 1).selectExpr("id % 500 AS id", "id % 7 AS ts", "uuid() AS v")
    rows.write.format("delta").mode("append").options(**with_groups).save(str(lab.directory / "t"))
    rows.limit(300).write.format("delta").mode("append").save(str(lab.directory / "t"))
    lab.spark.conf.set("spark.sql.files.maxPartitionBytes", "50000")
    try:
        remove_older(lab, lab.directory / "t")
    finally:
        lab.spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert [tuple(row) for row in lab.sql(f"SELECT count(*), count(DISTINCT id), min(ts), max(ts) FROM {name}")] == [
        (500, 500, 6, 6)
    ]
