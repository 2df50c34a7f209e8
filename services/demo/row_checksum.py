"""The demonstration's rows, and a hash of all of them that does not depend on their order.

Each row is hashed by itself and the hashes are summed modulo 2^64: the sum of what the writer wrote equals the sum of
what the table holds only if every row is there once (but for an accident of 1 in 2^64).
"""

import hashlib
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from services.demo.commit_log import CommitLogSums, read_history
from shared.policy.policy import MIB, Policy

SCHEMA = pa.schema(
    [("day", pa.string()), ("id", pa.int64()), ("device", pa.string()), ("value", pa.float64()), ("note", pa.string())]
)
PARTITION_BY = "day"
DAYS = 6
_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Number of rows and the order-independent hash of all of them."""

    rows: int = 0
    hash: int = 0

    def __add__(self, other: "Fingerprint") -> "Fingerprint":
        return Fingerprint(self.rows + other.rows, (self.hash + other.hash) & _MASK)


def fingerprint(table: pa.Table) -> Fingerprint:
    """Return the fingerprint of a table with the columns of `SCHEMA`, in any order of rows and columns."""
    total = 0
    columns = [table.column(name).to_pylist() for name in SCHEMA.names]
    for row in zip(*columns, strict=True):
        total += int.from_bytes(hashlib.blake2b(repr(row).encode(), digest_size=8).digest(), "little")
    return Fingerprint(table.num_rows, total & _MASK)


def read_manifest(manifest: Path) -> Fingerprint:
    """Return the fingerprint of everything that a writer noted as written, one JSON object a line."""
    total = Fingerprint()
    for line in manifest.read_text().splitlines():
        total += Fingerprint(**json.loads(line))
    return total


def commit_rows(rng: random.Random, first_id: int) -> pa.Table:
    """Make the rows of one commit: uneven sizes, mostly of the newest day, some of them late."""
    rows = int(rng.lognormvariate(6.0, 1.1)) + 5
    late = rng.random() < 0.2  # noqa: PLR2004 - a fifth of the commits bring late data
    today = DAYS - 1
    days = [rng.randrange(DAYS) if late and rng.random() < 0.5 else today for _ in range(rows)]  # noqa: PLR2004
    return pa.table(
        {
            "day": [f"2026-01-{day + 1:02d}" for day in days],
            "id": list(range(first_id, first_id + rows)),
            "device": [f"device-{rng.randrange(500):03d}" for _ in range(rows)],
            "value": [rng.random() for _ in range(rows)],
            "note": [rng.randbytes(24).hex() for _ in range(rows)],
        },
        schema=SCHEMA,
    )


TABLE = "events"
POLICY = Policy(target_bytes=MIB)
PROPERTIES = {"lakewright.target-file-size": f"{POLICY.target_bytes // MIB}mb"}
BUCKET = "demo"


class DemoTable:
    """A Delta table in a folder, which stands for a bucket."""

    def __init__(self, folder: Path) -> None:
        self._root = folder / "tables"
        self._root.mkdir(parents=True, exist_ok=True)
        self._path = self._root / TABLE
        self.location = self._path.as_uri()

    def environment(self) -> Mapping[str, str]:
        """Return the settings with which Lakewright finds the table: the folder as a root and as a bucket."""
        return {
            "LAKEWRIGHT_ROOTS": self._root.as_uri(),
            "LAKEWRIGHT_DISCOVER": "active",
            "LAKEWRIGHT_BUCKETS": f"{BUCKET}={self._root.as_uri()}",
        }

    def create(self) -> None:
        """Create it without rows."""
        DeltaTable.create(
            str(self._path),
            SCHEMA,
            partition_by=[PARTITION_BY],
            configuration=PROPERTIES,
            raise_if_key_not_exists=False,
        )

    def history(self) -> CommitLogSums:
        """Return what happened to it so far, read from its log."""
        return read_history(self._path)

    def read(self) -> pa.Table:
        """Return all rows."""
        return DeltaTable(str(self._path)).to_pyarrow_table()
