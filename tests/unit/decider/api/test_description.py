"""The API's description is complete: what a reader of it cannot learn, a client cannot use."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter

from decider.gateway.credentials import Role
from decider.gateway.roles import needed
from decider.requests.table_request import RequestPreview, TableRequest
from decider.web.base_model import RequestModel, ResponseModel
from tests.support.example_answers import VALUES, example_of
from tests.support.live_decider import openapi_document
from tests.tools.page_api import FILE, page_api

DOCUMENT: dict[str, Any] = openapi_document()
OPERATIONS = [
    pytest.param(method, path, operation, id=f"{method.upper()} {path}")
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]


def examples(media: dict[str, Any]) -> list[Any]:
    found = [media["example"]] if "example" in media else []
    found += [one["value"] for one in media.get("examples", {}).values()]
    name = media.get("schema", {}).get("$ref", "").rpartition("/")[2]
    return found or DOCUMENT["components"]["schemas"].get(name, {}).get("examples", [])


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_every_operation_has_words_examples_and_problems(method: str, path: str, operation: dict[str, Any]) -> None:
    assert operation["summary"]
    assert len(operation["description"]) > 30
    if "requestBody" in operation:
        for media in operation["requestBody"]["content"].values():
            assert examples(media)
    for parameter in operation.get("parameters", []):
        assert parameter["description"], parameter["name"]
    good = [response for status, response in operation["responses"].items() if status.startswith("2")]
    assert good
    bad = {status: one for status, one in operation["responses"].items() if status.startswith(("4", "5"))}
    if path != "/metrics":
        assert "503" in bad
    role = needed(method.upper(), path)
    ways = operation.get("security", [])
    assert (role is None) == (not ways)
    assert role is None or {"token": []} in ways
    assert ({"key": []} in ways) == (role is Role.HOOK)
    for status, response in bad.items():
        problem = response["content"]["application/problem+json"]
        assert list(response["content"]) == ["application/problem+json"]
        assert problem["example"]["status"] == int(status)
    if path.startswith("/v1/"):
        assert "401" in bad
        assert "429" in bad
    if operation.get("parameters"):
        assert {"422", "404"} & set(bad)


SCHEMAS = [pytest.param(name, schema, id=name) for name, schema in DOCUMENT["components"]["schemas"].items()]


@pytest.mark.parametrize(("name", "schema"), SCHEMAS)
def test_every_schema_and_field_has_words(name: str, schema: dict[str, Any]) -> None:
    assert schema["description"]
    for field, described in schema.get("properties", {}).items():
        assert described.get("description"), f"{name}.{field}"


def subclasses(model: type[Any]) -> Iterator[type[Any]]:
    yield model
    for one in model.__subclasses__():
        yield from subclasses(one)


MODELS: dict[str, TypeAdapter[Any]] = {
    model.__name__: TypeAdapter(model)
    for base in (ResponseModel, RequestModel, TableRequest, RequestPreview)
    for model in subclasses(base)
}


def test_every_example_is_one_that_its_model_accepts() -> None:
    checked = set()
    for operation in (operation for methods in DOCUMENT["paths"].values() for operation in methods.values()):
        bodies = [*operation["responses"].values(), operation.get("requestBody", {})]
        for media in (one for body in bodies for one in body.get("content", {}).values()):
            name = media.get("schema", {}).get("$ref", "").rpartition("/")[2]
            for example in examples(media) if name else ():
                is_request = isinstance(MODELS[name].validate_python(example), RequestModel)
                assert is_request or set(example) == set(DOCUMENT["components"]["schemas"][name]["properties"]), name
                checked.add(name)
    assert len(checked) > 15


def test_an_answer_composed_of_its_schema_is_one_that_its_model_accepts_with_all_fields() -> None:
    schemas, checked = DOCUMENT["components"]["schemas"], set()
    for operation in (param.values[2] for param in OPERATIONS):
        good = [body for status, body in operation["responses"].items() if status.startswith("2")]
        for media in (one for body in good for one in body.get("content", {}).values()):
            for schema in (
                one for one in (media.get("schema", {}), *media.get("schema", {}).get("anyOf", ())) if "$ref" in one
            ):
                name = schema["$ref"].rpartition("/")[2]
                example = example_of(schema, schemas)
                MODELS[name].validate_python(example)
                assert set(example) == set(schemas[name]["properties"]), name
                checked.add(name)
    assert len(checked) > 40


def test_no_value_of_the_examples_is_left_over() -> None:
    """A name that no field has any more, as after a renaming, must not stay."""
    fields = {
        f"{name}.{field}"
        for name, schema in DOCUMENT["components"]["schemas"].items()
        for field in schema.get("properties", {})
    }
    assert set(VALUES) <= fields | {name.partition(".")[2] for name in fields}


def test_the_page_is_built_from_the_present_api() -> None:
    assert FILE.read_text(encoding="utf-8") == page_api(), "run make page-api, then make check"


def test_texts_are_left_out_and_fields_that_are_called_like_texts_are_not() -> None:
    text = page_api()
    assert "Table id." not in text
    assert '"description": {' in text, "the field of a policy value"
    assert '"title": {' in text, "the field of a rule"
