"""Iceberg is served where there can be tables of it, and its jar and reader are left alone elsewhere."""

from shared.formats.options import FormatOptions


def test_there_can_be_iceberg_tables_with_a_catalog_or_with_folders() -> None:
    assert not FormatOptions().has_iceberg
    assert FormatOptions({"prod": {}}).has_iceberg
    assert FormatOptions(iceberg_folders=True).has_iceberg


def test_options_of_catalogs_are_shown_nowhere() -> None:
    assert "secret" not in repr(FormatOptions({"prod": {"credential": "secret"}}))


def test_a_unity_catalog_has_no_iceberg_tables() -> None:
    both = FormatOptions({"prod": {}, "unity": {"type": "unity"}})
    assert list(both.iceberg_catalogs) == ["prod"]
    assert not FormatOptions({"unity": {"type": "unity"}}).has_iceberg
