"""The API's description is complete: what a reader of it cannot learn, a client cannot use."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter

from decider.gateway.credentials import Role
from decider.gateway.roles import needed
from decider.requests.table_request import RequestPreview, TableRequest
from decider.web.base_model import RequestModel, ResponseModel
from tests.support.decider_app import openapi_document
from tests.support.example_answers import VALUES, example_of

DOCUMENT: dict[str, Any] = openapi_document()
OPERATIONS = [
    pytest.param(method, path, operation, id=f"{method.upper()} {path}")
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
EXPECTED = {
    "POST /v1/events",
    "POST /v1/events/{source}",
    "OPTIONS /v1/events",
    "OPTIONS /v1/events/{source}",
    "GET /v1/rejected-events",
    "GET /v1/refused-files",
    "POST /v1/scan-reports",
    "GET /v1/tables/{name}/reads",
    "POST /v1/tables",
    "GET /v1/tables",
    "GET /v1/tables/{name}",
    "DELETE /v1/tables/{name}",
    "GET /v1/tables/{name}/partitions",
    "GET /v1/tables/{name}/decisions",
    "GET /v1/tables/{name}/optimizations",
    "POST /v1/tables/{name}/pause",
    "POST /v1/tables/{name}/resume",
    "POST /v1/tables/resume",
    "PATCH /v1/tables/{name}",
    "GET /v1/discovery",
    "POST /v1/discovery",
    "POST /v1/tables/{name}/optimize",
    "POST /v1/tables/{name}/what-if",
    "GET /v1/advice",
    "GET /v1/tables/{name}/advice",
    "POST /v1/tables/{name}/advice/{advice}/apply",
    "POST /v1/tables/{name}/advice/{advice}/dismiss",
    "POST /v1/tables/{name}/actions/vacuum",
    "POST /v1/tables/{name}/actions/checkpoint",
    "POST /v1/tables/{name}/actions/reclaim",
    "POST /v1/tables/{name}/actions/deduplicate",
    "POST /v1/tables/{name}/actions/cluster",
    "POST /v1/tables/{name}/actions/index",
    "POST /v1/tables/{name}/actions/rewrite-manifests",
    "GET /v1/jobs",
    "GET /v1/jobs/{job}",
    "DELETE /v1/jobs/{job}",
    "POST /v1/jobs/{job}/expedite",
    "POST /v1/jobs/{job}/requeue",
    "GET /v1/queue",
    "GET /v1/queue/settings",
    "PATCH /v1/queue/settings",
    "PUT /v1/queue/weights",
    "POST /v1/queue/pause",
    "POST /v1/queue/resume",
    "POST /v1/queue/audit",
    "GET /v1/actors",
    "GET /v1/backlog",
    "POST /v1/actors/{actor}/drain",
    "GET /v1/status",
    "GET /v1/me",
    "GET /v1/table-rows",
    "GET /v1/tables/{name}/layout-history",
    "GET /v1/tables/{name}/index",
    "GET /v1/history",
    "GET /v1/stream",
    "GET /livez",
    "GET /readyz",
    "GET /metrics",
}


def examples(media: dict[str, Any]) -> list[Any]:
    found = [media["example"]] if "example" in media else []
    found += [one["value"] for one in media.get("examples", {}).values()]
    name = media.get("schema", {}).get("$ref", "").rpartition("/")[2]
    return found or DOCUMENT["components"]["schemas"].get(name, {}).get("examples", [])


def test_every_call_that_is_offered_is_described() -> None:
    assert {param.id for param in OPERATIONS} == EXPECTED


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


MODELS = {
    model.__name__: TypeAdapter(model)
    for base in (ResponseModel, RequestModel, TableRequest, RequestPreview)
    for model in subclasses(base)
}


def test_every_example_is_one_that_its_model_accepts() -> None:
    checked = set()
    for operation in (param.values[2] for param in OPERATIONS):
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
