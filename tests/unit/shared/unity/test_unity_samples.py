"""The samples are what the project's OpenAPI says, and what is read of an answer is in it."""

from typing import Any

import jsonschema_rs
import pytest

from tests.support.unity_samples import FOLDER, sample, table_answer

SCHEMAS = {
    "table": "TableInfo",
    "managed_table": "TableInfo",
    "schema": "SchemaInfo",
    "catalog": "CatalogInfo",
    "tables": "ListTablesResponse",
}
ERRORS = {"unauthenticated", "table_not_found", "resource_exhausted", "permission_denied"}
"""Their form is no part of the OpenAPI."""

READ = {
    "TableInfo": {
        *("name", "catalog_name", "schema_name", "table_type", "data_source_format", "storage_location"),
        *("table_id", "properties"),
    },
    "ListTablesResponse": {"tables", "next_page_token"},
    "ListSchemasResponse": {"schemas", "next_page_token"},
    "ListCatalogsResponse": {"catalogs", "next_page_token"},
    "SchemaInfo": {"name"},
    "CatalogInfo": {"name"},
}


def schema(name: str) -> dict[str, Any]:
    return {**sample("openapi"), "$ref": f"#/$defs/{name}"}


def given(value: Any) -> Any:
    """Return a value without what is null, which the server writes for a field that is not there."""
    if isinstance(value, dict):
        return {name: given(one) for name, one in value.items() if one is not None}
    return [given(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_sample_is_as_the_openapi_says(name: str) -> None:
    jsonschema_rs.validate(schema(SCHEMAS[name]), given(sample(name)))


def test_a_sample_that_is_not_is_noticed() -> None:
    damaged = table_answer("a.b.c", "file:///t", table_type="A_TABLE")
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(schema("TableInfo"), given(damaged))


def test_every_sample_is_compared() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {*SCHEMAS, *ERRORS, "openapi"}


@pytest.mark.parametrize("name", READ)
def test_the_openapi_has_every_field_that_is_read(name: str) -> None:
    assert READ[name] <= set(sample("openapi")["$defs"][name]["properties"])
