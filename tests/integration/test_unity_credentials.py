"""A decider reads a table on S3 with the credentials that its Unity catalog gives, and keeps none of them."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from redis import Redis

from services.settings import format_options
from shared.paths.store_options import StoreOptions
from tests.support.live_decider import LiveDecider, decider_settings
from tests.support.s3_server import KEYS, S3Server
from tests.support.unity_samples import sample
from tests.support.unity_server import UnityServer, unity_server

pytestmark = pytest.mark.redis

NAME = "main.sales.orders"
VENDED = "key-of-the-table"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    server = S3Server("vended")
    server.gate.keys.add(VENDED)
    yield server
    server.close()


@pytest.fixture
def unity(tmp_path: Path) -> Iterator[UnityServer]:
    with unity_server() as server:
        server.put(NAME, f"s3://vended/unity/{tmp_path.name}", "id-1")
        yield server


def append(unity: UnityServer, s3: S3Server) -> None:
    location = unity.tables[NAME]["storage_location"]
    write_deltalake(location, pa.table({"id": [1]}), mode="append", storage_options=s3.options())


def credentials(valid_s: float) -> dict[str, Any]:
    given = {
        "access_key_id": VENDED,
        "secret_access_key": "secret-of-the-table",
        "session_token": "session-of-the-table",
    }
    return sample("aws_credentials") | {
        "aws_temp_credentials": given,
        "expiration_time": int((time.time() + valid_s) * 1000),
    }


def started(unity: UnityServer, s3: S3Server, redis_url: str, **options: str) -> LiveDecider:
    """Start a decider that has keys of its own to the store."""
    catalogs = {"unity": unity.options("s3://vended/unity", **options)}
    settings = decider_settings(
        redis_url,
        store_options=StoreOptions({"": s3.options()}),
        formats=format_options({"LAKEWRIGHT_CATALOGS": json.dumps(catalogs)}),
    )
    return LiveDecider(settings).start()


def register(decider: LiveDecider) -> dict[str, Any]:
    answer = decider.post("/v1/tables", {"location": "catalog://unity/main/sales/orders", "name": NAME, "wait_s": 20})
    found: dict[str, Any] = answer.json()["reading"]
    return found


def test_a_table_is_read_with_its_own_credentials_until_they_expire(
    unity: UnityServer, s3: S3Server, redis_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        append(unity, s3)
    unity.credentials = credentials(3_600)
    s3.gate.seen.clear()
    with closing(started(unity, s3, redis_url, credentials="vended")) as decider:
        assert (register(decider)["version"], register(decider)["refusal"]) == (2, None)
        assert {seen.key for seen in s3.gate.seen} == {VENDED}
        for turn in range(2):
            append(unity, s3)
            decider.sweep()
            assert [state.files for state in decider.partitions(NAME).values()] == [4 + turn]
        assert unity.bodies == [{"table_id": "id-1", "operation": "READ"}]
        shown = json.dumps(decider.get(f"/v1/tables/{NAME}")) + "".join(_texts(redis_url)) + "".join(capfd.readouterr())
    assert "session-of-the-table" not in shown
    assert "secret-of-the-table" not in shown


def test_credentials_that_expire_soon_are_requested_again(unity: UnityServer, s3: S3Server, redis_url: str) -> None:
    append(unity, s3)
    unity.credentials = credentials(60)
    with closing(started(unity, s3, redis_url, credentials="vended")) as decider:
        register(decider)
        asked = len(unity.bodies)
        unity.credentials = credentials(3_600)
        append(unity, s3)
        decider.sweep()
        assert [state.files for state in decider.partitions(NAME).values()] == [2]
        renewed = len(unity.bodies)
        assert renewed > asked
        append(unity, s3)
        decider.sweep()
        assert [state.files for state in decider.partitions(NAME).values()] == [3]
        assert len(unity.bodies) == renewed


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ("no_credentials", "`credentials` to `own`"),
        ("gcp_credentials", "gcp_oauth_token for a location that begins with s3:"),
    ],
)
def test_a_catalog_that_gives_none_that_fit_is_an_error_that_says_so(
    unity: UnityServer, s3: S3Server, redis_url: str, given: str, word: str
) -> None:
    unity.credentials = sample(given)
    with closing(started(unity, s3, redis_url, credentials="vended")) as decider:
        assert word in register(decider)["refusal"]["reason"]


def test_by_default_our_own_credentials_are_used(unity: UnityServer, s3: S3Server, redis_url: str) -> None:
    append(unity, s3)
    s3.gate.seen.clear()
    with closing(started(unity, s3, redis_url)) as decider:
        assert register(decider)["version"] == 0
        assert {seen.key for seen in s3.gate.seen} == {KEYS["access_key_id"]}
        assert unity.bodies == []


def _texts(redis_url: str) -> Iterator[str]:
    """Yield every value of Redis, as text."""
    with Redis.from_url(redis_url) as client:
        for key in client.scan_iter():
            yield str(client.dump(key))


def test_a_folder_needs_no_credentials(unity: UnityServer, redis_url: str, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "orders", pa.table({"id": [1]}))
    unity.put(NAME, (tmp_path / "orders").as_uri(), "id-1")
    catalogs = {"unity": unity.options(tmp_path.as_uri(), credentials="vended")}
    read = format_options({"LAKEWRIGHT_CATALOGS": json.dumps(catalogs)})
    with LiveDecider(decider_settings(redis_url, formats=read)) as decider:
        assert register(decider)["version"] == 0
        assert unity.bodies == []
