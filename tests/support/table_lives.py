"""Alters the properties of a real table, and tells what a decider knows of it then."""

import json
from typing import Any

from deltalake import DeltaTable

from tests.support.live_decider import LiveDecider, WrittenTable


def alter(table: WrittenTable, changes: dict[str, str | None]) -> None:
    """Commit the table's metadata with other properties, as ALTER TABLE does."""
    log = table.path / "_delta_log"
    newest = DeltaTable(str(table.path)).version()
    metadata = None
    for version in range(newest, -1, -1):
        lines = (log / f"{version:020d}.json").read_text().splitlines()
        found = [json.loads(line)["metaData"] for line in lines if '"metaData"' in line]
        if found:
            metadata = found[-1]
            break
    assert metadata is not None
    configuration = dict(metadata["configuration"]) | changes
    metadata["configuration"] = {name: value for name, value in configuration.items() if value is not None}
    info = {"commitInfo": {"timestamp": 1_767_225_600_000, "operation": "SET TBLPROPERTIES"}}
    text = "\n".join(json.dumps(action) for action in (info, {"metaData": metadata}))
    with (log / f"{newest + 1:020d}.json").open("x") as out:
        out.write(text)


def expect_exact(decider: LiveDecider, name: str, table: WrittenTable) -> Any:
    """Check that the state equals a count of the live files at the newest version, and that nothing refuses it."""
    status = decider.get(f"/v1/tables/{name}")
    assert status["state"]["version"] == table.version
    assert status["refusal"] is None
    assert decider.partitions(name) == table.count_files()
    return status


def jobs(decider: LiveDecider, name: str) -> list[Any]:
    return list(decider.get("/v1/jobs", table=name)["jobs"])
