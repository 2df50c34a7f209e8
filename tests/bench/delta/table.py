"""The table that a rule is played on: the trace's files by hard links, foreign commits by hand, and the log as witness.

What a rule rewrote and how many files are live is read from the log alone, in the same way for every rule.
"""

import json
import os
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.delta.trace import COLUMNS

MINUTE_MS = 60_000


class PlayedTable:
    """One table on local disk; `configuration` are its properties, `columns` the Delta types by name."""

    def __init__(
        self,
        path: Path,
        configuration: Mapping[str, str],
        columns: Mapping[str, str] = COLUMNS,
        partitioned_by: Sequence[str] = ("day",),
    ) -> None:
        self.path = path
        self._live: dict[str, int] = {}
        self._next = 0
        self.begins_ms = time.time_ns() // 1_000_000
        self._foreign = 0
        self.bytes_rewritten = 0
        self.rewrites = 0
        (path / "_delta_log").mkdir(parents=True)
        self.commit(
            [
                {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
                {"metaData": _metadata(configuration, columns, partitioned_by)},
            ]
        )

    def bring(self, folder: Path, adds: Iterable[Mapping[str, Any]]) -> None:
        """Link the data files of some `add` actions into the table's folder."""
        for add in adds:
            target = self.path / add["path"]
            target.parent.mkdir(exist_ok=True)
            os.link(folder / add["path"], target)

    def commit(self, actions: Iterable[Mapping[str, Any]]) -> None:
        """Write the next commit as a foreign writer does, a minute after its last, behind whatever a rule committed."""
        version = self.follow()
        self._foreign += 1
        info = {
            "timestamp": self.begins_ms + self._foreign * MINUTE_MS,
            "operation": "WRITE",
            "isBlindAppend": True,
            "operationParameters": {},
        }
        lines = [{"commitInfo": info}, *actions]
        with (self.path / "_delta_log" / f"{version:020d}.json").open("x") as file:
            file.write("\n".join(json.dumps(line, separators=(",", ":")) for line in lines))
        self.follow()

    @property
    def sql_name(self) -> str:
        """What the table is called in Spark's SQL."""
        return f"delta.`{self.path}`"

    def append(self, adds: Iterable[Mapping[str, Any]]) -> None:
        """Commit data files as a foreign writer does."""
        self.commit([{"add": add} for add in adds])

    def copy_of(self, path: str) -> str:
        """Link a live data file under a new name beside it; returns that name."""
        copy = f"{path.partition('/')[0]}/merged-{uuid.uuid4().hex}.parquet"
        os.link(self.path / path, self.path / copy)
        return copy

    @property
    def files(self) -> int:
        """Live files, as of the last look."""
        return len(self._live)

    @property
    def live(self) -> Mapping[str, int]:
        """Bytes of the live files by path, as of the last look."""
        return self._live

    @property
    def live_bytes(self) -> int:
        """Bytes in live files, as of the last look."""
        return sum(self._live.values())

    def follow(self) -> int:
        """Read the commits since the last look; returns the version that comes next."""
        while (file := self.path / "_delta_log" / f"{self._next:020d}.json").exists():
            actions = [json.loads(line) for line in file.read_text().split("\n") if line]
            for action in actions:
                if "remove" in action:
                    self._live.pop(action["remove"]["path"], None)
            added = [action["add"] for action in actions if "add" in action]
            self._live |= {add["path"]: add["size"] for add in added}
            if added and not any(add["dataChange"] for add in added):
                self.bytes_rewritten += sum(add["size"] for add in added)
                self.rewrites += 1
            self._next += 1
        return self._next


def _metadata(
    configuration: Mapping[str, str], columns: Mapping[str, str], partitioned_by: Sequence[str]
) -> dict[str, Any]:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": list(partitioned_by),
        "configuration": dict(configuration),
        "createdTime": 0,
    }
