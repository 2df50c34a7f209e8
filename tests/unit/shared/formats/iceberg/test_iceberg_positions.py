"""Positions along the chain of main, keys of partitions, and tags of files: how a table's state is named."""

from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from json import loads
from struct import pack, unpack
from typing import Any
from uuid import UUID

import pytest

from shared.formats.iceberg.head_cache import TABLES, HeadCache
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.formats.iceberg.partitions import Spec, SpecField, partition_text
from shared.formats.iceberg.positions import (
    chain_versions,
    digest_snapshot,
    newest_position,
    position_digest,
    positions,
    snapshots_after,
)
from shared.formats.iceberg.tags import decode_tags, encode_tags, file_tags
from shared.table import BEFORE_FIRST, Position, TableMetadata, TableProtocol


def table(*chain: tuple[int, int | None, int], current: int | None = None, updated_ms: int = 0) -> TableHead:
    """Return a table of snapshots, each with id, parent and time; the last one is current unless one is named."""
    snapshots = {one: SnapshotRecord(one, parent, 0, at, "m", "append") for one, parent, at in chain}
    newest = current or (chain[-1][0] if chain else None)
    updated_ms = updated_ms or (snapshots[newest].timestamp_ms if newest in snapshots else 1)
    return TableHead("file:///t", TableMetadata("u-1"), TableProtocol(2, 2), updated_ms, newest, {}, snapshots, {})


LINE = table((1, None, 100), (2, 1, 200), (3, 2, 300))


def at(snapshot: int | None, version: int = 0) -> Position:
    return Position(version, position_digest("u-1", snapshot))


def test_versions_are_times_and_grow_although_clocks_differ() -> None:
    assert chain_versions([100, 200, 150, 150, 400]) == [100, 200, 201, 202, 400]
    assert chain_versions([]) == []
    assert [one.version for one in positions(LINE).values()] == [100, 200, 300]


def test_a_digest_names_its_snapshot_and_its_table() -> None:
    assert digest_snapshot(position_digest("u-1", 7), "u-1") == 7
    assert digest_snapshot(position_digest("u-1", None), "u-1") is None
    for other in ("u-2.7", "u-1", "", "u-1.x"):
        with pytest.raises(ValueError, match=r"position|invalid"):
            digest_snapshot(other, "u-1")


def test_what_follows_a_position_are_the_snapshots_after_its_own() -> None:
    assert [one.id for one in snapshots_after(LINE, at(1)) or ()] == [2, 3]
    assert snapshots_after(LINE, at(3)) == []
    assert [one.id for one in snapshots_after(LINE, at(None)) or ()] == [1, 2, 3]
    assert [one.id for one in snapshots_after(LINE, BEFORE_FIRST) or ()] == [1, 2, 3]


def test_the_parent_of_the_oldest_retained_snapshot_is_the_oldest_position() -> None:
    expired = table((2, 1, 200), (3, 2, 300))
    assert [one.id for one in snapshots_after(expired, at(1)) or ()] == [2, 3]
    assert snapshots_after(expired, at(None)) is None
    assert snapshots_after(expired, BEFORE_FIRST) is None
    assert snapshots_after(table((3, 2, 300)), at(1)) is None


def test_a_position_that_main_no_longer_leads_through_has_nothing_after_it() -> None:
    rolled_back = table((1, None, 100), (2, 1, 200), (3, 1, 300))
    assert snapshots_after(rolled_back, at(2)) is None
    assert snapshots_after(LINE, Position(100, "u-2.1")) is None
    assert snapshots_after(table(), at(1)) is None
    assert snapshots_after(table(), at(None)) == []


def test_the_newest_position_moves_with_the_metadata_too() -> None:
    assert newest_position(LINE) == at(3, 300)
    assert newest_position(replace(LINE, updated_ms=350)) == at(3, 350)
    assert newest_position(replace(LINE, updated_ms=250)) == at(3, 301)
    assert newest_position(table(updated_ms=9)) == at(None, 9)
    assert newest_position(table((1, None, 5), current=8, updated_ms=9)) == at(8, 9)


MOMENT = datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=UTC)


@pytest.mark.parametrize(
    ("transform", "kind", "value", "text"),
    [
        ("identity", "string", "", ""),
        ("identity", "string", None, None),
        ("identity", "string", "null", "null"),
        ("identity", "boolean", True, "true"),
        ("identity", "boolean", False, "false"),
        ("identity", "int", -7, "-7"),
        ("identity", "double", 0.1, "0.1"),
        ("identity", "decimal(9, 2)", Decimal("1E+1"), "10"),
        ("identity", "binary", b"\x00\xff", "00ff"),
        ("identity", "uuid", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("identity", "uuid", UUID(int=1).bytes, "00000000-0000-0000-0000-000000000001"),
        ("identity", "date", -1, "1969-12-31"),
        ("identity", "date", date(2026, 1, 2), "2026-01-02"),
        ("identity", "date", 10**9, "1000000000"),
        ("identity", "timestamp", 1, "1970-01-01T00:00:00.000001"),
        ("identity", "timestamptz", MOMENT, "2026-01-02T03:04:05.000600"),
        ("identity", "time", 1_000_000, "00:00:01.000000"),
        ("identity", "time", time(1, 2), "01:02:00.000000"),
        ("truncate[2]", "string", "ab", "ab"),
        *(("bucket[16]", kind, 3, "3") for kind in ("string", "date", "timestamp", "time", "float", "uuid")),
        ("year", "date", -1, "1969"),
        ("month", "date", -1, "1969-12"),
        ("month", "timestamp", 12, "1971-01"),
        ("day", "timestamp", 0, "1970-01-01"),
        ("hour", "timestamp", -1, "1969-12-31-23"),
    ],
)
def test_a_value_is_written_as_readers_write_it(transform: str, kind: str, value: Any, text: str | None) -> None:
    assert partition_text(SpecField("f", transform, kind), value) == text


def test_partitions_of_different_specs_null_and_an_empty_text_are_different_ones() -> None:
    fields = (SpecField("dt", "identity", "string"), SpecField("old", "void", "int"))
    keys = {Spec(number, fields).key((value, None)) for number in (0, 1) for value in ("a", "", None, "null")}
    assert len(keys) == 8
    assert Spec(0, fields).key(("a", None)) == '{"dt":"a"}'
    assert Spec(1, fields).key((None, None)) == '{"#spec":"1","dt":null}'
    assert Spec(0).key(()) == "{}"


@pytest.mark.parametrize("name", ["#spec", "##spec"])
def test_a_field_that_is_named_as_the_number_of_a_spec_has_a_key_of_its_own(name: str) -> None:
    fields = (SpecField(name, "identity", "string"),)
    keys = {Spec(number, fields).key((value,)) for number in (0, 1) for value in ("1", "2", None)}
    assert len(keys) == 6
    assert loads(Spec(1, fields).key(("2",))) == {"#spec": "1", f"#{name}": "2"}


def test_a_float_is_the_same_in_the_digits_of_java_and_in_the_bits_of_avro() -> None:
    field = SpecField("f", "identity", "float")
    assert partition_text(field, 0.1) == partition_text(field, unpack("<f", pack("<f", 0.1))[0])
    assert partition_text(field, 0.5) == "0.5"


@pytest.mark.parametrize("kind", ["float", "double", "long"])
def test_keys_that_are_remembered_are_those_of_the_values(kind: str) -> None:
    """The two zeros of a float are equal, and two partitions."""
    spec = Spec(0, (SpecField("v", "identity", kind),))
    zeros = [0.0, -0.0, 0.0] if kind != "long" else [0, 1, 0]
    key = spec.remembered_key()
    assert [key((one,)) for one in zeros] == [spec.key((one,)) for one in zeros]
    assert len({key((one,)) for one in zeros}) == 2


TAGS = {"a.parquet": {"lakewright.idle_compacted": "1"}}


def test_tags_are_found_by_the_last_part_of_a_path() -> None:
    found = decode_tags(encode_tags(TAGS))
    assert found == TAGS
    assert file_tags(found, "s3://lake/t/data/a.parquet") == TAGS["a.parquet"]
    assert file_tags(found, "s3://lake/t/data/b.parquet") == {}


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"a": 1}', "[" * 100_000])
def test_any_other_text_holds_no_tags(text: str | None) -> None:
    assert decode_tags(text) == {}


def test_tags_that_are_no_texts_are_left_out() -> None:
    assert decode_tags('{"a": {"x": 1, "y": "2"}}') == {"a": {"y": "2"}}


def head(number: int) -> TableHead:
    metadata = TableMetadata(table_uuid="u", partition_columns=(), configuration={})
    return TableHead("file:///t", metadata, TableProtocol(2, 2), number, number, {0: Spec(0, ())}, {})


def test_metadata_are_kept_with_their_identity_instead_of_earlier_ones() -> None:
    cache = HeadCache()
    assert cache.get("t") == ("", None)
    cache.put("t", "one", head(1))
    cache.put("other", "one", head(9))
    assert cache.get("t") == ("one", head(1))
    cache.put("t", "two", head(2))
    assert cache.get("t") == ("two", head(2))


def test_of_many_tables_those_that_were_put_last_are_kept() -> None:
    cache = HeadCache()
    for number in range(TABLES + 1):
        cache.put(f"t{number}", "one", head(number))
        cache.put("t0", "one", head(0))
    assert cache.get("t0") == ("one", head(0))
    assert cache.get("t1") == ("", None)
    assert all(cache.get(f"t{number}")[1] for number in range(2, TABLES + 1))
