"""A table on a real S3 server is kept compacted by its bucket's notifications, and commits there are made only once."""

import json
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from deltalake import DeltaTable

from decider.storage.object_reads import ReadMeter
from decider.storage.stores import ObjectStores
from shared.errors import PermanentError
from shared.paths.store_options import StoreOptions
from tests.support.delta_tables import open_log
from tests.support.go_programs import MINIO
from tests.support.minio import Minio
from tests.support.programs_on_s3 import run_on_s3
from tests.support.redis_server import RedisServer
from tests.support.s3_server import S3Server
from tests.support.s3_writer import rows
from tests.support.stack import Stack, free_port, s3_event
from tests.support.time_limits import scaled
from tests.support.waiting import until

pytestmark = [pytest.mark.s3, pytest.mark.e2e, pytest.mark.spark, pytest.mark.redis, pytest.mark.timeout(1_800)]

TOKEN = "a-token-of-thirty-two-characters"  # noqa: S105 - of a test
COMMITS, ROWS = 16, 200
VERSIONS = 60


@pytest.fixture
def minio(tmp_path: Path) -> Iterator[Minio]:
    """A server whose webhook is the decider's port, wherever that will be."""
    server = Minio(MINIO.binary(), tmp_path / "minio", token=TOKEN)
    yield server
    server.close()


@pytest.fixture
def stack(tmp_path: Path, minio: Minio, own_redis_server: RedisServer) -> Iterator[Stack]:
    """Decider and actor for tables in the bucket `lake` alone; neither sweep nor discovery finds what no event told."""
    port = free_port()
    minio.webhook = f"http://127.0.0.1:{port}/v1/events"
    environment = {
        "LAKEWRIGHT_ROOTS": "s3://lake",
        "LAKEWRIGHT_DISCOVER": "active",
        "LAKEWRIGHT_BUCKETS": "",
        "LAKEWRIGHT_TOKEN": TOKEN,
        "LAKEWRIGHT_SWEEP_S": "86400",
        "LAKEWRIGHT_DISCOVERY_S": "0",
        "LAKEWRIGHT_ALLOW_S3": "true",
        "LAKEWRIGHT_STORE_OPTIONS": json.dumps({"s3://": minio.options()}),
    }
    with Stack(tmp_path, own_redis_server, environment, port=port) as made:
        yield made


class Table:
    """A table in a bucket, seen by another reader and by the store itself."""

    def __init__(self, minio: Minio, bucket: str) -> None:
        self.location, self._minio, self._bucket = f"s3://{bucket}/sales/orders", minio, bucket

    def write(self, stack: Stack, *, first: int, commits: int) -> None:
        """Append commits from a process of its own, and wait for its end."""
        options = json.dumps(self._minio.options())
        about = ["--location", self.location, "--options", options, "--first", str(first)]
        amount = ["--commits", str(commits), "--rows", str(ROWS)]
        writer = stack.start("writer", ["-m", "tests.support.s3_writer", *about, *amount])
        assert writer.popen.wait(scaled(60)) == 0, writer.log.read_text()

    def read(self) -> DeltaTable:
        return DeltaTable(self.location, storage_options=self._minio.options())

    def own_commits(self) -> list[dict[str, Any]]:
        """Return the actions of each commit of ours, as the store holds them."""
        prefix, found = "sales/orders/_delta_log/", []
        listed = self._minio.client.list_objects_v2(Bucket=self._bucket, Prefix=prefix)["Contents"]
        for entry in listed:
            if entry["Key"].endswith(".json"):
                body = self._minio.client.get_object(Bucket=self._bucket, Key=entry["Key"])["Body"].read().decode()
                if "lakewright" in body:
                    found.append([json.loads(line) for line in body.splitlines()])
        return found


@pytest.mark.long("s3")
def test_a_table_is_compacted_through_notifications_alone_and_other_buckets_are_left_alone(
    minio: Minio, stack: Stack
) -> None:
    stack.actor()
    stack.decider()
    minio.start()
    for bucket in ("lake", "other"):
        minio.make_bucket(bucket, notifies=True)
    api = httpx.Client(base_url=stack.url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=scaled(10))
    table, stranger = Table(minio, "lake"), Table(minio, "other")
    table.write(stack, first=0, commits=COMMITS)
    stranger.write(stack, first=0, commits=6)
    until("our first commit", table.own_commits, seconds=120)
    # While the actor works, the writer goes on: both commit by conditional puts.
    table.write(stack, first=COMMITS, commits=4)

    def at_rest() -> bool:
        (known,) = api.get("/v1/tables").json()["tables"]
        status = api.get("/v1/status").json()
        cursor = api.get(f"/v1/tables/{known['name']}").json()["state"]
        depth = status["queue"]["depth"]
        return cursor["version"] == table.read().version() and not any(
            depth[state] for state in ("queued", "delayed", "leased")
        )

    until("all work is done", at_rest, seconds=120)
    found = table.read().to_pyarrow_table().sort_by("id").to_pydict()
    expected = [rows(number, ROWS).to_pydict() for number in range(COMMITS + 4)]
    assert found["id"] == [key for one in expected for key in one["id"]]
    assert found["value"] == [value for one in expected for value in one["value"]]
    assert len(table.read().file_uris()) < 2 * (COMMITS + 4)
    for actions in table.own_commits():
        files = [action[kind] for action in actions for kind in ("add", "remove") if kind in action]
        assert files
        assert not any(file["dataChange"] for file in files)

    before = (table.read().version(), stranger.read().version(), api.get("/v1/tables").json())
    forged = s3_event(f"sales/orders/_delta_log/{5:020d}.json", "other")
    answer = api.post("/v1/events", json=forged)
    assert answer.json() == {"accepted": 0, "ignored": [{"reason": "outside_allowed_roots", "count": 1}]}
    assert httpx.post(f"{stack.url}/v1/events", json=forged, timeout=scaled(20)).status_code == httpx.codes.UNAUTHORIZED
    assert (table.read().version(), stranger.read().version(), api.get("/v1/tables").json()) == before
    assert not stranger.own_commits()
    assert stranger.read().version() == 5
    api.close()


@pytest.mark.long("s3")
def test_each_version_is_won_by_exactly_one_writer(minio: Minio) -> None:
    """What makes S3 safe: the server refuses the second of two commits of one version, and both hear the truth."""
    minio.webhook = ""
    minio.start().make_bucket("lake")
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    reported = run_on_s3("race", {"": minio.options()}, VERSIONS, seed)
    ours, theirs = set(reported["ours"]), set(reported["theirs"])
    assert ours, "the JVM never won: there was no race"
    assert theirs, "the other writer never won: there was no race"
    assert not ours & theirs
    assert ours | theirs == set(range(VERSIONS))
    for version in range(VERSIONS):
        key = f"race/_delta_log/{version:020d}.json"
        content = minio.client.get_object(Bucket="lake", Key=key)["Body"].read()
        assert content == (b"ours\n" if version in ours else b"theirs")
    assert (reported["again"], reported["overwritten"]) == ("FileAlreadyExistsException", "")
    assert reported["cut"], "half a commit was taken for a whole one"
    assert "Contents" not in minio.client.list_objects_v2(Bucket="lake", Prefix="cut/"), "half a commit is there"


@pytest.mark.long("s3")
def test_a_bucket_whose_server_ignores_the_condition_is_refused_and_each_is_asked_once(minio: Minio) -> None:
    """MinIO keeps the condition and so does moto; before one of moto's buckets the gate hides it."""
    minio.webhook = ""
    minio.start().make_bucket("lake")
    with closing(S3Server("kept")) as moto:
        moto.make_bucket("deaf")
        moto.gate.seen.clear()
        moto.gate.deaf = "/deaf/"
        kept, deaf, lake = "s3://kept/orders", "s3a://deaf/orders", "s3://lake/orders"
        options = {"": moto.options(), "s3://lake": minio.options()}
        stated = run_on_s3("ask", options, kept, deaf, deaf, kept, lake)
        assert len(stated[deaf]) == 2
        assert all("replaces an object despite the condition" in text for text in stated[deaf]), stated
        # There is no table: that was found out after the question.
        assert not any("replaces an object" in text for place in (kept, lake) for text in stated.get(place, [])), stated
        puts = [one.path for one in moto.gate.seen if one.method == "PUT" and "/.lakewright-probe-" in one.path]
        assert [sum(path.startswith(start) for path in puts) for start in ("/kept/", "/deaf/")] == [2, 4]
        assert not [key for bucket in ("kept", "deaf") for key in moto.keys(bucket) if "probe" in key]
        left = minio.client.list_objects_v2(Bucket="lake", Prefix="orders/").get("Contents", [])
        assert not [entry["Key"] for entry in left if "probe" in entry["Key"]]


def test_keys_that_the_server_does_not_accept_are_refused_with_what_to_set(minio: Minio) -> None:
    import asyncio

    minio.webhook = ""
    minio.start().make_bucket("lake")
    wrong = StoreOptions({"": minio.options(secret_access_key="not-the-secret")})  # noqa: S106
    log = open_log("s3://lake/sales/orders", meter=ReadMeter(), stores=ObjectStores(wrong))
    with pytest.raises(PermanentError, match="AWS_SECRET_ACCESS_KEY"):
        asyncio.run(log.snapshot())
