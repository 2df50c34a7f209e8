"""The tags that a snapshot names for its files are found again, and other texts are not taken for them."""

import pytest

from shared.formats.iceberg.tags import decode_tags, encode_tags, file_tags

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
