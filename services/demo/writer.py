"""The demonstration's writer: a process of its own that appends small commits and posts one event for each.

For a Delta table it posts what S3 would; for an Iceberg table, whose catalog sends none, an event of Lakewright's own.
It knows nothing of Lakewright but the address of its webhook. Every commit that the table accepted is noted in a file
as one line of JSON, with the fingerprint of its rows: what the table must hold in the end.
"""

import argparse
import dataclasses
import json
import os
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

import httpx
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from services.demo.row_checksum import commit_rows, fingerprint
from services.demo.tables import CATALOG, CATALOG_VARIABLE, TABLE

BUCKET = "demo"


def notification(table: str, version: int) -> dict[str, object]:
    """Return what S3 would post for the commit file of this version."""
    key = f"{table}/_delta_log/{version:020d}.json"
    return {
        "Records": [
            {
                "eventVersion": "2.1",
                "eventSource": "aws:s3",
                "eventName": "ObjectCreated:Put",
                "s3": {"bucket": {"name": BUCKET}, "object": {"key": key, "size": 1, "eTag": "", "sequencer": "0"}},
            }
        ]
    }


class Appender(Protocol):
    """Writes into one table."""

    def append(self, rows: pa.Table) -> dict[str, object]:
        """Commit rows, and return the event about it."""


class DeltaAppender:
    """Writes with deltalake."""

    def __init__(self, location: str) -> None:
        path = unquote(urlsplit(location).path)
        self._name = Path(path).name
        self._table = DeltaTable(path)

    def append(self, rows: pa.Table) -> dict[str, object]:
        """Commit rows, and return what S3 would post."""
        write_deltalake(self._table, rows, mode="append")
        return notification(self._name, self._table.version())


class IcebergAppender:
    """Writes with pyiceberg, and again where a rewrite was faster."""

    def __init__(self, location: str) -> None:
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - half a second to import

        self._location = location
        self._table = load_catalog(CATALOG, **json.loads(os.environ[CATALOG_VARIABLE])).load_table((CATALOG, TABLE))

    def append(self, rows: pa.Table) -> dict[str, object]:
        """Commit rows, and return an event of Lakewright's own."""
        from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415 - half a second to import

        while True:
            try:
                self._table.append(rows)
            except CommitFailedException:
                self._table.refresh()
            else:
                return {"table": self._location}


APPENDERS: Mapping[str, Callable[[str], Appender]] = {"delta": DeltaAppender, "iceberg": IcebergAppender}
"""The writers by the format of the table; each is made for a location."""


def main() -> None:
    """Append commits at the given rate until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", choices=APPENDERS, default="delta", help="format of the table")
    parser.add_argument("--location", required=True, help="location of the table")
    parser.add_argument("--events-url", required=True, help="where to post the notifications")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--per-second", type=float, required=True, help="commits per second")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--manifest", type=Path, required=True, help="file that notes what was written")
    options = parser.parse_args()

    rng = random.Random(options.seed)  # noqa: S311 - repeatable data is wanted, not secrets
    appender = APPENDERS[options.format](options.location)
    started = time.monotonic()
    commits = rows = 0
    with httpx.Client(timeout=5.0) as client, options.manifest.open("a") as manifest:
        while (elapsed := time.monotonic() - started) < options.seconds:
            time.sleep(max(0.0, commits / options.per_second - elapsed))
            data = commit_rows(rng, rows)
            event = appender.append(data)
            commits, rows = commits + 1, rows + data.num_rows
            manifest.write(json.dumps(dataclasses.asdict(fingerprint(data))) + "\n")
            manifest.flush()
            _post(client, options.events_url, event)


def _post(client: httpx.Client, url: str, event: dict[str, object]) -> None:
    """Post as a bucket would: one try. What is lost, the sweep finds."""
    try:
        client.post(url, json=event)
    except httpx.HTTPError as problem:
        print(f"notification lost: {problem}")


if __name__ == "__main__":
    main()
