"""What a Unity catalog is asked, and what its listings lead to."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from shared.errors import InvalidInput, NoTable, PermanentError, RetryableError
from shared.paths.boundary import Boundary
from shared.unity import catalog as module
from shared.unity.catalog import UnityCatalog
from shared.unity.exchange import UnityAnswer, UnityRequest
from tests.support.unity_samples import sample, table_answer


class Asked:
    """A catalog whose answers a test gives, and the requests that it got."""

    def __init__(self, answer: Callable[[UnityRequest], Any], status: int = 200) -> None:
        self.requests: list[UnityRequest] = []
        self._answer = answer
        self._status = status
        self.catalog = UnityCatalog("unity", self.send, Boundary(roots=("file:///lake", "s3://lake")))

    def send(self, request: UnityRequest) -> UnityAnswer:
        self.requests.append(request)
        return UnityAnswer(self._status, json.dumps(self._answer(request)).encode())


def test_a_table_is_asked_for_by_its_full_name_as_what_it_is() -> None:
    asked = Asked(lambda _: table_answer("main.sales.orders/2", "s3://lake/orders"))
    assert asked.catalog.table(("main", "sales", "orders/2")).storage_location == "s3://lake/orders"
    (request,) = asked.requests
    assert request.path == "tables/main.sales.orders%2F2"
    assert set(request.query.values()) == {"false"}


@pytest.mark.parametrize("name", [(), ("a",), ("a", "b"), ("a", "b", "c", "d"), ("a", "", "c"), ("a", "b.c", "d")])
def test_a_name_that_no_table_can_have_is_not_asked_for(name: tuple[str, ...]) -> None:
    asked = Asked(lambda _: {})
    with pytest.raises(InvalidInput, match="CATALOG/SCHEMA/TABLE"):
        asked.catalog.table(name)
    assert asked.requests == []


def test_a_table_that_is_not_there_is_missing() -> None:
    with pytest.raises(NoTable):
        Asked(lambda _: sample("table_not_found"), 404).catalog.table(("unity", "default", "my_new_table"))


def test_the_documented_listing_is_read() -> None:
    asked = Asked(lambda _: sample("tables"))
    names = ("marksheet", "marksheet_uniform", "numbers", "user_countries")
    assert asked.catalog.tables("unity", "default") == names
    (request,) = asked.requests
    assert request.query == {"catalog_name": "unity", "schema_name": "default", "omit_columns": "true"}


def test_tables_that_cannot_be_served_are_not_listed() -> None:
    found = [
        table_answer("a.b.t", "file:///lake/t"),
        table_answer("a.b.v", "file:///lake/v", table_type="VIEW"),
        table_answer("a.b.p", "file:///lake/p", data_source_format="PARQUET"),
    ]
    assert Asked(lambda _: {"tables": found}).catalog.tables("a", "b") == ("t",)


def test_all_pages_are_read_also_after_an_empty_one() -> None:
    pages = {
        None: {"catalogs": [{"name": "a"}], "next_page_token": "2"},
        "2": {"next_page_token": "3"},
        "3": {"catalogs": [{"name": "b"}], "next_page_token": ""},
    }
    asked = Asked(lambda request: pages[request.query.get("page_token")])
    assert asked.catalog.catalogs() == ("a", "b")
    assert len(asked.requests) == 3


def test_schemas_are_those_of_a_catalog() -> None:
    asked = Asked(lambda _: {"schemas": [sample("schema")], "next_page_token": None})
    assert asked.catalog.schemas("unity") == ("default",)
    assert asked.requests[0].query == {"catalog_name": "unity"}


def test_pages_that_lead_back_are_an_error() -> None:
    following = {None: "1", "1": "2", "2": "1"}
    asked = Asked(lambda request: {"schemas": [], "next_page_token": following[request.query.get("page_token")]})
    with pytest.raises(RetryableError, match="read before"):
        asked.catalog.schemas("main")
    assert len(asked.requests) == 3


def test_a_listing_that_never_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAGES", 5)
    asked = Asked(lambda _: {"schemas": [], "next_page_token": str(len(asked.requests))})
    with pytest.raises(PermanentError, match="more than 5 pages"):
        asked.catalog.schemas("main")
    assert len(asked.requests) == 5


@pytest.mark.parametrize("answer", [{"schemas": {}}, {"schemas": [1]}, {"schemas": [{"name": 5}]}, {"schemas": [{}]}])
def test_a_damaged_listing_is_an_error(answer: Any) -> None:
    with pytest.raises(PermanentError, match="schemas"):
        Asked(lambda _: answer).catalog.schemas("main")


def test_a_page_token_that_is_no_text_is_an_error() -> None:
    with pytest.raises(PermanentError, match="next_page_token"):
        Asked(lambda _: {"schemas": [], "next_page_token": 5}).catalog.schemas("main")
