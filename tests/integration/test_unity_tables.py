"""A decider and a Unity catalog over HTTP, which answers as the samples of its API do: tables, and each failure."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from services.catalog_options import UnityClient
from services.settings import format_options
from shared import bounded_answer
from shared.errors import PermanentError, RetryableError
from shared.unity.exchange import UnityRequest
from shared.unity.options import UnityOptions
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.unity_server import PREFIX, TOKEN, UnityServer, unity_server

pytestmark = pytest.mark.redis

PLACE = "catalog://unity/main/sales/orders"
FULL_NAME = "main.sales.orders"


@pytest.fixture
def unity() -> Iterator[UnityServer]:
    with unity_server() as server:
        yield server


def formats(unity: UnityServer, *locations: str, **more: str) -> Any:
    options = {"unity": unity.options(*locations, **more)}
    return format_options({"LAKEWRIGHT_CATALOGS": json.dumps(options)})


@pytest.fixture
def named(unity: UnityServer, redis_url: str, tmp_path: Path) -> Iterator[LiveDecider]:
    """A decider whose only root is the catalog, which is believed in tables below the folder of the test."""
    settings = decider_settings(
        redis_url,
        roots=("catalog://unity",),
        buckets={"lake": tmp_path.as_uri()},
        formats=formats(unity, tmp_path.as_uri()),
    )
    with LiveDecider(settings) as decider:
        yield decider


@pytest.fixture
def orders(unity: UnityServer, tmp_path: Path) -> WrittenTable:
    table = WrittenTable(tmp_path / "orders")
    unity.put(FULL_NAME, table.path.as_uri(), "id-1")
    return table


def discover(decider: LiveDecider) -> dict[str, str]:
    """Scan the catalog, and return the locations of all tables by their names."""
    decider.run(decider.services.requests.discovery.run_once())
    decider.drain()
    return {table["name"]: table["location"] for table in decider.get("/v1/tables")["tables"]}


def refusal(decider: LiveDecider, name: str = FULL_NAME) -> dict[str, Any] | None:
    found: dict[str, Any] | None = decider.get(f"/v1/tables/{name}")["refusal"]
    return found


def is_counted(decider: LiveDecider, table: WrittenTable) -> bool:
    return decider.partitions(FULL_NAME) == table.count_files()


def test_a_table_is_registered_by_its_name_and_followed(named: LiveDecider, orders: WrittenTable) -> None:
    answer = named.post("/v1/tables", {"location": PLACE, "name": FULL_NAME, "wait_s": 20}).json()
    assert (answer["location"], answer["reading"]["refusal"], answer["reading"]["error"]) == (PLACE, None, "")
    assert answer["reading"]["version"] == orders.version
    orders.append(6)
    named.sweep()
    assert is_counted(named, orders)
    assert named.get(f"/v1/tables/{FULL_NAME}")["state"]["rebuilds"] == 0
    assert named.post(f"/v1/tables/{FULL_NAME}/optimize", {}).json()["jobs"]
    assert named.get(f"/v1/tables/{FULL_NAME}/optimizations")["optimizations"] == []


@pytest.mark.usefixtures("orders")
def test_delta_tables_of_the_catalog_are_discovered_page_by_page(
    named: LiveDecider, unity: UnityServer, tmp_path: Path
) -> None:
    for number in range(5):
        table = WrittenTable(tmp_path / f"t{number}")
        unity.put(f"main.raw.t{number}", table.path.as_uri(), f"id-{number}")
    unity.put("main.raw.view", "file:///v", table_type="VIEW")
    unity.put("main.raw.csv", "file:///c", data_source_format="CSV")
    found = discover(named)
    assert found == {FULL_NAME: PLACE} | {f"main.raw.t{n}": f"catalog://unity/main/raw/t{n}" for n in range(5)}
    assert {table["tenant"] for table in named.get("/v1/tables")["tables"]} == {"main"}


def test_an_event_of_the_store_refreshes_the_table_that_lies_there(named: LiveDecider, orders: WrittenTable) -> None:
    discover(named)
    orders.append(3)
    assert named.post("/v1/events", orders.event(orders.version)).json()["accepted"] == 1
    named.drain()
    assert is_counted(named, orders)
    assert len(named.get("/v1/tables")["tables"]) == 1, "it is not registered by its location, too"


def test_a_dropped_table_is_missing_and_comes_back(
    named: LiveDecider, unity: UnityServer, orders: WrittenTable
) -> None:
    discover(named)
    dropped = unity.tables.pop(FULL_NAME)
    named.sweep()
    found = refusal(named)
    assert found is not None
    assert (found["missing"], "TABLE_NOT_FOUND" in found["reason"]) == (True, True)
    assert named.partitions(FULL_NAME) == {}
    unity.tables[FULL_NAME] = dropped
    named.sweep()
    assert refusal(named) is None
    assert is_counted(named, orders)


def test_a_renamed_table_is_found_by_its_new_name(named: LiveDecider, unity: UnityServer, orders: WrittenTable) -> None:
    discover(named)
    del unity.tables[FULL_NAME]
    unity.put("main.sales.bookings", orders.path.as_uri(), "id-1")
    named.sweep()
    assert set(discover(named)) == {FULL_NAME, "main.sales.bookings"}
    found = refusal(named)
    assert found is not None
    assert found["missing"]
    assert named.partitions("main.sales.bookings") == orders.count_files()


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("table_id", ["id-1", "id-2"])
def test_a_name_that_leads_elsewhere_has_its_state_counted_again(
    named: LiveDecider, unity: UnityServer, tmp_path: Path, table_id: str
) -> None:
    """The new place has later versions, which are no changes of the table that was counted."""
    discover(named)
    other = WrittenTable(tmp_path / "elsewhere", seed=7)
    other.append(8)
    unity.put(FULL_NAME, other.path.as_uri(), table_id)
    named.sweep()
    assert is_counted(named, other)
    state = named.get(f"/v1/tables/{FULL_NAME}")["state"]
    assert state["rebuilds"] == 1
    other.append()
    named.sweep()
    assert is_counted(named, other)


def test_a_refusal_of_the_catalog_keeps_the_state(named: LiveDecider, unity: UnityServer, orders: WrittenTable) -> None:
    """A token that expired, or an address that leads to something else, is not a table that is gone."""
    discover(named)
    for fault, word in (
        ((403, b'{"error_code": "PERMISSION_DENIED", "message": "no"}'), "token"),
        ((404, b"<html>"), "uri"),
        ((200, b"<html>sign in</html>"), "uri"),
        ((302, b"http://127.0.0.1:1/"), "uri"),
    ):
        unity.fault = fault
        named.sweep()
        found = refusal(named)
        assert found is not None
        assert (found["missing"], f"`{word}` in LAKEWRIGHT_CATALOGS" in found["reason"]) == (False, True)
        assert is_counted(named, orders)
        unity.fault = None
        named.sweep()
        assert refusal(named) is None


def test_a_table_that_is_no_table_is_not_registered(named: LiveDecider) -> None:
    answer = named.post("/v1/tables", {"location": "catalog://unity/main/sales/none", "wait_s": 20})
    assert answer.status_code == 422
    assert "there is no table at catalog://unity/main/sales/none" in answer.text


ASK = UnityRequest("tables/a.b.c")


def client(uri: str, *, timeout_s: float = 30.0, token: str = TOKEN) -> UnityClient:
    return UnityClient("unity", UnityOptions(uri, ("file:///lake",), token, timeout_s=timeout_s))


@contextmanager
def raw_server(answer: bytes, *, then_closes: bool) -> Iterator[str]:
    """Serve one connection: send these bytes, and close it, or keep it open and silent."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        ended = threading.Event()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)
                if not then_closes:
                    ended.wait()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            thread.join()


def test_status_and_body_are_returned_whatever_they_are(unity: UnityServer) -> None:
    unity.put("a.b.c", "file:///lake/c")
    assert client(unity.uri).send(ASK).status == 200
    assert client(unity.uri).send(UnityRequest("tables/a.b.d")).status == 404
    assert client(unity.uri, token="").send(ASK).status == 401


def test_a_redirect_is_not_followed(unity: UnityServer) -> None:
    """The token would be sent to wherever it leads."""
    with unity_server() as other:
        unity.fault = (307, f"{other.uri}/tables/a.b.c".encode())
        assert client(unity.uri).send(ASK).status == 307
        assert other.requests.total() == 0
    assert unity.requests == {f"GET {PREFIX}/tables/a.b.c": 1}


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
def test_an_answer_that_does_not_come_to_its_end_is_asked_for_again(answer: bytes) -> None:
    for then_closes, timeout_s in ((True, 30.0), (False, 0.5)):
        with raw_server(answer, then_closes=then_closes) as uri, pytest.raises(RetryableError, match="catalog unity"):
            client(uri, timeout_s=timeout_s).send(ASK)


def test_a_server_that_is_not_there_is_asked_again() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(RetryableError, match=f"127.0.0.1:{port}: no answer"):
        client(f"http://127.0.0.1:{port}").send(ASK)


def test_an_answer_beyond_the_limit_is_not_read(unity: UnityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    unity.put("a.b.c", "file:///lake/c", comment="x" * 5_000)
    monkeypatch.setattr(bounded_answer, "MAX_ANSWER_BYTES", 4_000)
    with pytest.raises(PermanentError, match="more than 4000 bytes"):
        client(unity.uri).send(ASK)


def test_no_error_shows_the_token() -> None:
    for options in (UnityOptions("http://127.0.0.1:1", ("file:///lake",), "s3cret"),):
        with pytest.raises(RetryableError) as refused:
            UnityClient("unity", options).send(ASK)
        assert "s3cret" not in str(refused.value)
        assert "s3cret" not in repr(options)


def test_an_answer_that_comes_byte_by_byte_ends_at_the_time_limit() -> None:
    """Each part comes within the limit of the connection, and the answer as a whole does not."""
    ended = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not ended.wait(0.05):
                    connection.sendall(b" ")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with pytest.raises(RetryableError, match="took too long"):
                client(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_s=0.5).send(ASK)
        finally:
            ended.set()
            thread.join()
