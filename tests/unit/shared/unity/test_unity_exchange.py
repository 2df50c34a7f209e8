"""What each answer of a Unity catalog means, by the samples of its API; options that are accepted."""

import json
from typing import Any

import jsonschema_rs
import pytest

from shared.errors import LakewrightError, NoTable, PermanentError, RetryableError
from shared.unity.exchange import UnityAnswer, decode_answer
from shared.unity.options import UnityOptions, is_unity, parse_options
from tests.support.unity_server import FOLDER, sample, table_answer

DOING = "catalog unity: reading a.b.c"


def failed(status: int, body: bytes) -> LakewrightError:
    with pytest.raises(LakewrightError) as found:
        decode_answer(UnityAnswer(status, body), DOING)
    assert str(found.value).startswith(DOING)
    return found.value


def of_sample(status: int, name: str) -> LakewrightError:
    return failed(status, json.dumps(sample(name)).encode())


@pytest.mark.parametrize("body", [b"<html>sign in</html>", b"", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_a_success_that_is_no_object_is_an_error_of_the_address(body: bytes) -> None:
    problem = failed(200, body)
    assert isinstance(problem, PermanentError)
    assert "`uri` in LAKEWRIGHT_CATALOGS" in str(problem)


def test_only_the_catalog_says_that_a_table_is_gone() -> None:
    problem = of_sample(404, "table_not_found")
    assert isinstance(problem, NoTable)
    assert "TABLE_NOT_FOUND: Table not found: unity.default.my_new_table" in str(problem)


@pytest.mark.parametrize("code", ["ENDPOINT_NOT_FOUND", "", "FEATURE_DISABLED", None, 5])
def test_another_404_does_not_say_that_a_table_is_gone(code: object) -> None:
    """The state of a table that is gone is deleted; a wrong address must not have that effect."""
    problem = failed(404, json.dumps({"error_code": code, "message": "no"}).encode())
    assert isinstance(problem, PermanentError)


@pytest.mark.parametrize("body", [b"<html>404</html>", b"{}", b'"TABLE_NOT_FOUND"'])
def test_a_404_of_another_server_names_the_setting(body: bytes) -> None:
    problem = failed(404, body)
    assert isinstance(problem, PermanentError)
    assert "`uri` in LAKEWRIGHT_CATALOGS" in str(problem)


@pytest.mark.parametrize(("status", "name"), [(401, "unauthenticated"), (403, "permission_denied")])
def test_a_refusal_names_the_token_and_the_rights(status: int, name: str) -> None:
    problem = of_sample(status, name)
    assert isinstance(problem, PermanentError)
    assert "`token` in LAKEWRIGHT_CATALOGS" in str(problem)
    assert "USE SCHEMA" in str(problem)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_catalog_that_is_overloaded_or_down_is_asked_again(status: int) -> None:
    assert isinstance(of_sample(status, "resource_exhausted"), RetryableError)
    assert isinstance(failed(status, b"<html>"), RetryableError)


def test_what_a_catalog_does_not_offer_is_not_asked_for_again() -> None:
    problem = failed(501, b'{"error_code": "UNIMPLEMENTED", "message": "no S3"}')
    assert isinstance(problem, PermanentError)
    assert "does not offer this" in str(problem)


@pytest.mark.parametrize("status", [301, 302, 307, 400, 405])
def test_every_other_status_is_permanent(status: int) -> None:
    assert isinstance(failed(status, b"https://elsewhere.example.com"), PermanentError)


def test_the_message_of_a_catalog_is_one_short_line() -> None:
    problem = failed(400, json.dumps({"error_code": "INVALID_ARGUMENT", "message": "a\nb " + "x" * 5_000}).encode())
    assert "a b xxx" in str(problem)
    assert len(str(problem)) < 400


URI = "https://catalog.example.com/api/2.1/unity-catalog"
GOOD = {"type": "unity", "uri": URI, "locations": "s3://lake"}


def test_options_are_read() -> None:
    more = {"token": "dapi0", "timeout-s": "5", "locations": "s3a://lake/, /data/raw"}
    assert parse_options("u", GOOD | more | {"uri": f" {URI}/ "}) == UnityOptions(
        URI, ("s3://lake", "file:///data/raw"), "dapi0", 5.0
    )


def test_by_default_there_is_no_token() -> None:
    found = parse_options("u", GOOD)
    assert (found.token, found.timeout_s) == ("", 30.0)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"uri": ""}, "uri"),
        ({"uri": "catalog.example.com"}, "uri"),
        ({"uri": "ftp://catalog.example.com"}, "uri"),
        ({"uri": "https://user:secret-word@catalog.example.com"}, "uri"),
        ({"uri": f"{URI}?a=secret-word"}, "uri"),
        ({"uri": f"{URI}#a"}, "uri"),
        ({"uri": "https://[secret-word"}, "uri"),
        ({"uri": "https://host:0/"}, "uri"),
        ({"locations": ""}, "locations"),
        ({"locations": " , "}, "locations"),
        ({"locations": "relative/secret-word"}, "locations"),
        ({"locations": "catalog://prod"}, "locations"),
        ({"token": "secret-word\r\nX-Other: 1"}, "token"),
        ({"token": "secret-word ü"}, "token"),
        ({"credentials": "secret-word"}, "no option 'credentials'"),
        ({"timeout-s": "0"}, "timeout-s"),
        ({"timeout-s": "secret-word"}, "timeout-s"),
        ({"timeout-s": "601"}, "timeout-s"),
        ({"timeout-s": "nan"}, "timeout-s"),
        ({"warehouse": "secret-word"}, "warehouse"),
    ],
)
def test_an_option_that_cannot_be_used_is_named_and_not_repeated(wrong: dict[str, str], named: str) -> None:
    with pytest.raises(ValueError, match=named) as refused:
        parse_options("prod", GOOD | wrong)
    assert "catalog prod" in str(refused.value)
    assert "secret-word" not in str(refused.value)


def test_no_token_is_shown() -> None:
    assert "dapi0" not in repr(parse_options("u", GOOD | {"token": "dapi0"}))


@pytest.mark.parametrize(("options", "is_one"), [(GOOD, True), ({}, False), ({"type": "rest"}, False)])
def test_a_unity_catalog_is_known_by_its_type(options: dict[str, str], is_one: bool) -> None:
    assert is_unity(options) is is_one


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
