"""Folders of outputs name the partition values exactly, or are random."""

import pytest

from actor.formats.delta.output_paths import OutputPaths, encoded_folder
from shared.table import PartitionColumn
from tests.support.fake_delta import FakeScala, FakeTable
from tests.support.fake_delta_table import add

P = PartitionColumn("p", "p", "string")
ODD = PartitionColumn("a b", "a b", "string")


@pytest.mark.parametrize(
    ("columns", "values", "inputs", "folder"),
    [
        ([P], {"p": "a b"}, [], "p=a%20b"),
        ([P], {"p": None}, [], "p=__HIVE_DEFAULT_PARTITION__"),
        ([P], {"p": "2026-01-01T00:00Z"}, ["p=2026-01-01%2000%253A00/x.parquet"], "p=2026-01-01%2000%3A00"),
        ([P], {"p": "a b"}, ["file:///lake/t/p=other/x.parquet", "x.parquet"], "p=a%20b"),
        ([P], {"p": "x" * 300}, [], None),
        ([ODD], {"a b": "1"}, [], None),
        ([], {}, [], None),
    ],
    ids=["escaped", "null", "an input's text", "absolute and foreign inputs", "too long", "a column's name", "none"],
)
def test_a_folder_names_the_values_with_percent_codes_or_there_is_none(
    columns: list[PartitionColumn], values: dict[str, str | None], inputs: list[str], folder: str | None
) -> None:
    assert encoded_folder(columns, values, inputs) == folder


def test_groups_whose_outputs_lie_in_one_folder_share_a_transaction() -> None:
    table = FakeTable()
    table.commit(add("x", p="a b"))
    log = table.log()
    txn = log.transaction()
    paths = OutputPaths(FakeScala(table), log, txn, log.shape(txn.snapshot()))
    first = paths.transaction_for({"p": "a b"}, [])
    assert paths.transaction_for({"p": "a b"}, []) is first
    assert paths.transaction_for({"p": "c d"}, []) not in (first, txn)
    assert paths.transaction_for({"p": "a"}, []) is txn
