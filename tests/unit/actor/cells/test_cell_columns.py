"""Clustering columns: values of rows and cuts agree on one order of numbers, whatever the type."""

import pytest

from actor.cells.columns import CellColumn, point_of, texts_of
from shared.layout.cells.boxes import NAN, NULL
from shared.layout.key_values import number_of


def column(kind: str) -> CellColumn:
    return CellColumn(("x",), ("x",), kind)


def test_null_is_below_every_cut_and_nan_below_none() -> None:
    assert column("long").number(None) == NULL
    assert column("double").number("NaN") == NAN
    assert column("double").below(NAN) == "coalesce(NOT isnan(`x`), true)"
    assert column("double").below(number_of(-1.5, "double") or 0) == "coalesce(`x` < DOUBLE('-1.5'), true)"
    assert "DOUBLE('-inf')" in column("double").below(NULL + 1)


@pytest.mark.parametrize(
    ("kind", "at", "shown"),
    [
        ("long", 5, "`x` < 5"),
        ("date", 719_163, "unix_date(`x`) < 0"),
        ("timestamp", 5000, "unix_micros(CAST(`x` AS TIMESTAMP)) < 5000"),
        ("string", int.from_bytes(b"ab".ljust(32, b"\0")), "CAST(`x` AS BINARY) < X'6162'"),
        # Only a tag that is wrong names numbers that the type does not have.
        ("long", NAN, "True"),
        ("long", NULL + 1, "False"),
        ("decimal(10,2)", NAN, "True"),
        ("decimal(10,2)", NULL + 1, "False"),
        ("string", NULL + 1, "CAST(`x` AS BINARY) < X''"),
        ("string", NAN, f"CAST(`x` AS BINARY) < X'{'ff' * 32}'"),
    ],
)
def test_a_cut_is_a_comparison(kind: str, at: int, shown: str) -> None:
    assert column(kind).below(at) == f"coalesce({shown}, true)"


def test_names_are_quoted_and_long_texts_are_read_by_their_beginning() -> None:
    assert CellColumn(("c",), ("s", "a`b"), "long").value == "`s`.`a``b`"
    assert column("float").value == "CAST(CAST(`x` AS STRING) AS DOUBLE)"
    assert column("string").text == "hex(substring(CAST(`x` AS BINARY), 1, 32))"
    assert column("long").text == "CAST(`x` AS STRING)"
    with pytest.raises(ValueError, match="is no boolean"):
        column("boolean").number("7")


def test_a_row_is_a_point_by_its_texts() -> None:
    columns = column("long"), column("date")
    assert texts_of(columns) == ["CAST(`x` AS STRING) AS c0", "CAST(unix_date(`x`) AS STRING) AS c1"]
    assert point_of(columns, {"c0": "-7"}) == (-7, NULL)
