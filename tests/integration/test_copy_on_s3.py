"""Delta tables on a real S3 server: row groups are copied, a commit replaces no other, and a look asks for little."""

import io
import json
from collections.abc import Iterator
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.minio import Minio
from tests.support.programs_on_s3 import run_on_s3
from tests.support.s3_server import S3Server

pytestmark = [pytest.mark.s3, pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.long("s3")]

ROWS = [{"id": number, "v": f"v{number}" if number % 3 else None} for number in range(60)]
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


def make(minio: Minio, name: str, *, is_damaged: bool) -> str:
    """Make a table of three files of several row groups with checksums of pages."""
    location = f"s3://lake/{name}"
    every_second = {"delta.checkpointInterval": "2"}
    made = deltalake.DeltaTable.create(location, SCHEMA, configuration=every_second, storage_options=minio.options())
    adds = []
    for number in range(3):
        written = io.BytesIO()
        rows = pa.Table.from_pylist(ROWS[20 * number : 20 * number + 20], schema=SCHEMA)
        options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
        pq.write_table(rows, written, row_group_size=7, **options)
        content = bytearray(written.getvalue())
        if is_damaged and number == 1:
            chunk = pq.ParquetFile(written).metadata.row_group(1).column(0)
            content[chunk.data_page_offset + chunk.total_compressed_size - 8] ^= 0x7F
        minio.client.put_object(Bucket="lake", Key=f"{name}/{number}.parquet", Body=bytes(content))
        stats = json.dumps({"numRecords": 20, "minValues": {"id": 20 * number}, "maxValues": {"id": 20 * number + 19}})
        add = {"path": f"{number}.parquet", "partitionValues": {}, "size": len(content), "modificationTime": 1}
        adds.append(json.dumps({"add": add | {"dataChange": True, "stats": stats}}))
    log = f"{name}/_delta_log/{made.version() + 1:020d}.json"
    minio.client.put_object(Bucket="lake", Key=log, Body="\n".join(adds).encode())
    return location


def keys(minio: Minio, name: str) -> set[str]:
    listed = minio.client.list_objects_v2(Bucket="lake", Prefix=f"{name}/")["Contents"]
    return {entry["Key"].removeprefix(f"{name}/") for entry in listed}


def test_a_group_is_copied_on_s3_and_a_damaged_input_leaves_nothing_there(minio: Minio) -> None:
    whole, damaged = make(minio, "whole", is_damaged=False), make(minio, "damaged", is_damaged=True)
    encoded = make(minio, "encoded", is_damaged=False)
    before = {name: keys(minio, name) for name in ("whole", "damaged")}
    found: dict[str, Any] = run_on_s3("merge", {"": minio.options()}, whole, damaged, encoded)

    copy = found[whole]
    assert (copy["status"], copy["copied"], copy["because"]) == ("committed", True, "")
    assert copy["spark"] == ROWS
    # The reader has the keys of the actor: nothing is committed unverified for want of them.
    assert copy["proof"] == found[encoded]["proof"] == ["rows", "duckdb", ""]
    assert (found[encoded]["copied"], found[encoded]["spark"]) == (False, ROWS)
    table = deltalake.DeltaTable(whole, storage_options=minio.options())
    assert table.to_pyarrow_table().sort_by("id").to_pylist() == ROWS
    (output,) = copy["outputs"]
    new = keys(minio, "whole") - before["whole"]
    assert {key for key in new if not key.startswith("_delta_log/")} == {output}
    # The rewrite's commit has a checkpoint, which is written in the driver, and nothing else is left in the log.
    of_version = f"_delta_log/{2:020d}"
    in_log = {key for key in new if key.startswith("_delta_log/")}
    assert in_log == {f"{of_version}.json", f"{of_version}.checkpoint.parquet", "_delta_log/_last_checkpoint"}
    last = json.load(minio.client.get_object(Bucket="lake", Key="whole/_delta_log/_last_checkpoint")["Body"])
    assert (last["version"], last["numOfAddFiles"]) == (2, 1)
    assert "checkpointSchema" not in last, "Delta's job would have named it"
    for version in range(2):
        minio.client.delete_object(Bucket="lake", Key=f"whole/_delta_log/{version:020d}.json")
    table = deltalake.DeltaTable(whole, storage_options=minio.options())
    assert table.to_pyarrow_table().sort_by("id").to_pylist() == ROWS
    body = minio.client.get_object(Bucket="lake", Key=f"whole/{output}")["Body"].read()
    assert pq.ParquetFile(io.BytesIO(body)).metadata.num_row_groups == 9

    assert "damaged/1.parquet has a page" in found[damaged]["error"]
    assert "the table is unchanged" in found[damaged]["error"]
    assert keys(minio, "damaged") == before["damaged"]
    assert not minio.client.list_multipart_uploads(Bucket="lake").get("Uploads")


@pytest.fixture
def s3() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.close()


def place(case: str) -> str:
    return f"{case}/_delta_log/{0:020d}.json"


def test_a_commit_is_made_once_or_not_at_all_and_its_writer_is_told_which(s3: S3Server) -> None:
    s3.put("lake", place("taken"), b"theirs\n")
    s3.put("lake", place("taken-unheard"), b"theirs\n")
    s3.gate.lost = {place("unheard"): [500, 503], place("taken-unheard"): [500]}
    # A number is no line: the store fails after it took the first one.
    lines = {"free": ["ours"], "taken": ["ours"], "unheard": ["ours"], "taken-unheard": ["ours"], "cut": ["first", 5]}
    commits = {f"s3://lake/{place(case)}": given for case, given in lines.items()}
    ends = run_on_s3("commit", {"": s3.options()}, commits)
    told = {case: ends[f"s3://lake/{place(case)}"] for case in lines}

    assert told.pop("cut"), "half a commit was taken for a whole one"
    taken = "FileAlreadyExistsException"
    assert told == {"free": "", "taken": taken, "unheard": "", "taken-unheard": taken}
    assert not any(s3.gate.lost.values()), "the answers were lost"
    held = {key.partition("/")[0]: s3.get("lake", key) for key in s3.keys("lake")}
    ours, theirs = b"ours\n", b"theirs\n"
    assert held == {"free": ours, "taken": theirs, "unheard": ours, "taken-unheard": theirs}
