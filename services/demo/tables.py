"""The demonstration's table: how it is created and read, and where Lakewright finds it."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from services.demo.commit_log import CommitLogSums, read_history
from services.demo.row_checksum import PARTITION_BY, SCHEMA
from shared.policy.policy import MIB, Policy

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
