"""The demonstration's writer: a process of its own that appends small commits and posts one event for each.

It posts what S3 would, and knows nothing of Lakewright but the address of its webhook. Every commit that the table
accepted is noted in a file as one line of JSON, with the fingerprint of its rows: what the table must hold in the end.
"""

import argparse
import dataclasses
import json
import random
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx
from deltalake import DeltaTable, write_deltalake

from services.demo.row_checksum import BUCKET, commit_rows, fingerprint


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


def main() -> None:
    """Append commits at the given rate until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--location", required=True, help="location of the table")
    parser.add_argument("--events-url", required=True, help="where to post the notifications")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--per-second", type=float, required=True, help="commits per second")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--manifest", type=Path, required=True, help="file that notes what was written")
    options = parser.parse_args()

    rng = random.Random(options.seed)  # noqa: S311 - repeatable data is wanted, not secrets
    path = unquote(urlsplit(options.location).path)
    table = DeltaTable(path)
    started = time.monotonic()
    commits = rows = 0
    with httpx.Client(timeout=5.0) as client, options.manifest.open("a") as manifest:
        while (elapsed := time.monotonic() - started) < options.seconds:
            time.sleep(max(0.0, commits / options.per_second - elapsed))
            data = commit_rows(rng, rows)
            write_deltalake(table, data, mode="append")
            commits, rows = commits + 1, rows + data.num_rows
            manifest.write(json.dumps(dataclasses.asdict(fingerprint(data))) + "\n")
            manifest.flush()
            _post(client, options.events_url, notification(Path(path).name, table.version()))


def _post(client: httpx.Client, url: str, event: dict[str, object]) -> None:
    """Post as a bucket would: one try. What is lost, the sweep finds."""
    try:
        client.post(url, json=event)
    except httpx.HTTPError as problem:
        print(f"notification lost: {problem}")


if __name__ == "__main__":
    main()
