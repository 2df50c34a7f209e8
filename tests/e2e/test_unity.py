"""A Delta table by its name in a Unity catalog, read and rewritten: a real decider, actor and command line.

The catalog answers as the samples of its API do (`tests/data/unity`); the table lies in a folder.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.outside import is_at_rest, own_commits
from tests.support.stack import Stack, lakewright
from tests.support.unity_server import UnityServer, unity_server
from tests.support.waiting import until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
    pytest.mark.long("contracts"),
]

PLACE, NAME = "catalog://unity/main/sales/orders", "main.sales.orders"
FILES = 12


@pytest.fixture
def unity() -> Iterator[UnityServer]:
    with unity_server() as server:
        yield server


def write(folder: Path, first: int) -> None:
    for number in range(first, first + FILES):
        write_deltalake(folder, pa.table({"id": [number]}), mode="append")


def ids(folder: Path) -> list[int]:
    return sorted(DeltaTable(folder).to_pyarrow_table()["id"].to_pylist())


def files(folder: Path) -> int:
    return len(DeltaTable(folder).file_uris())


def test_a_table_is_rewritten_where_its_name_leads_and_nowhere_else(stack: Stack, unity: UnityServer) -> None:
    """After the name was given to another table, the first one gets no further commit."""
    first, second = stack.folder / "lake" / "first", stack.folder / "lake" / "second"
    write(first, 0)
    unity.put(NAME, first.as_uri(), "id-1")
    environment = {
        "LAKEWRIGHT_ROOTS": "catalog://unity",
        "LAKEWRIGHT_DISCOVER": "active",
        "LAKEWRIGHT_CATALOGS": json.dumps({"unity": unity.options((stack.folder / "lake").as_uri())}),
    }
    stack.environment = {**stack.environment, **environment}
    stack.decider(LAKEWRIGHT_SWEEP_S="2")
    stack.post("/v1/tables", {"location": PLACE, "name": NAME}).raise_for_status()
    stack.actor()
    until("the first table is compacted", lambda: files(first) < FILES, seconds=180)
    until("all work is done", lambda: is_at_rest(stack, NAME, first), seconds=120)
    assert ids(first) == list(range(FILES))
    (run, *_) = stack.get(f"/v1/tables/{NAME}/optimizations")["optimizations"]
    assert run["output"]["num_files"] < run["input"]["num_files"]

    write(second, 100)
    version = DeltaTable(first).version()
    unity.put(NAME, second.as_uri(), "id-2")
    until("the second table is compacted", lambda: files(second) < FILES, seconds=120)
    assert ids(second) == list(range(100, 100 + FILES))
    assert (DeltaTable(first).version(), ids(first)) == (version, list(range(FILES)))
    assert own_commits(second)


def test_the_command_line_optimizes_a_table_by_its_name_without_a_service(tmp_path: Path, unity: UnityServer) -> None:
    write(tmp_path / "orders", 0)
    unity.put(NAME, (tmp_path / "orders").as_uri(), "id-1")
    env = {**os.environ, "LAKEWRIGHT_CATALOGS": json.dumps({"unity": unity.options(tmp_path.as_uri())})}
    done = lakewright("--json", "optimize", f"unity.{NAME}", "--yes", "--mode", "full", env=env, seconds=240)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert json.loads(done.stdout)["result"]["files"] == {"before": FILES, "after": 1}
    assert ids(tmp_path / "orders") == list(range(FILES))
