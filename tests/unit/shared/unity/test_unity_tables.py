"""What a Unity catalog is asked, and which of its tables are served, under which name."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from shared.errors import InvalidInput, LakewrightError, NoTable, PermanentError, RetryableError, Unsupported
from shared.paths.boundary import Boundary
from shared.unity import catalog as module
from shared.unity.catalog import UnityCatalog
from shared.unity.exchange import UnityAnswer, UnityRequest
from shared.unity.table_info import UnityTable, decode_table, is_served
from tests.support.unity_server import sample, table_answer

NAME = ("main", "sales", "orders")
LAKE = Boundary(roots=("file:///lake", "s3://lake/sales"))


def decoded(location: str = "file:///lake/orders", boundary: Boundary = LAKE, **fields: Any) -> UnityTable:
    return decode_table(table_answer("main.sales.orders", location) | fields, NAME, "reading", boundary)


def refused(location: str = "file:///lake/orders", boundary: Boundary = LAKE, **fields: Any) -> LakewrightError:
    with pytest.raises(LakewrightError) as found:
        decoded(location, boundary, **fields)
    return found.value


def test_the_documented_answer_is_a_table() -> None:
    found = decode_table(sample("table"), ("unity", "default", "my_new_table"), "reading", Boundary(("file:///Users",)))
    assert found == UnityTable(
        "unity.default.my_new_table", "53b8c66f-01c8-41bc-a762-edbe20aa7813", "file:///Users/user/tmp"
    )


def test_a_managed_table_whose_commits_are_in_its_log_is_served() -> None:
    name = ("unity", "default", "marksheet")
    assert decode_table(sample("managed_table"), name, "reading", Boundary(("file:///etc/data",))).full_name


@pytest.mark.parametrize(
    ("location", "place"),
    [("s3a://lake/sales/orders/", "s3://lake/sales/orders"), ("file:/lake/a%20b", "file:///lake/a%20b")],
)
def test_a_place_is_spelled_as_everywhere(location: str, place: str) -> None:
    assert decoded(location).storage_location == place


@pytest.mark.parametrize(
    "location",
    ["file:///other/orders", "file:///lake-private/orders", "s3://lake/raw/orders", "s3://lake", "gs://lake/sales"],
)
def test_a_place_in_which_the_catalog_is_not_believed_is_refused(location: str) -> None:
    """Whoever may register a table chooses its location; our credentials reach further than theirs."""
    problem = refused(location)
    assert isinstance(problem, Unsupported)
    assert "`locations` in LAKEWRIGHT_CATALOGS" in str(problem)
    assert problem.field == "location"


def test_a_link_out_of_the_place_is_refused() -> None:
    linked = Boundary(("file:///lake",), real_path=lambda path: path.replace("/lake/orders", "/private/orders"))
    problem = refused(boundary=linked)
    assert isinstance(problem, Unsupported)
    assert "/private/orders" in str(problem)


@pytest.mark.parametrize("location", ["orders", "file:///lake/../etc", "hdfs://host/orders"])
def test_a_location_that_cannot_be_used_is_an_error(location: str) -> None:
    assert isinstance(refused(location), PermanentError)


@pytest.mark.parametrize("kind", ["VIEW", "METRIC_VIEW", "MATERIALIZED_VIEW", "STREAMING_TABLE", "A_LATER_ONE"])
def test_only_tables_with_files_of_their_own_are_served(kind: str) -> None:
    problem = refused(table_type=kind)
    assert isinstance(problem, Unsupported)
    assert (problem.field, kind in str(problem)) == ("table_type", True)
    assert not is_served(table_answer("main.sales.orders", "file:///lake", table_type=kind))


@pytest.mark.parametrize("source", ["PARQUET", "CSV", "ICEBERG", "delta", None])
def test_only_delta_tables_are_served(source: str | None) -> None:
    problem = refused(data_source_format=source)
    assert isinstance(problem, Unsupported)
    assert (problem.field, str(source or "none") in str(problem)) == ("data_source_format", True)
    assert not is_served(table_answer("main.sales.orders", "file:///lake", data_source_format=source))


@pytest.mark.parametrize(
    "name",
    [
        "delta.feature.catalogManaged",
        "delta.feature.catalogOwned",
        "delta.feature.catalogOwned-preview",
        "delta.feature.coordinatedCommits-preview",
        "delta.coordinatedCommits.commitCoordinator-preview",
    ],
)
def test_a_table_whose_commits_the_catalog_makes_is_refused(name: str) -> None:
    problem = refused(table_type="MANAGED", properties={"a": "b", name: "supported"})
    assert isinstance(problem, Unsupported)
    assert (problem.field, name in str(problem)) == ("properties", True)


@pytest.mark.parametrize("properties", [None, {}, {"delta.feature.deletionVectors": "supported"}, []])
def test_other_properties_do_not_matter(properties: Any) -> None:
    assert decoded(properties=properties).full_name == "main.sales.orders"


@pytest.mark.parametrize("field", ["name", "schema_name", "catalog_name"])
def test_an_answer_about_another_table_is_refused(field: str) -> None:
    assert isinstance(refused(**{field: "other"}), PermanentError)


def test_another_spelling_of_the_name_is_refused() -> None:
    """Two spellings of one table would be two tables with two states."""
    problem = refused(name="Orders")
    assert isinstance(problem, Unsupported)
    assert "main.sales.Orders" in str(problem)


@pytest.mark.parametrize("field", ["name", "table_type", "storage_location", "table_id"])
@pytest.mark.parametrize("value", [None, "", 5])
def test_an_answer_without_a_field_that_is_needed_is_an_error(field: str, value: object) -> None:
    problem = refused(**{field: value})
    assert isinstance(problem, PermanentError)
    assert field in str(problem)


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
