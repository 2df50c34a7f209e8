"""What a Unity catalog is asked, and what its listings and credentials lead to."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from shared.errors import InvalidInput, NoTable, PermanentError, RetryableError
from shared.paths.boundary import Boundary
from shared.unity import catalog as module
from shared.unity.catalog import UnityCatalog
from shared.unity.exchange import UnityAnswer, UnityRequest
from shared.unity.table_info import UnityTable
from shared.unity.temporary_credentials import TemporaryCredentials
from tests.support.unity_samples import sample, table_answer

S3_TABLE = UnityTable("main.sales.orders", "id-1", "s3://lake/orders")


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
    assert (request.method, request.path, request.body) == ("GET", "tables/main.sales.orders%2F2", None)
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


def test_credentials_to_read_are_asked_for_by_id() -> None:
    asked = Asked(lambda _: sample("aws_credentials"))
    assert asked.catalog.credentials(S3_TABLE) == TemporaryCredentials(
        {"access_key_id": "accessKey0", "secret_access_key": "secretKey0", "token": "sessionToken0"}, 1745238786765
    )
    (request,) = asked.requests
    assert (request.method, request.path) == ("POST", "temporary-table-credentials")
    assert request.body == {"table_id": "id-1", "operation": "READ"}


@pytest.mark.parametrize(
    ("location", "name", "values"),
    [
        ("abfss://c@a.dfs.core.windows.net/t", "azure_credentials", {"sas_token": "test-sas-token"}),
        ("gs://lake/t", "gcp_credentials", {"token": "test-token"}),
        ("file:///lake/t", "no_credentials", {}),
        ("s3://lake/t", "no_credentials", {}),
    ],
)
def test_each_cloud_has_its_own_credentials(location: str, name: str, values: dict[str, str]) -> None:
    asked = Asked(lambda _: sample(name))
    found = asked.catalog.credentials(UnityTable("a.b.c", "id", location))
    assert found.values == values
    assert (found.expires_ms is None) == (not values)


def test_keys_of_a_server_without_roles_have_neither_token_nor_end() -> None:
    own = {"aws_temp_credentials": {"access_key_id": "k", "secret_access_key": "s", "session_token": ""}}
    found = Asked(lambda _: own).catalog.credentials(S3_TABLE)
    assert found == TemporaryCredentials({"access_key_id": "k", "secret_access_key": "s", "token": None}, None)


@pytest.mark.parametrize(
    "answer",
    [
        {"gcp_oauth_token": {"oauth_token": "secret-word"}},
        {"aws_temp_credentials": "secret-word"},
        {"aws_temp_credentials": {"secret_access_key": "secret-word"}},
        {"aws_temp_credentials": {"access_key_id": 5, "secret_access_key": "secret-word", "session_token": "t"}},
        {"aws_temp_credentials": {"access_key_id": "k", "secret_access_key": "secret-word", "session_token": 5}},
        {**sample("aws_credentials"), "expiration_time": "secret-word"},
        {**sample("aws_credentials"), "azure_user_delegation_sas": {"sas_token": "secret-word"}},
    ],
)
def test_damaged_credentials_are_an_error_that_does_not_show_them(answer: Any) -> None:
    with pytest.raises(PermanentError) as found:
        Asked(lambda _: answer).catalog.credentials(S3_TABLE)
    assert "secret-word" not in str(found.value)


def test_credentials_are_not_shown() -> None:
    found = Asked(lambda _: sample("aws_credentials")).catalog.credentials(S3_TABLE)
    assert "secretKey0" not in repr(found)
    assert "secretKey0" not in repr(UnityAnswer(200, json.dumps(sample("aws_credentials")).encode()))
