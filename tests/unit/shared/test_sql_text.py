"""Names, literals and the ALTER TABLE are written so that SQL reads exactly what was meant."""

import pytest

from shared.sql_text import literal, set_properties, table_name


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("file:///lake/a`b", "delta.`file:///lake/a``b`"),
        ("catalog://prod/sales/a%20b", "`prod`.`sales`.`a b`"),
        ("catalog://prod/sales/x`y/t", "`prod`.`sales`.`x``y`.`t`"),
    ],
)
def test_a_table_is_named_by_its_path_or_by_the_names_in_its_catalog(location: str, name: str) -> None:
    assert table_name(location) == name


def test_quotes_and_backslashes_in_a_value_end_no_literal() -> None:
    assert literal("a'b\\c") == "'a\\'b\\\\c'"
    assert set_properties("s3://lake/t", {"lakewright.filter": "d = 'x'", "lakewright.fan-in": "4"}) == (
        "ALTER TABLE delta.`s3://lake/t` SET TBLPROPERTIES ('lakewright.filter' = 'd = \\'x\\'', "
        "'lakewright.fan-in' = '4')"
    )
