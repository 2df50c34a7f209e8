"""A look on S3 asks a log of thousands of commits as often as a short one: it asks for the next commit by its name.

A commit is Delta's own, which lists the log: its pages are all that grows.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from tests.support.minio import Minio
from tests.support.programs_on_s3 import run_on_s3

pytestmark = [pytest.mark.s3, pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.long("s3")]

FILES, UPLOADS = 3, 16


def make(minio: Minio, name: str, commits: int) -> str:
    """Make a table of three files in the first commits; the others change nothing, and the last has a checkpoint."""
    location = f"s3://lake/{name}"
    for number in range(FILES):
        rows = pa.table({"id": [number]})
        deltalake.write_deltalake(location, rows, mode="append", storage_options=minio.options())
    body = json.dumps({"commitInfo": {"timestamp": 1, "operation": "WRITE"}}).encode()

    def upload(version: int) -> None:
        minio.client.put_object(Bucket="lake", Key=f"{name}/_delta_log/{version:020d}.json", Body=body)

    with ThreadPoolExecutor(UPLOADS) as pool:
        list(pool.map(upload, range(FILES, commits)))
    deltalake.DeltaTable(location, storage_options=minio.options()).create_checkpoint()
    return location


PAGES = "object_continue_list_request"


def test_a_look_at_a_log_of_two_thousand_commits_costs_what_it_costs_at_a_hundred(minio: Minio) -> None:
    first, short, long = make(minio, "first", 4), make(minio, "short", 101), make(minio, "long", 2_001)

    found: dict[str, Any] = run_on_s3("count_requests", {"": minio.options()}, first, short, long)

    print(json.dumps(found, indent=1))
    look = found[long]["look"]
    assert look == found[short]["look"]
    assert look
    assert not any("list" in name for name in look)
    requests = [
        {name: count for name, count in found[at]["rewrite"].items() if "bytes" not in name} for at in (short, long)
    ]
    assert requests[1].pop(PAGES) <= 4
    assert requests[0] == requests[1]
