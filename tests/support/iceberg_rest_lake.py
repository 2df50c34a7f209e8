"""A running REST catalog with one table, and a client of it: our small server, or Iceberg's own behind a gateway."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table.snapshots import Operation

from tests.support.catalog_faults import CREDENTIAL
from tests.support.iceberg_server import catalog_process, iceberg_server
from tests.support.local_http import LOCAL
from tests.support.stack import free_port
from tests.support.time_limits import scaled

TOKEN = "a-token"  # noqa: S105 - of a catalog that lives as long as a test
SCHEMA = pa.schema([("id", pa.int64())])
AGED = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
OURS = "our server"
ICEBERGS = "Iceberg's server"
SERVERS = [OURS, pytest.param(ICEBERGS, marks=pytest.mark.long("iceberg"))]
"""Parameters of a fixture: what every test of a REST catalog runs against."""


@dataclass
class RestLake:
    """A running catalog, and a client of it."""

    uri: str
    options: dict[str, str]
    catalog: Catalog

    def make(self, commits: int, properties: Mapping[str, str] | None = None) -> None:
        """Create the table db.t, and append ten ids to it so many times."""
        self.catalog.create_namespace("db")
        self.catalog.create_table("db.t", SCHEMA, properties=dict(properties or {}))
        for number in range(commits):
            self.append(number * 10)

    def make_aged(self, properties: Mapping[str, str], ages: Sequence[Sequence[int]]) -> None:
        """Create the table db.t of ids and their times, and append files of rows that are so many days old."""
        now = datetime.now(UTC)
        self.catalog.create_namespace("db")
        table = self.catalog.create_table("db.t", AGED, properties=dict(properties))
        for number, days in enumerate(ages):
            ids = range(number * 10, number * 10 + len(days))
            table.append(pa.table({"id": ids, "at": [now - timedelta(days=one) for one in days]}, schema=AGED))

    def append(self, start: int) -> None:
        table = self.catalog.load_table("db.t")
        table.append(pa.table({"id": range(start, start + 10)}, schema=SCHEMA))

    def fail(self, *kinds: str) -> None:
        """Plan what happens to the next commits, see `tests.support.catalog_faults`."""
        httpx.post(f"{self.uri}/faults", json=kinds, timeout=scaled(20), **LOCAL).raise_for_status()

    def oauth(self, credential: str = CREDENTIAL) -> dict[str, str]:
        """Return the options of a client that gets its tokens by OAuth2."""
        uri = f"{self.uri}/v1/oauth/tokens"
        return {"type": "rest", "uri": self.uri, "credential": credential, "oauth2-server-uri": uri}

    def revoke(self) -> None:
        """Accept none of the tokens any more that were issued so far."""
        httpx.delete(f"{self.uri}/tokens", timeout=scaled(20), **LOCAL).raise_for_status()

    def planned(self) -> int:
        """Return for how many commits it is planned what happens to them."""
        return int(self._counts()["planned"])

    def asked(self) -> int:
        """Return how many requests clients have made."""
        return self._counts()["asked"]

    def is_quiet(self) -> bool:
        """Whether no commit that was answered before it was made is still to be made."""
        return self._counts()["late"] == 0

    def _counts(self) -> dict[str, int]:
        counts: dict[str, int] = httpx.get(f"{self.uri}/faults", timeout=scaled(20), **LOCAL).raise_for_status().json()
        return counts

    def ids(self) -> list[int]:
        return sorted(self.catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist())

    def rewrites(self) -> int:
        """Return how many snapshots replaced files without a change of rows."""
        snapshots = self.catalog.load_table("db.t").metadata.snapshots
        return sum(one.summary is not None and one.summary.operation is Operation.REPLACE for one in snapshots)

    def data_files(self) -> int:
        """Return how many data files are in the table's folder, referred to or not."""
        return len(self.data_paths())

    def data_paths(self) -> set[Path]:
        """Return the data files in the table's folder, referred to or not."""
        folder = Path(urlsplit(self.catalog.load_table("db.t").location()).path) / "data"
        return set(folder.rglob("*.parquet"))

    def files(self) -> int:
        return len(list(self.catalog.load_table("db.t").scan().plan_files()))


def spark_conf(options: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's settings for the catalog `lake` with the options of a client."""
    conf = {"": "org.apache.iceberg.spark.SparkCatalog", ".cache-enabled": "false"}
    conf |= {f".{name}": value for name, value in options.items()}
    return {f"spark.sql.catalog.lake{name}": value for name, value in conf.items()}


@contextmanager
def rest_lake(folder: Path, kind: str = OURS) -> Iterator[RestLake]:
    """Run a catalog of a kind below a folder."""
    port = free_port()
    uri = f"http://127.0.0.1:{port}"
    with ExitStack() as running:
        if kind == ICEBERGS:
            command = ["tests.support.iceberg_gateway", str(port), running.enter_context(iceberg_server(folder)), TOKEN]
        else:
            command = ["tests.support.iceberg_rest", str(port), str(folder), TOKEN]
        running.enter_context(catalog_process([sys.executable, "-m", *command], uri, folder / "catalog.log"))
        options = {"type": "rest", "uri": uri, "token": TOKEN}
        yield RestLake(uri, options, load_catalog("lake", **options))
