"""Metadata that are kept are those of the table as it is, and of a bounded number of tables."""

from shared.formats.iceberg.head_cache import TABLES, HeadCache
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.partitions import Spec
from shared.table import TableMetadata, TableProtocol


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
