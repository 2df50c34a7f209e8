"""Tables on a server that speaks S3's API: read as they are, counted, retried where it helps, else refused."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from itertools import chain

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from decider.formats.delta.log import DeltaLog
from decider.storage.object_reads import ReadKind, ReadMeter
from decider.storage.stores import MAX_RETRIES, ObjectStores
from services.settings import store_options
from shared.errors import InvalidInput, PermanentError, RetryableError
from shared.layout.partition_stats import stats_of_sizes
from shared.paths.store_options import StoreOptions
from shared.table import TableMetadata
from tests.support.delta_tables import open_log
from tests.support.live_decider import POLICY, LiveDecider, decider_settings
from tests.support.s3_server import KEYS, S3Server
from tests.support.stack import s3_event

PLAIN = TableMetadata("u")


@pytest.fixture(scope="module")
def running() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.close()


@pytest.fixture
def s3(running: S3Server) -> S3Server:
    """The server with nothing noted and nothing planned."""
    gate = running.gate
    gate.faults, gate.at, gate.is_open = [], "", False
    gate.seen.clear()
    return running


class Table:
    """A partitioned table in the bucket, written by `deltalake`, which commits by conditional puts."""

    def __init__(self, s3: S3Server, name: str, commits: int) -> None:
        self.location = f"s3://lake/{name}"
        self._options = s3.options()
        for number in range(commits):
            self.append(number)

    def append(self, number: int) -> None:
        rows = pa.table({"dt": [f"2026-01-0{number % 2 + 1}"] * 5, "value": list(range(5))})
        write_deltalake(self.location, rows, mode="append", partition_by=["dt"], storage_options=self._options)

    def sizes(self) -> dict[str, list[int]]:
        table = DeltaTable(self.location, storage_options=self._options)
        actions = pa.table(table.get_add_actions(flatten=True)).to_pydict()
        found: dict[str, list[int]] = {}
        for day, size in zip(actions["partition.dt"], actions["size_bytes"], strict=True):
            found.setdefault('{"dt":"' + str(day) + '"}', []).append(size)
        return found

    def checkpoint(self) -> None:
        DeltaTable(self.location, storage_options=self._options).create_checkpoint()


def opened(s3: S3Server, location: str, meter: ReadMeter | None = None, **changes: str) -> DeltaLog:
    return open_log(
        location, meter=meter or ReadMeter(), stores=ObjectStores(StoreOptions({"": s3.options(**changes)}))
    )


def test_a_snapshot_holds_what_another_reader_finds_with_and_without_a_checkpoint(s3: S3Server) -> None:
    table = Table(s3, "tables/snapshot", 5)
    for _ in range(2):
        snapshot = asyncio.run(opened(s3, table.location).snapshot())
        assert snapshot.version == 4
        assert sorted(file.size_bytes for file in snapshot.files) == sorted(chain.from_iterable(table.sizes().values()))
        table.checkpoint()


def test_only_what_is_behind_the_cursor_is_listed_and_every_request_is_counted(s3: S3Server) -> None:
    table, meter = Table(s3, "tables/offset", 6), ReadMeter()
    log = opened(s3, table.location, meter)
    s3.gate.seen.clear()
    assert asyncio.run(log.versions_after(3)) == (4, 5)
    (listing,) = s3.gate.seen
    assert f"start-after=tables%2Foffset%2F_delta_log%2F{3:020d}.json" in listing.query
    commit = asyncio.run(log.commit(5, PLAIN))
    assert commit is not None
    assert commit.version == 5
    assert asyncio.run(log.commit(6, PLAIN)) is None
    assert meter.counts == {ReadKind.LIST: 1, ReadKind.GET: 2}
    assert len(s3.gate.seen) == meter.counts.total()


def test_a_missing_commit_is_a_hole_and_not_an_empty_table(s3: S3Server) -> None:
    table = Table(s3, "tables/hole", 4)
    s3.delete("lake", f"tables/hole/_delta_log/{2:020d}.json")
    with pytest.raises(PermanentError, match="this commit is missing, later ones exist"):
        asyncio.run(opened(s3, table.location).snapshot())


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_an_answer_of_a_store_under_pressure_is_asked_for_again(s3: S3Server, status: int) -> None:
    table = Table(s3, f"tables/pressure{status}", 1)
    log = opened(s3, table.location)
    s3.gate.seen.clear()
    s3.gate.faults = [status] * 2
    assert asyncio.run(log.commit(0, PLAIN)) is not None
    assert len(s3.gate.seen) == 3


def test_a_store_that_stays_under_pressure_is_worth_another_try_later(s3: S3Server) -> None:
    table = Table(s3, "tables/stays", 1)
    log = opened(s3, table.location)
    s3.gate.seen.clear()
    s3.gate.faults = [503] * 50
    with pytest.raises(RetryableError, match="s3://lake/tables/stays: cannot read"):
        asyncio.run(log.commit(0, PLAIN))
    assert len(s3.gate.seen) == MAX_RETRIES + 1
    with pytest.raises(RetryableError, match="s3://lake/tables/stays: cannot list"):
        asyncio.run(log.versions_after(0))


def test_wrong_credentials_are_refused_with_what_to_set_and_are_not_repeated(s3: S3Server) -> None:
    table = Table(s3, "tables/secret", 1)
    log = opened(s3, table.location, access_key_id="stranger", secret_access_key="hunter2hunter2")  # noqa: S106
    for ask in (lambda: log.commit(0, PLAIN), lambda: log.versions_after(0), log.snapshot):
        with pytest.raises(PermanentError, match=r"AWS_ACCESS_KEY_ID.*LAKEWRIGHT_STORE_OPTIONS") as refusal:
            asyncio.run(ask())
        assert "hunter2" not in str(refusal.value)
    assert sum(one.key == "stranger" for one in s3.gate.seen) == 3


def test_without_a_signature_only_what_is_public_is_read(s3: S3Server) -> None:
    table = Table(s3, "tables/public", 2)
    no_one = StoreOptions({"": {"endpoint": s3.url, "allow_http": "true", "skip_signature": "true"}})
    log = open_log(table.location, meter=ReadMeter(), stores=ObjectStores(no_one))
    with pytest.raises(PermanentError):
        asyncio.run(log.snapshot())
    s3.publish("lake", "tables/public/")
    s3.gate.is_open = True
    assert asyncio.run(log.snapshot()).version == 1


def test_a_place_without_a_table_or_a_bucket_is_reported_to_have_none(s3: S3Server) -> None:
    with pytest.raises(InvalidInput, match="s3://lake/tables/nothing: there is no Delta log"):
        asyncio.run(opened(s3, "s3://lake/tables/nothing").snapshot())
    with pytest.raises(PermanentError, match="is there such a bucket"):
        asyncio.run(opened(s3, "s3://no-such-bucket/t").snapshot())


def test_a_bucket_of_another_region_is_reported_to_be_one(s3: S3Server) -> None:
    s3.gate.faults = [301] * 9
    with pytest.raises(PermanentError, match="region"):
        asyncio.run(opened(s3, "s3://lake/tables/far").snapshot())


def test_each_bucket_may_have_an_endpoint_and_keys_of_its_own(s3: S3Server) -> None:
    with closing(S3Server("elsewhere")) as other:
        Table(s3, "tables/here", 2)
        write_deltalake("s3://elsewhere/t", pa.table({"x": [1]}), storage_options=other.options())
        stated = {
            "region": "eu-central-1",
            "allow_http": True,
            "s3://": {"endpoint": s3.url, "access_key_id": KEYS["access_key_id"], "secret_access_key": "x"},
            "s3a://elsewhere": {"endpoint": other.url},
            "gs://": {"skip_signature": True},
        }
        stores = ObjectStores(store_options({"LAKEWRIGHT_STORE_OPTIONS": json.dumps(stated)}))
        here = open_log("s3a://lake/tables/here", meter=ReadMeter(), stores=stores)
        there = open_log("s3://elsewhere/t", meter=ReadMeter(), stores=stores)
        assert asyncio.run(here.snapshot()).version == 1
        assert asyncio.run(there.snapshot()).version == 0
        assert other.gate.seen[-1].key == KEYS["access_key_id"]


@pytest.mark.redis
def test_the_decider_follows_a_table_on_s3_by_its_notifications(s3: S3Server, redis_url: str) -> None:
    table = Table(s3, "tables/orders", 3)
    options = StoreOptions({"s3://lake": s3.options()})
    with LiveDecider(decider_settings(redis_url, roots=("s3a://lake/tables",), store_options=options)) as decider:
        answer = decider.post("/v1/events", s3_event(f"tables/orders/_delta_log/{2:020d}.json"))
        assert answer.json() == {"accepted": 1, "ignored": []}
        decider.drain()
        for number in range(3, 9):
            table.append(number)
            decider.post("/v1/events", s3_event(f"tables/orders/_delta_log/{number:020d}.json"))
            decider.drain()
        (known,) = decider.get("/v1/tables")["tables"]
        expected = {partition: stats_of_sizes(POLICY.size_levels, sizes) for partition, sizes in table.sizes().items()}
        assert decider.partitions(known["name"]) == expected
        s3.gate.seen.clear()
        before = decider.reads()
        decider.drain()
        assert decider.reads() == before, "an idle table costs nothing"
        assert not s3.gate.seen


@pytest.mark.redis
def test_a_table_that_may_not_be_read_shows_why(s3: S3Server, redis_url: str) -> None:
    Table(s3, "tables/closed", 1)
    options = StoreOptions({"": s3.options(access_key_id="stranger")})
    with LiveDecider(decider_settings(redis_url, store_options=options)) as decider:
        decider.post("/v1/tables", {"location": "s3://lake/tables/closed", "name": "closed"})
        decider.drain()
        refusal = decider.get("/v1/tables/closed")["refusal"]
        assert "LAKEWRIGHT_STORE_OPTIONS" in str(refusal)
