"""Names, literals and the ALTER TABLE are written so that SQL reads exactly what was meant."""

import pytest

from shared.paths.sql_text import literal, set_properties, table_name


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("file:///lake/a`b", "delta.`file:///lake/a``b`"),
        ("catalog://prod/sales/a%20b", "`prod`.`sales`.`a b`"),
        ("catalog://prod/sales/x`y/t", "`prod`.`sales`.`x``y`.`t`"),
    ],
)
def test_a_table_is_named_by_its_path_or_by_the_names_in_its_catalog(location: str, name: str) -> None:
    assert table_name(location, "delta") == name


def test_a_format_without_a_name_for_paths_names_only_the_tables_of_catalogs() -> None:
    assert table_name("catalog://prod/sales/t", "") == "`prod`.`sales`.`t`"
    assert table_name("file:///lake/t", "") == ""
    assert set_properties("catalog://prod/t", {"a": "1"}, "") == "ALTER TABLE `prod`.`t` SET TBLPROPERTIES ('a' = '1')"
    assert set_properties("file:///lake/t", {"a": "1"}, "") == ""


def test_quotes_and_backslashes_in_a_value_end_no_literal() -> None:
    assert literal("a'b\\c") == "'a\\'b\\\\c'"
    assert set_properties("s3://lake/t", {"lakewright.filter": "d = 'x'", "lakewright.fan-in": "4"}, "delta") == (
        "ALTER TABLE delta.`s3://lake/t` SET TBLPROPERTIES ('lakewright.filter' = 'd = \\'x\\'', "
        "'lakewright.fan-in' = '4')"
    )
