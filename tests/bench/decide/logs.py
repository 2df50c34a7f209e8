"""Delta logs on local disk as Spark would have written them: commits of ten files with statistics, and no data files.

A decider reads logs and never data, so that nothing else is needed to measure it.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILES_PER_COMMIT = 10
DAYS = tuple(f"2026-{month:02d}-{day:02d}" for month in (1, 2) for day in range(1, 13))
_COLUMNS = {"id": "long", "at": "timestamp", "amount": "double", "name": "string", "day": "date"}
_START_MS = 1_760_000_000_000


@dataclass(slots=True)
class WrittenLog:
    """One table's log; each commit adds ten files of 1 MB or so to one to three partitions of the days given.

    A `version` from 0 on says that the log is there already.
    """

    path: Path
    seed: int | str
    days: Sequence[str] = DAYS
    version: int = -1
    _dice: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)
        if self.version < 0:
            (self.path / "_delta_log").mkdir(parents=True)
            self.write(_first_commit())

    def write(self, body: bytes) -> int:
        """Write the next commit; returns its version. The file appears at once as a whole, as a store shows it."""
        self.version += 1
        target = self.path / "_delta_log" / f"{self.version:020d}.json"
        unfinished = target.with_suffix(".tmp")
        unfinished.write_bytes(body)
        unfinished.rename(target)
        return self.version

    def body(self, days: Sequence[str] | None = None) -> bytes:
        """Return the bytes of a commit that could come next; `days` gives the partition of each file."""
        touched = self._dice.sample(list(self.days), min(len(self.days), self._dice.choice((1, 1, 1, 2, 3))))
        chosen = days or [self._dice.choice(touched) for _ in range(FILES_PER_COMMIT)]
        lines = [_commit_info(len(chosen), self.version), *(self._add(day) for day in chosen)]
        return "\n".join(json.dumps(line, separators=(",", ":")) for line in lines).encode()

    def _add(self, day: str) -> dict[str, Any]:
        dice = self._dice
        low, rows = dice.randrange(10**9), dice.randrange(5_000, 50_000)
        least = {"id": low, "at": "2026-01-02T03:04:05.678Z", "amount": dice.random(), "name": dice.randbytes(8).hex()}
        most = {**least, "id": low + rows, "amount": least["amount"] + 100, "name": "z" + least["name"]}
        stats = {
            "numRecords": rows,
            "minValues": least,
            "maxValues": most,
            "nullCount": dict.fromkeys(least, 0),
            "tightBounds": True,
        }
        return {
            "add": {
                "path": f"day={day}/part-{dice.randrange(10**5):05d}-{dice.randbytes(16).hex()}.c000.snappy.parquet",
                "partitionValues": {"day": day},
                "size": max(1_000, int(1_000_000 * dice.lognormvariate(0, 0.7))),
                "modificationTime": _START_MS,
                "dataChange": True,
                "stats": json.dumps(stats, separators=(",", ":")),
            }
        }


def _commit_info(files: int, version: int) -> dict[str, Any]:
    return {
        "commitInfo": {
            "timestamp": _START_MS + version * 60_000,
            "operation": "WRITE",
            "operationParameters": {"mode": "Append", "partitionBy": '["day"]'},
            "readVersion": version,
            "isolationLevel": "Serializable",
            "isBlindAppend": True,
            "operationMetrics": {"numFiles": str(files), "numOutputRows": "250000", "numOutputBytes": "10000000"},
            "engineInfo": "Apache-Spark/4.1.4 Delta-Lake/4.4.0",
            "txnId": f"00000000-0000-4000-8000-{version + 1:012d}",
        }
    }


def _first_commit() -> bytes:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in _COLUMNS.items()]
    metadata = {
        "id": "5f6fcd10-5d3c-4be9-a4c3-9d3f3b8f0a11",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["day"],
        "configuration": {},
        "createdTime": _START_MS,
    }
    lines = [_commit_info(0, -1), {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
    return "\n".join(json.dumps(line, separators=(",", ":")) for line in lines).encode()
