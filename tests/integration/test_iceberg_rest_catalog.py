"""A decider on a REST catalog, which is a process of its own: discovery, following, and what a refusal of it means."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from decider.formats.iceberg.table import IcebergFormat, IcebergSettings
from shared.errors import NoTable, PermanentError, RetryableError
from shared.formats.options import FormatOptions
from tests.contract.formats.worlds import access
from tests.support.event_samples import SAMPLES
from tests.support.iceberg_rest_lake import ICEBERGS, SCHEMA, SERVERS, RestLake, rest_lake
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.proxy import TcpProxy
from tests.support.waiting import until

pytestmark = [pytest.mark.redis, pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")]

PLACE = "catalog://lake/db/t"


@pytest.fixture(params=SERVERS)
def lake(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RestLake]:
    with rest_lake(tmp_path, request.param) as running:
        yield running


def test_a_table_of_a_rest_catalog_is_discovered_followed_and_decided(lake: RestLake, redis_url: str) -> None:
    lake.make(3)
    formats = FormatOptions({"lake": lake.options})
    with LiveDecider(decider_settings(redis_url, roots=("catalog://lake",), formats=formats)) as decider:
        decider.run(decider.services.requests.discovery.run_once())
        decider.drain()
        (table,) = decider.get("/v1/tables")["tables"]
        assert (table["name"], table["location"]) == ("db.t", PLACE)
        assert [state.files for state in decider.partitions("db.t").values()] == [3]
        for number in range(3, 10):
            lake.append(number * 10)
        decider.sweep()
        assert [state.files for state in decider.partitions("db.t").values()] == [10]
        assert decider.get("/v1/tables/db.t")["state"]["rebuilds"] == 0


@pytest.mark.parametrize("lake", [pytest.param(ICEBERGS, marks=pytest.mark.long("iceberg"))], indirect=True)
def test_tables_of_nested_namespaces_are_discovered_however_the_server_separates_names(
    lake: RestLake, redis_url: str
) -> None:
    """Iceberg's server asks its clients to separate them by a dot (`namespace-separator`)."""
    for name in [("a",), ("a", "b"), ("a", "b", "c")]:
        lake.catalog.create_namespace(name)
        lake.catalog.create_table((*name, "t"), SCHEMA).append(pa.table({"id": [1]}, schema=SCHEMA))
    formats = FormatOptions({"lake": lake.options})
    with LiveDecider(decider_settings(redis_url, roots=("catalog://lake",), formats=formats)) as decider:
        decider.run(decider.services.requests.discovery.run_once())
        decider.drain()
        found = {table["name"]: table["location"] for table in decider.get("/v1/tables")["tables"]}
        assert found == {
            "a.t": "catalog://lake/a/t",
            "a.b.t": "catalog://lake/a/b/t",
            "a.b.c.t": "catalog://lake/a/b/c/t",
        }
        assert {sum(one.files for one in decider.partitions(name).values()) for name in found} == {1}


@pytest.mark.long("iceberg")
def test_a_decider_gets_tokens_by_oauth2_and_new_ones_when_they_are_refused(lake: RestLake, redis_url: str) -> None:
    lake.make(3)
    formats = FormatOptions({"lake": lake.oauth()})
    with LiveDecider(decider_settings(redis_url, roots=("catalog://lake",), formats=formats)) as decider:
        for turn in range(2):
            decider.run(decider.services.requests.discovery.run_once())
            decider.drain()
            assert [state.files for state in decider.partitions("db.t").values()] == [3 + turn]
            lake.append(30)
            lake.revoke()
            decider.sweep()
            assert [state.files for state in decider.partitions("db.t").values()] == [4 + turn]


def event_of(kind: str, table: str) -> dict[str, object]:
    """Return the sample of a catalog's event, as of a table of the namespace `db`."""
    body = dict(next(sample.body for sample in SAMPLES if sample.file == kind))
    match kind:
        case "lakekeeper":
            return body | {"namespace": "db", "name": table}
        case "iceberg":
            return body | {"table-name": f"rest.db.{table}"}
        case "glue":
            return body | {"detail": body["detail"] | {"databaseName": "db", "tableName": table}}
        case _:
            return body | {"table_identifier": f"db.{table}"}


@pytest.mark.parametrize("kind", ["lakekeeper", "iceberg", "polaris_webhook", "glue"])
def test_an_event_of_a_catalog_registers_and_refreshes_its_table(lake: RestLake, redis_url: str, kind: str) -> None:
    lake.make(3)
    formats = FormatOptions({"lake": lake.options, "other": lake.options})
    # The catalog is not discovered, and in the second one no root holds the namespace.
    roots = ("catalog://lake", "catalog://other/elsewhere")
    with LiveDecider(decider_settings(redis_url, roots=roots, formats=formats)) as decider:
        answer = decider.post("/v1/events", [event_of(kind, "t"), event_of(kind, "none")]).json()
        assert (answer["accepted"], answer["ignored"]) == (1, [{"reason": "unknown_table", "count": 1}])
        decider.drain()
        (table,) = decider.get("/v1/tables")["tables"]
        assert (table["name"], table["location"]) == ("db.t", PLACE)
        lake.append(30)
        assert decider.post("/v1/events", event_of(kind, "t")).json()["accepted"] == 1
        decider.drain()
        assert [state.files for state in decider.partitions("db.t").values()] == [4]


def test_metadata_files_in_a_bucket_refresh_the_table_that_has_its_metadata_there(
    lake: RestLake, redis_url: str, tmp_path: Path
) -> None:
    lake.make(1)
    settings = decider_settings(
        redis_url,
        roots=("catalog://lake",),
        buckets={"b": tmp_path.as_uri()},
        formats=FormatOptions({"lake": lake.options}),
    )
    with LiveDecider(settings) as decider:

        def posted(folder: str) -> tuple[int, list[dict[str, object]]]:
            about = {"bucket": {"name": "b"}, "object": {"key": f"{folder}/00001-a.metadata.json"}}
            answer = decider.post("/v1/events", {"Records": [{"eventName": "ObjectCreated:Put", "s3": about}]}).json()
            return answer["accepted"], answer["ignored"]

        unknown = (0, [{"reason": "iceberg_metadata_file", "count": 1}])
        assert posted("db/t/metadata") == unknown
        decider.run(decider.services.requests.discovery.run_once())
        decider.drain()
        lake.append(10)
        assert posted("db/t/metadata") == (1, [])
        assert posted("db/other/metadata") == unknown
        decider.drain()
        assert [state.files for state in decider.partitions("db.t").values()] == [2]


@pytest.mark.parametrize("credential", ["token", "oauth2"])
def test_a_catalog_that_takes_connections_and_never_answers_is_given_up_and_asked_again(
    lake: RestLake, monkeypatch: pytest.MonkeyPatch, credential: str
) -> None:
    """The first answers are the configuration and, with OAuth2, the token: they have limits as all others do."""
    lake.make(3)
    monkeypatch.setattr("decider.formats.iceberg.rest_client.REQUEST_TIMEOUT_S", (1.0, 1.0))
    proxy = TcpProxy(int(lake.uri.rpartition(":")[2]))
    given = (
        lake.options if credential == "token" else lake.oauth() | {"oauth2-server-uri": f"{proxy.url}/v1/oauth/tokens"}
    )
    try:
        reader = IcebergFormat(access(), IcebergSettings({"lake": given | {"uri": proxy.url}})).open(PLACE)
        for _ in range(2):
            proxy.stall()
            with pytest.raises(RetryableError, match="catalog lake"):
                asyncio.run(reader.snapshot())
            proxy.restore()
            assert len(asyncio.run(reader.snapshot()).files) == 3
    finally:
        proxy.close()


def test_a_catalog_that_never_answers_delays_no_table_of_another(
    lake: RestLake, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of its tables are to be read than a decider reads at once; one of Delta is followed meanwhile."""
    monkeypatch.setattr("decider.formats.iceberg.rest_client.REQUEST_TIMEOUT_S", (3600.0, 3600.0))
    lake.catalog.create_namespace("db")
    proxy = TcpProxy(int(lake.uri.rpartition(":")[2]))
    names = [f"t{number}" for number in range(20)]
    for name in names:
        lake.catalog.create_table(f"db.{name}", SCHEMA).append(pa.table({"id": [1]}, schema=SCHEMA))
    formats = FormatOptions({"lake": lake.options | {"uri": proxy.url}})
    roots = ("catalog://lake", str(tmp_path / "delta"))
    other = WrittenTable(tmp_path / "delta" / "orders")
    decider = LiveDecider(decider_settings(redis_url, roots=roots, formats=formats)).start()
    try:
        decider.run(decider.services.requests.discovery.run_once())
        decider.drain()
        assert {table["name"] for table in decider.get("/v1/tables")["tables"]} >= {"orders", "db.t0", "db.t19"}
        proxy.stall()
        for name in names:
            assert decider.post("/v1/events", event_of("lakekeeper", name)).json()["accepted"] == 1
        for _ in range(2):
            other.append()
            assert decider.post("/v1/events", {"table": "orders", "version": other.version}).json()["accepted"] == 1
            until("the other is read", lambda: decider.get("/v1/tables/orders")["state"]["version"] == other.version)
        proxy.restore()
        lake.catalog.load_table("db.t0").append(pa.table({"id": [2]}, schema=SCHEMA))
        decider.post("/v1/events", event_of("lakekeeper", "t0")).raise_for_status()

        def files() -> int:
            return sum(state.files for state in decider.partitions("db.t0").values())

        until("a table of the catalog is read once it answers", lambda: files() == 2, seconds=60)
    finally:
        proxy.close()
        decider.close()


def test_a_refusal_a_silence_and_a_missing_table_are_different_errors(lake: RestLake) -> None:
    lake.make(1)
    cases: list[tuple[dict[str, str], str, type[Exception]]] = [
        ({"token": "another"}, PLACE, PermanentError),
        ({"token": "", **lake.oauth("lakewright:another-secret")}, PLACE, PermanentError),
        ({"uri": "http://127.0.0.1:9"}, PLACE, RetryableError),
        ({}, "catalog://lake/db/none", NoTable),
        ({}, "catalog://lake/none/t", NoTable),
    ]
    for options, place, kind in cases:
        reader = IcebergFormat(access(), IcebergSettings({"lake": lake.options | options})).open(place)
        with pytest.raises(kind) as raised:
            asyncio.run(reader.snapshot())
        assert type(raised.value) is kind, (options, place)
