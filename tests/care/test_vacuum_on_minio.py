"""A vacuum on a real S3 server deletes what a dry run lists, and no object that may be about to be committed."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from decider.formats.delta.format import DeltaFormat
from decider.formats.table_format import StorageAccess
from decider.storage.object_reads import ReadMeter
from decider.storage.stores import ObjectStores
from shared.jobs.options import VacuumOptions
from shared.paths.store_options import StoreOptions
from shared.policy.policy import Policy
from tests.support.go_programs import MINIO
from tests.support.minio import Minio
from tests.support.programs_on_s3 import run_on_s3
from tests.support.waiting import until

pytestmark = [pytest.mark.s3, pytest.mark.e2e, pytest.mark.spark]

LOCATION = "s3://lake/orders"


@pytest.fixture
def minio(tmp_path: Path) -> Iterator[Minio]:
    server = Minio(MINIO.binary(), tmp_path / "minio").start()
    server.make_bucket("lake")
    yield server
    server.close()


def names(minio: Minio) -> set[str]:
    """Names of all objects of the table but those of its log and markers of folders."""
    listed = minio.client.list_objects_v2(Bucket="lake", Prefix="orders/")["Contents"]
    found = {entry["Key"].removeprefix("orders/") for entry in listed}
    return {name for name in found if not name.startswith("_delta_log/") and name and not name.endswith("/")}


def preview(minio: Minio) -> set[str]:
    access = StorageAccess(ReadMeter(), stores=ObjectStores(StoreOptions({"": minio.options()})))
    reader = DeltaFormat(access).open(LOCATION)
    options = VacuumOptions(with_orphans=True, force=True, retain_s=0)
    found = asyncio.run(reader.plan_vacuum(Policy(), options, int(time.time() * 1000)))
    return {one.name for one in found.deletions}


def test_what_a_dry_run_lists_is_deleted_on_s3_and_uncommitted_objects_stay(minio: Minio) -> None:
    options = minio.options()
    for day in range(6):
        rows = pa.table({"id": list(range(day * 10, day * 10 + 10)), "day": [f"d {day % 2}"] * 10})
        write_deltalake(LOCATION, rows, mode="append", partition_by=["day"], storage_options=options)
    DeltaTable(LOCATION, storage_options=options).optimize.compact()
    DeltaTable(LOCATION, storage_options=options).delete("id < 10")
    minio.client.put_object(Bucket="lake", Key="orders/day=d%200/being-written.parquet", Body=b"x")
    prefix = f"{LOCATION}/"
    table = DeltaTable(LOCATION, storage_options=options)
    live = {uri.removeprefix(prefix) for uri in table.file_uris()}
    until("the second has passed that S3 tells times by", lambda: preview(minio) == names(minio) - live - young(minio))
    listed, before = preview(minio), names(minio)
    assert len(listed) == 7, "six appended files, and the output of one merge"
    found = run_on_s3("vacuum", {"": options}, LOCATION)
    assert before - names(minio) == listed
    assert young(minio) <= names(minio)
    assert (found["first"]["files_deleted"], found["second"]["files_deleted"]) == (len(listed), 0)
    assert found["first"]["orphan_files_deleted"] == 0
    ids = sorted(DeltaTable(LOCATION, storage_options=options).to_pyarrow_table()["id"].to_pylist())
    assert ids == found["ids"] == list(range(10, 60))


def young(minio: Minio) -> set[str]:
    return {name for name in names(minio) if name.endswith("being-written.parquet")}
