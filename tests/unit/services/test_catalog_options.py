"""Catalogs are set as JSON; an error names what is wrong with it and repeats no value, which may be a secret."""

import json

import pytest

from services.catalog_options import parse_catalogs
from services.settings import format_options
from shared.errors import InvalidInput


def test_catalogs_are_read_by_name() -> None:
    text = '{"prod": {"uri": "https://c", "credential": "id:secret"}, "test.2": {}}'
    assert parse_catalogs(text) == {"prod": {"uri": "https://c", "credential": "id:secret"}, "test.2": {}}
    read = format_options({"LAKEWRIGHT_CATALOGS": text, "LAKEWRIGHT_ICEBERG_FOLDERS": "true"})
    assert (sorted(read.catalogs), read.iceberg_folders) == (["prod", "test.2"], True)
    assert not format_options({}).has_iceberg


@pytest.mark.parametrize(
    "text",
    [
        *("[]", '{"a/b": {}}', '{"a": "s3cret"}', '{"a": {"token": ["s3cret"]}}', "s3cret"),
        '{"u": {"type": "unity", "uri": "s3cret"}}',
    ],
)
def test_what_cannot_be_used_is_refused_without_its_values(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        format_options({"LAKEWRIGHT_CATALOGS": text})
    assert "LAKEWRIGHT_CATALOGS" in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_a_unity_catalog_is_made_for_each_of_its_type() -> None:
    unity = {"type": "unity", "uri": "https://c/api", "token": "s3cret", "locations": "s3://lake"}
    catalogs = {"prod": {}, "u": unity}
    read = format_options({"LAKEWRIGHT_CATALOGS": json.dumps(catalogs)})
    assert (sorted(read.catalogs), list(read.unity), list(read.iceberg_catalogs)) == (["prod", "u"], ["u"], ["prod"])
    assert read.unity["u"].name == "u"
    assert "s3cret" not in repr(read)
