"""Ranges of a sort key, as folding and rebuilds read them from commits and checkpoints."""

import asyncio
import json
from typing import Any

import pytest

from decider.formats.delta.table import DeltaTable
from decider.storage.object_reads import ObjectReader, ReadMeter
from decider.storage.stores import RootedStore
from shared.errors import InvalidInput
from shared.table import PartitionColumn, TableMetadata, schema_digest
from tests.unit.decider.formats.delta.test_delta_actions import PLAIN, decoded, remove
from tests.unit.decider.formats.delta.test_delta_log import META, PROTOCOL, Lake, add

KEY = PartitionColumn("k", "c-1", "long")
KEYED = TableMetadata("id", sort_key=KEY)
FIELD = {"name": "K", "type": "long", "metadata": {"delta.columnMapping.physicalName": "c-1"}}


def stats(low: Any, high: Any) -> str:
    return json.dumps({"numRecords": 2, "minValues": {"c-1": low}, "maxValues": {"c-1": high}})


def metadata(field: dict[str, Any] = FIELD, **configuration: str) -> dict[str, Any]:
    named = {name.replace("_", "."): value for name, value in configuration.items()}
    return {**META, "schemaString": json.dumps({"fields": [field]}), "configuration": named}


def with_order(text: str, field: dict[str, Any] = FIELD, **more: str) -> PartitionColumn | None:
    body = metadata(field)
    body["configuration"] = {"lakewright.sort-by": text, **more}
    found = decoded({"metaData": body}, metadata=None).metadata
    assert found is not None
    return found.sort_key


def test_the_first_column_of_the_order_is_the_key_if_files_have_comparable_bounds_of_it() -> None:
    assert with_order("k desc, other") == PartitionColumn("K", "c-1", "long")
    assert with_order("other") is None
    assert with_order("k", {**FIELD, "type": "binary"}) is None
    assert with_order("k", {**FIELD, "type": {"type": "struct"}}) is None
    assert with_order("k k k") is None
    assert with_order("k", **{"delta.checkpoint.writeStatsAsJson": "false"}) is None
    assert with_order("none", **{"lakewright.zorder-by": "k"}) == PartitionColumn("K", "c-1", "long")
    assert with_order("k", {**FIELD, "metadata": 7}) == PartitionColumn("K", "K", "long")
    assert with_order("k", {**FIELD, "metadata": {"delta.columnMapping.physicalName": []}}) is None
    unmapped = with_order("k", {"name": "k", "type": "date"})
    assert unmapped == PartitionColumn("k", "k", "date")
    found = decoded({"metaData": metadata()}, metadata=None).metadata
    assert found == TableMetadata("id", (), {}, "delta", schema_digest=schema_digest(metadata()["schemaString"]))


def test_files_added_and_removed_have_their_ranges() -> None:
    commit = decoded(add("a", stats=stats(3, 9)), remove(path="b", stats=stats(-1, 4)), metadata=KEYED)
    assert [file.key_range for file in commit.added] == [(3, 9)]
    assert [(gone.key_range, gone.has_bounds) for gone in commit.removed] == [((-1, 4), True)]
    counted = decoded(remove(path="b", stats='{"numRecords":7}'), metadata=KEYED)
    assert (counted.removed[0].key_range, counted.removed[0].has_bounds) == (None, False)
    plain = decoded(add("a", stats=stats(3, 9)), remove(path="b"), metadata=PLAIN)
    assert (plain.added[0].key_range, plain.removed[0].has_bounds) == (None, False)


@pytest.mark.parametrize("text", ["[1]", "{", '{"numRecords":1}', '{"minValues":{"c-1":1},"maxValues":7}'])
def test_statistics_without_bounds_give_no_range(text: str) -> None:
    assert decoded(add("a", stats=text), metadata=KEYED).added[0].key_range is None


def ranges(lake: Lake) -> dict[str, tuple[int, int] | None]:
    snapshot = lake.snapshot()
    live = asyncio.run(lake.log.live_files())
    counted = {file.path: file.key_range for file in live.others}
    assert counted == {file.path: file.key_range for file in snapshot.files}
    assert not len(live.columns.table)
    return counted


def test_a_rebuild_reads_the_ranges_of_all_files_whenever_the_order_was_set() -> None:
    lake = Lake()
    lake.commit(0, {"protocol": PROTOCOL}, {"metaData": metadata()}, add("0", stats=stats(0, 1)))
    sorted_now = {**metadata(), "configuration": {"lakewright.sort-by": "k"}}
    lake.commit(1, {"metaData": sorted_now}, add("1", stats=stats(1, 2)))
    assert ranges(lake) == {"0": (0, 1), "1": (1, 2)}
    rows = [{"protocol": PROTOCOL}, {"metaData": metadata()}, add("0", stats=stats(0, 1))]
    lake.checkpoint(0, rows=rows)
    assert ranges(lake) == {"0": (0, 1), "1": (1, 2)}
    rows = [{"protocol": PROTOCOL}, {"metaData": sorted_now}, *(add(str(n), stats=stats(n, n + 1)) for n in (0, 1))]
    lake.checkpoint(1, rows=rows)
    lake.commit(2, add("2", stats=stats(2, 3)))
    assert ranges(lake) == {"0": (0, 1), "1": (1, 2), "2": (2, 3)}


def ranges_of(lake: Lake, column: str) -> dict[str, tuple[int, int] | None]:
    reader = DeltaTable(lake.log, ObjectReader(RootedStore(lake.store), location="memory:///t", meter=ReadMeter()))
    snapshot = asyncio.run(reader.snapshot_with_ranges(column))
    assert snapshot.metadata.sort_key is not None
    assert {file.path for file in lake.snapshot().files} == {file.path for file in snapshot.files}
    return {file.path: file.key_range for file in snapshot.files}


def test_ranges_of_any_column_are_read_whatever_the_tables_order_is_and_was() -> None:
    lake = Lake()
    both = {"fields": [FIELD, {"name": "other", "type": "date"}, {"name": "raw", "type": "binary"}]}
    plain = {**META, "schemaString": json.dumps(both), "configuration": {}}
    ordered = {**plain, "configuration": {"lakewright.sort-by": "other"}}
    lake.commit(0, {"protocol": PROTOCOL}, {"metaData": plain}, add("0", stats=stats(0, 1)))
    lake.commit(1, {"metaData": ordered}, add("1", stats=stats(1, 2)), add("without"))
    assert ranges_of(lake, "k") == {"0": (0, 1), "1": (1, 2), "without": None}
    lake.checkpoint(0, rows=[{"protocol": PROTOCOL}, {"metaData": plain}, add("0", stats=stats(5, 6))])
    assert ranges_of(lake, "K") == {"0": (5, 6), "1": (1, 2), "without": None}
    assert ranges_of(lake, "other") == dict.fromkeys(("0", "1", "without"))
    for column in ("raw", "absent"):
        with pytest.raises(InvalidInput, match="no bounds"):
            ranges_of(lake, column)


def test_a_column_that_was_added_later_has_the_ranges_of_all_files() -> None:
    lake = Lake()
    empty = {**META, "schemaString": json.dumps({"fields": []}), "configuration": {}}
    lake.commit(0, {"protocol": PROTOCOL}, {"metaData": empty}, add("0", stats=stats(0, 1)))
    lake.commit(1, {"metaData": metadata()}, add("1", stats=stats(1, 2)))
    assert ranges_of(lake, "k") == {"0": (0, 1), "1": (1, 2)}
