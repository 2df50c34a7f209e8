"""The demonstration's table in either format: how it is created, read, and where Lakewright finds it."""

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import httpx
import pyarrow as pa
from deltalake import DeltaTable

from services.demo.commit_log import CommitLogSums, read_history
from services.demo.iceberg_log import IcebergLogSums, add_new_snapshots
from services.demo.network import free_port
from services.demo.processes import end_process
from services.demo.row_checksum import PARTITION_BY, SCHEMA
from shared.errors import PermanentError
from shared.policy.policy import MIB, Policy

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

TABLE = "events"
POLICY = Policy(target_bytes=MIB)
PROPERTIES = {"lakewright.target-file-size": f"{POLICY.target_bytes // MIB}mb"}
CATALOG = "demo"
CATALOG_VARIABLE = "DEMO_CATALOG"
"""Variable with the catalog's options in JSON, by which the writer gets its address and its token."""

TOKEN_VARIABLE = "DEMO_TOKEN"  # noqa: S105 - its name
"""Variable with the token that the catalog asks for."""

CATALOG_START_S = 600.0
"""Longest wait for the catalog's process to answer while it lives: two seconds, minutes where others compute."""


class DemoTable(Protocol):
    """One table and where it is."""

    format: str
    location: str

    def served(self) -> AbstractContextManager[object]:
        """Run what the table needs beside Lakewright."""

    def environment(self) -> Mapping[str, str]:
        """Return the settings with which Lakewright finds the table."""

    def writer_environment(self) -> Mapping[str, str]:
        """Return the variables with which the writer finds the table."""

    def create(self) -> None:
        """Create it without rows."""

    def history(self) -> CommitLogSums:
        """Return what happened to it so far."""

    def read(self) -> pa.Table:
        """Return all rows."""


class DeltaDemoTable:
    """A Delta table in a folder, which stands for a bucket."""

    format = "delta"

    def __init__(self, folder: Path) -> None:
        self._root = folder / "tables"
        self._root.mkdir(parents=True, exist_ok=True)
        self._path = self._root / TABLE
        self.location = self._path.as_uri()

    def served(self) -> AbstractContextManager[object]:
        """Run nothing."""
        return nullcontext()

    def environment(self) -> Mapping[str, str]:
        """Return the folder as a root and as a bucket."""
        return {
            "LAKEWRIGHT_ROOTS": self._root.as_uri(),
            "LAKEWRIGHT_DISCOVER": "active",
            "LAKEWRIGHT_BUCKETS": f"demo={self._root.as_uri()}",
        }

    def writer_environment(self) -> Mapping[str, str]:
        """Return nothing."""
        return {}

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
        """Read the log."""
        return read_history(self._path)

    def read(self) -> pa.Table:
        """Return all rows."""
        return DeltaTable(str(self._path)).to_pyarrow_table()


class IcebergDemoTable:
    """An Iceberg table of a REST catalog, which is a process of its own."""

    format = "iceberg"

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "catalog"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._port = free_port()
        self._options = {
            "type": "rest",
            "uri": f"http://127.0.0.1:{self._port}",
            "token": secrets.token_urlsafe(16),
        }
        self._sums = IcebergLogSums()
        self.location = f"catalog://{CATALOG}/{CATALOG}/{TABLE}"

    @contextmanager
    def served(self) -> Iterator[None]:
        """Run the catalog."""
        log = self._folder / "catalog.log"
        command = [sys.executable, "-m", "services.demo.rest_catalog", str(self._port), str(self._folder)]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                env={**os.environ, TOKEN_VARIABLE: self._options["token"]},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait_until_up(process, log)
            yield
        finally:
            end_process(process)

    def environment(self) -> Mapping[str, str]:
        """Return the catalog, all of whose tables are served."""
        return {
            "LAKEWRIGHT_CATALOGS": json.dumps({CATALOG: self._options}),
            "LAKEWRIGHT_ROOTS": f"catalog://{CATALOG}",
            "LAKEWRIGHT_DISCOVER": "active",
        }

    def writer_environment(self) -> Mapping[str, str]:
        """Return the catalog."""
        return {CATALOG_VARIABLE: json.dumps(self._options)}

    def create(self) -> None:
        """Create it without rows, in a namespace of its own."""
        from pyiceberg.partitioning import PartitionField, PartitionSpec  # noqa: PLC0415 - half a second to import
        from pyiceberg.schema import Schema  # noqa: PLC0415
        from pyiceberg.transforms import IdentityTransform  # noqa: PLC0415
        from pyiceberg.types import DoubleType, LongType, NestedField, StringType  # noqa: PLC0415

        types: dict[pa.DataType, Any] = {pa.string(): StringType(), pa.int64(): LongType(), pa.float64(): DoubleType()}
        schema = Schema(*(NestedField(number, one.name, types[one.type]) for number, one in enumerate(SCHEMA, start=1)))
        source = schema.find_field(PARTITION_BY).field_id
        spec = PartitionSpec(PartitionField(source, 1000, IdentityTransform(), PARTITION_BY))
        catalog = self._catalog()
        catalog.create_namespace(CATALOG)
        catalog.create_table((CATALOG, TABLE), schema, partition_spec=spec, properties=PROPERTIES)

    def history(self) -> CommitLogSums:
        """Read the new snapshots."""
        add_new_snapshots(self._sums, self._loaded())
        return self._sums

    def read(self) -> pa.Table:
        """Return all rows."""
        return self._loaded().scan().to_arrow().cast(SCHEMA)

    def _loaded(self) -> "Table":
        return self._catalog().load_table((CATALOG, TABLE))

    def _catalog(self) -> "Catalog":
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - half a second to import

        return load_catalog(CATALOG, **self._options)

    def _wait_until_up(self, process: subprocess.Popen[bytes], log: Path) -> None:
        deadline = time.monotonic() + CATALOG_START_S
        while True:
            try:
                if httpx.get(f"{self._options['uri']}/v1/config").is_success:
                    return
            except httpx.TransportError:
                pass
            if process.poll() is not None or time.monotonic() > deadline:
                raise PermanentError(f"the catalog did not come up; its last words:\n{log.read_text()[-2000:]}")
            time.sleep(0.1)


FORMATS: Mapping[str, Callable[[Path], DemoTable]] = {
    DeltaDemoTable.format: DeltaDemoTable,
    IcebergDemoTable.format: IcebergDemoTable,
}
"""The tables by their formats; each is made for a folder."""
