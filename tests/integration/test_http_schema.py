"""The API does what its description says, whatever is sent to it: calls are made up from the OpenAPI document.

No call may end in a 5xx, and each answer must have a status, a type and a form that the document names. Tables can be
registered below the test's own folder alone, so that nothing made up makes the decider read anywhere else.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from decider.api.app import create_app
from services.decider.build import build_services
from services.decider.settings import DeciderSettings
from tests.support.event_samples import SAMPLES
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.redis

EXAMPLES = 10
"""Made-up calls per operation: some ten seconds in all."""

ENDLESS = frozenset({"/v1/stream"})
"""Calls whose answer does not end, which have tests of their own."""

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
NAME = "made.up"
"""No name of the document's examples, which calls that delete are made up from, too."""

DOCUMENT: dict[str, Any] = create_app(build_services(DeciderSettings())).openapi()
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS = [
    pytest.param(path, method, id=f"{method.upper()} {path}")
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if path not in ENDLESS
]


@pytest.fixture(scope="module")
def decider(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveDecider]:
    """A decider with one table, that reads below one folder only."""
    with redis_server.client() as client:
        client.flushall()
    folder = tmp_path_factory.mktemp("lake")
    table = WrittenTable(folder / "orders")
    table.append(3)
    settings = decider_settings(redis_server.url, roots=(folder.as_uri(),))
    live = LiveDecider(settings).start()
    live.register(table.path, NAME)
    yield live
    live.close()


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_a_made_up_call_is_answered_as_described(decider: LiveDecider, path: str, method: str) -> None:
    operation = SCHEMA[path][method]
    cases = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    if operation.body or path != path.partition("{")[0]:
        cases |= operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    answers: Counter[int] = Counter()

    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(cases, st.booleans(), st.sampled_from(SAMPLES))
    def call(case: Any, is_known: bool, sample: Any) -> None:
        if is_known and "name" in (case.path_parameters or {}) and method != "delete":
            case.path_parameters["name"] = NAME
        if is_known and path.startswith("/v1/events") and method == "post":
            case.body = sample.body
            case.path_parameters = {"source": sample.source} if case.path_parameters else {}
        if is_known and (method, path) == ("post", "/v1/tables"):
            case.body = {"location": f"{decider.settings.locations.roots[0]}/orders", "name": NAME}
        answer = case.call(base_url=decider.url)
        answers[answer.status_code] += 1
        case.validate_response(answer, checks=CHECKS)

    call()
    decider.drain()
    print(method, path, dict(answers))
    assert answers
