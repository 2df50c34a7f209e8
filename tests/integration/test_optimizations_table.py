"""The table of optimizations holds every rewrite once, whoever runs, races or loses Redis, and answers SQL."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from decider.background.rewrite_archiver import RewriteArchiver
from services.decider.build import build_services
from shared.index.stats import index_stats
from shared.layout.commit_metadata import CommitMetadata
from shared.policy.levels import build_size_levels
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support import delta_tables as tables
from tests.support.live_decider import LiveDecider, decider_settings
from tests.support.redis_server import RedisServer
from tests.support.stack import ROOT

pytestmark = pytest.mark.redis

POLICY = Policy()
RUNGS = build_size_levels(POLICY.target_bytes, POLICY.fan_in, POLICY.full_file_threshold)


@pytest.fixture
def decider(redis_url: str, tmp_path: Path) -> Iterator[LiveDecider]:
    with LiveDecider(decider_settings(redis_url, rewrites=str(tmp_path / "optimizations"))) as live:
        yield live


def rewrite(table: tables.HandTable, job: str, token: int) -> None:
    """Commit as an actor does: two live files become one."""
    first, second = list(tables.live(table.path).values())[:2]
    out = table.new_file(40, {})
    mark = CommitMetadata(
        CommitOrigin(job, token), partition="{}", round=1, mode="minor", started_ms=1_767_276_187_000, size_levels=RUNGS
    )
    gone = [{"remove": {"path": add["path"], "size": add["size"], "dataChange": False}} for add in (first, second)]
    info = {"timestamp": 1_767_276_188_000, "operation": "OPTIMIZE", "userMetadata": mark.encode()}
    lines = [{"commitInfo": info}, {"add": out | {"dataChange": False}}, *gone]
    version = tables.newest(table.path) + 1
    (table.path / "_delta_log" / f"{version:020d}.json").write_text("\n".join(map(json.dumps, lines)))


def orders(path: Path, rewrites: int) -> tables.HandTable:
    made = tables.HandTable(path)
    made.append(2 * rewrites + 2)
    for token in range(rewrites):
        rewrite(made, "job", token + 1)
    return made


def rewrite_of_an_index(table: tables.HandTable) -> None:
    """Commit as the actor of Qbeast tables does."""
    add = next(iter(tables.live(table.path).values()))
    block = {"cubeId": "", "minWeight": 0, "maxWeight": 9, "elementCount": 40}
    out = table.new_file(40, {}) | {"dataChange": False, "tags": {"revision": "1", "blocks": json.dumps([block])}}
    mark = CommitMetadata(
        CommitOrigin("job", 9),
        round=1,
        mode="index",
        index_input=index_stats([[("", 5), ("A", 35)]]),
        index_selection="leveled",
    )
    info = {"timestamp": 1_767_276_188_000, "operation": "WRITE", "userMetadata": mark.encode()}
    lines = [
        {"commitInfo": info},
        {"add": out},
        {"remove": {"path": add["path"], "size": add["size"], "dataChange": False}},
    ]
    version = tables.newest(table.path) + 1
    (table.path / "_delta_log" / f"{version:020d}.json").write_text("\n".join(map(json.dumps, lines)))


def taken(decider: LiveDecider) -> int:
    duty = decider.task("rewrite_archive")
    assert isinstance(duty, RewriteArchiver)
    return decider.run(duty.run_once())


def ask(folder: Path, statement: str) -> list[dict[str, Any]]:
    builder = QueryBuilder().register("optimizations", DeltaTable(str(folder)))
    return list(pa.table(builder.execute(statement).read_all()).to_pylist())


def test_the_blocks_of_a_rewritten_index_are_columns(decider: LiveDecider, tmp_path: Path) -> None:
    made = orders(tmp_path / "orders", 1)
    rewrite_of_an_index(made)
    name = decider.register(made.path, "orders")
    assert taken(decider) == 2
    asked = "input.file_levels[1] AS level, input.num_cubes AS cubes, output.num_blocks AS blocks, "
    asked += "input.avg_block_element_count_per_file AS mean, output.avg_num_blocks_per_file AS per_file"
    plain, indexed = ask(tmp_path / "optimizations", f"SELECT {asked} FROM optimizations ORDER BY version")
    assert set(plain.values()) == {None}
    assert indexed == {"level": 1, "cubes": 2, "blocks": 1, "mean": 20.0, "per_file": 1.0}
    reported = decider.get(f"/v1/tables/{name}/optimizations")["optimizations"]
    assert [one["input"]["num_blocks"] for one in reported] == [2, None]
    assert reported[0]["output"]["file_levels"] == [1]
    assert [(one["index_selection"], one["revision_id"]) for one in reported] == [("leveled", 1), (None, None)]
    chosen = "SELECT index_selection AS s, revision_id AS r FROM optimizations ORDER BY version"
    assert ask(tmp_path / "optimizations", chosen) == [{"s": None, "r": None}, {"s": "leveled", "r": 1}]


def test_every_rewrite_is_a_row_with_the_figures_of_the_history_and_redis_may_be_lost(
    decider: LiveDecider, redis_server: RedisServer, tmp_path: Path
) -> None:
    folder = tmp_path / "optimizations"
    made = orders(tmp_path / "orders", 3)
    name = decider.register(made.path, "orders")
    decider.register(tables.HandTable(tmp_path / "quiet").path, "quiet")
    assert taken(decider) == 3
    rows = ask(folder, "SELECT * FROM optimizations ORDER BY version DESC")
    reported = decider.get(f"/v1/tables/{name}/optimizations")["optimizations"]
    assert [row["write_id"] for row in rows] == [event["write_id"] for event in reported]
    for row, event in zip(rows, reported, strict=True):
        for field in ("table_id", "version", "optimization_name", "process_time_ms", "target_bytes", "deleted_rows"):
            assert row[field] == event[field]
        for side in ("input", "output"):
            assert row[side] == {name: event[side][name] for name in row[side]}
        assert row["entropy_removed_bytes2"] == event["entropy_removed_bytes2"]
    (total,) = ask(folder, "SELECT count(*) n, sum(input.num_files - output.num_files) gone FROM optimizations")
    assert total == {"n": 3, "gone": 3}

    assert taken(decider) == 0
    rewrite(made, "job", 9)
    decider.post("/v1/events", {"table": name})
    decider.drain()
    assert taken(decider) == 1
    with redis_server.client() as client:
        client.flushall()
    decider.register(made.path, "orders")
    assert taken(decider) == 0, "how far it has come stands in its own log"
    assert ask(folder, "SELECT count(*) n FROM optimizations") == [{"n": 4}]


def test_two_deciders_at_once_take_each_rewrite_once(decider: LiveDecider, tmp_path: Path) -> None:
    for number in range(3):
        decider.register(orders(tmp_path / f"t{number}", 2).path, f"t{number}")

    async def race() -> list[int]:
        # A second decider shares nothing with the first one but Redis and the tables.
        other = build_services(decider.settings)
        duties = (decider.task("rewrite_archive"), other.background["rewrite_archive"])
        assert all(isinstance(duty, RewriteArchiver) for duty in duties)
        try:
            return list(await asyncio.gather(*(duty.run_once() for duty in duties)))
        finally:
            await other.operations.redis.aclose()

    assert sum(decider.run(race())) == 6
    rows = ask(tmp_path / "optimizations", "SELECT table_id, write_id FROM optimizations")
    assert len(rows) == len({(row["table_id"], row["write_id"]) for row in rows}) == 6


def test_a_decider_that_did_not_see_the_newest_batch_writes_nothing_beside_it(
    decider: LiveDecider, tmp_path: Path
) -> None:
    made = orders(tmp_path / "orders", 2)
    name = decider.register(made.path, "orders")
    assert taken(decider) == 2
    rewrite(made, "job", 9)
    decider.post("/v1/events", {"table": name})
    decider.drain()
    other = build_services(decider.settings)
    late = other.background["rewrite_archive"]
    assert isinstance(late, RewriteArchiver)

    async def nothing_yet(_app: str) -> int:
        return -1

    late._archive.newest = nothing_yet  # type: ignore[method-assign]

    async def run_late() -> int:
        try:
            return await late.run_once()
        finally:
            await other.operations.redis.aclose()

    assert decider.run(run_late()) == 0
    assert taken(decider) == 1
    assert ask(tmp_path / "optimizations", "SELECT count(*) n FROM optimizations") == [{"n": 3}]


def test_the_table_is_managed_like_others_and_lists_no_rewrites_of_itself(decider: LiveDecider, tmp_path: Path) -> None:
    decider.register(orders(tmp_path / "orders", 1).path, "orders")
    assert taken(decider) == 1
    decider.drain()
    own = decider.get("/v1/tables/lakewright.optimizations")
    assert own["state"]["version"] == DeltaTable(str(tmp_path / "optimizations")).version()
    assert taken(decider) == 0


def test_the_list_of_tables_answers_sql_with_their_properties(decider: LiveDecider, tmp_path: Path) -> None:
    """The command of docs/history.md, by DuckDB on what the decider answers."""
    own = {"lakewright.target-file-size": "64mb"}
    sales = {"location": str(orders(tmp_path / "sales", 1).path), "name": "sales", "properties": own}
    assert decider.post("/v1/tables", sales).is_success
    decider.register(orders(tmp_path / "orders", 1).path, "orders")
    (shown,) = re.findall(r'duckdb -c "(.*)"', (ROOT / "docs" / "history.md").read_text())
    answer = tmp_path / "tables.json"
    answer.write_text(json.dumps(decider.get("/v1/tables")))
    rows = duckdb.sql(shown.replace("/dev/stdin", str(answer))).to_arrow_table().to_pylist()
    found = [
        (row["name"], row["files"], {key: value for key, value in row["properties"].items() if value}) for row in rows
    ]
    assert found == [("orders", 3, {}), ("sales", 3, own)]
