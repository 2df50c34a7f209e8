"""Sort orders as owners write them."""

import pytest

from shared.policy.row_order import MAX_SORT_COLUMNS, SortColumn, parse_sort_columns


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a", [("a", False)]),
        (" a ,b DESC, c asc", [("a", False), ("b", True), ("c", False)]),
        ("`odd name, really` desc, `tick``ed`", [("odd name, really", True), ("tick`ed", False)]),
        ("desc", [("desc", False)]),
    ],
)
def test_columns_are_read_with_their_directions(text: str, columns: list[tuple[str, bool]]) -> None:
    assert parse_sort_columns(text) == tuple(SortColumn(*column) for column in columns)


@pytest.mark.parametrize("text", ["", "a,", "a b", "a desc desc", "a, A", "`a", ", ".join("abcdefghi")])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_sort_columns(text)
    assert len("abcdefghi") > MAX_SORT_COLUMNS


def test_a_column_is_written_as_sql_names_it() -> None:
    assert [str(column) for column in parse_sort_columns("a, `b``c` desc")] == ["`a` ASC", "`b``c` DESC"]
