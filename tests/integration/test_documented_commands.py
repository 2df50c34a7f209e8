"""The commands of pages run as they are written against a real decider; those of README's "Your own tables" in order.

Those that need Spark or a machine of their own are named with the test that runs them.
"""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.live_decider import LiveDecider, WrittenTable
from tests.support.stack import ROOT
from tests.support.time_limits import scaled
from tests.unit.docs.test_commands import blocks

pytestmark = pytest.mark.redis

SECTION = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Your own tables")[2].partition("\n## ")[0]
ELSEWHERE = {
    "lakewright standalone": "tests/integration/test_standalone_start.py",
    "lakewright doctor --wait": "tests/integration/test_unreliable_redis.py",
    "lakewright optimize /data/lake/events": "tests/integration/test_adhoc.py",
}


def shown() -> Iterator[str]:
    for block in SECTION.split("```sh\n")[1:]:
        for line in block.partition("```")[0].splitlines():
            command = line.partition("#")[0].strip()
            if command:
                yield command


def commands(page: Path) -> list[str]:
    """The arguments of each `lakewright` in a block of a page."""
    ours = (line for line in blocks(page) if line.startswith("lakewright "))
    return [line.removeprefix("lakewright ").partition("#")[0].strip() for line in ours]


def test_readme_s_commands_run_as_they_are_written(
    decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = WrittenTable(tmp_path / "events")
    table.append(11)
    monkeypatch.chdir(tmp_path)
    ran = set()
    for command in shown():
        known = next((one for one in ELSEWHERE if command.removesuffix(" &") == one), None)
        if known or not command.startswith("lakewright"):
            ran.add(known or command.split(" ", maxsplit=1)[0])
            continue
        arguments = shlex.split(command.replace("/data/lake/events", str(table.path)))[1:]
        result = decider.command(*arguments)
        decider.drain()
        assert result.exit_code == 0, (command, result.output, result.exception)
        ran.add(arguments[0])
    assert ran >= {*ELSEWHERE, "tables", "optimize", "what-if", "optimizations", "events"}
    assert all((ROOT / place).exists() for place in ELSEWHERE.values())


def test_readme_s_call_of_the_webhook_is_accepted(decider: LiveDecider, tmp_path: Path) -> None:
    decider.register(WrittenTable(tmp_path / "events").path, "sales.events")
    (line,) = [command for command in shown() if command.startswith("curl")]
    words = shlex.split(line.replace("localhost:7420", decider.url.removeprefix("http://")))
    body, url = words[words.index("-d") + 1], next(word for word in words if "/v1/" in word)
    json_type = {"content-type": "application/json"}
    answer = httpx.post(f"http://{url}", content=body, headers=json_type, trust_env=False, timeout=scaled(20))
    assert answer.json()["accepted"] == 1


PAGES = sorted((ROOT / "docs").rglob("*.md"))
SHOWN_ELSEWHERE = {
    "--json tables list --limit 500 | "
    "duckdb -c \"SELECT unnest(tables, max_depth := 2) FROM read_json('/dev/stdin')\"": (
        "tests/integration/test_optimizations_table.py"
    ),
    "convert-deletes sales.orders": "tests/integration/test_iceberg_tables.py",
    "convert-deletes sales.orders --dry-run": "tests/integration/test_iceberg_tables.py",
    "merge-deletes sales.orders": "tests/integration/test_iceberg_tables.py",
    "merge-deletes sales.orders --dry-run": "tests/integration/test_iceberg_tables.py",
    "optimize /data/lake/events --target-file-size 64KiB": "tests/integration/test_adhoc.py",
    "queue show --group etl": "tests/integration/test_groups.py",
    "compute-statistics sales.orders": "tests/integration/test_iceberg_tables.py",
    "compute-statistics sales.orders --dry-run": "tests/integration/test_iceberg_tables.py",
    "rewrite-manifests sales.orders": "tests/integration/test_iceberg_tables.py",
    "rewrite-manifests sales.orders --dry-run": "tests/integration/test_iceberg_tables.py",
    "tables add s3://lake/sales/orders --name sales.orders": "tests/integration/test_iceberg_on_s3.py",
    "tables index /lake/events": "tests/integration/test_indexed_tables.py",
}
"""Those that need a terminal, a catalog, a store, an index, a group or DuckDB, with the test that runs them."""


@pytest.mark.parametrize("page", [page for page in PAGES if any(commands(page))], ids=lambda page: page.stem)
def test_a_pages_commands_run_as_they_are_written(
    page: Path, decider: LiveDecider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sales.events", "sales.orders"):
        table = WrittenTable(tmp_path / "data" / name)
        table.append(11)
        decider.register(table.path, name)
    for first in range(0, 400, 100):
        rows = pa.table({"customer_id": range(first, first + 100), "ts": range(100)})
        write_deltalake(tmp_path / "lake", rows, mode="append")
    filters = {"table": "sales.events", "times": 2, "filter": {"type": "eq", "term": "customer_id", "value": 1}}
    (tmp_path / "scans.jsonl").write_text(json.dumps(filters))
    monkeypatch.chdir(tmp_path)
    for command in commands(page):
        if command in SHOWN_ELSEWHERE:
            assert (ROOT / SHOWN_ELSEWHERE[command]).exists()
            continue
        written = re.sub(r"/data/lake/\S+", str(tmp_path / "lake"), command)
        result = decider.command(*shlex.split(written))
        decider.drain()
        assert result.exit_code == 0, (command, result.output, result.exception)
