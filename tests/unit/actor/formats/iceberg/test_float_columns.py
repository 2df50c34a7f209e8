"""Columns of floats are found by their names, in structs too, and not in lists and maps."""

from actor.formats.iceberg.float_columns import float_columns


def test_columns_of_floats_are_found_at_any_depth_of_structs() -> None:
    inner = {"type": "struct", "fields": [{"name": "r", "type": "double"}, {"name": "s", "type": "string"}]}
    fields = [
        {"name": "id", "type": "long"},
        {"name": "F", "type": "float"},
        {"name": "d.d", "type": "double"},
        {"name": "st", "type": {"type": "struct", "fields": [{"name": "in", "type": inner}]}},
        {"name": "li", "type": {"type": "list", "element": "double"}},
        {"name": "ma", "type": {"type": "map", "key": "float", "value": inner}},
    ]
    assert float_columns({"type": "struct", "fields": fields}) == ["F", "d.d", "st.in.r"]
    assert float_columns({"type": "struct", "fields": []}) == []
