"""A table is served where the catalog is believed, under the name that was asked for, and with commits in its log."""

from typing import Any

import pytest

from shared.errors import LakewrightError, PermanentError, Unsupported
from shared.paths.boundary import Boundary
from shared.unity.table_info import UnityTable, decode_table, is_served
from tests.support.unity_samples import sample, table_answer

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
