"""What a reader's process keeps between groups, and what it says: nothing of a file, and no value."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from actor.proofread.buckets import keys_of_environment, secrets_of
from actor.proofread.locations import readable
from actor.proofread.model import DeleteForm, Deletes, Field, ProofFile, Reading
from actor.proofread.proofreader import Proofreader, ProofreadSettings
from actor.proofread.task import ReadEnding, Work
from shared.errors import Difference
from shared.paths.store_options import StoreOptions
from shared.policy.policy import Proofread
from tests.support.proofread_groups import group_of, read, stored
from tests.support.s3_server import S3Server
from tests.unit.actor.proofread.test_deleted_rows import PUFFIN_BODY, framed

COLUMNS = [Field("a", "int8")]


@pytest.mark.parametrize("work", [Work.ROWS, Work.ROWS_AGAIN])
@pytest.mark.parametrize("values", [[64321], [None, 64321]])
def test_no_answer_shows_a_value(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, work: Work, values: list[int]
) -> None:
    wide, narrow = pa.table({"a": pa.array(values, pa.int64())}), pa.table({"a": pa.array([7], pa.int8())})
    files = [stored(tmp_path / f"{name}.parquet", one) for name, one in (("in", wide), ("out", narrow))]
    for inputs, outputs in ((files[:1], files[1:]), (files[1:], files[:1])):
        found = read(connection, group_of(COLUMNS, inputs, outputs), work)
        assert (found.ending, "64321" in found.text) == (ReadEnding.UNREADABLE, False), found


def test_a_file_that_changes_between_two_groups_is_read_again(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """Of equal size and time, as a name that is used again may be."""
    path = tmp_path / "a.parquet"
    twin = stored(tmp_path / "b.parquet", pa.table({"a": pa.array([7] * 100, pa.int8())}), compression="none")
    for value, expected in ((7, ReadEnding.SAME), (8, ReadEnding.DIFFERENT)):
        file = stored(path, pa.table({"a": pa.array([value] * 100, pa.int8())}), compression="none")
        assert file.size_bytes == twin.size_bytes

        os.utime(path, (1, 1))
        assert read(connection, group_of(COLUMNS, [file], [twin])).ending is expected


@pytest.mark.parametrize("location", ["abfss://c@a/f.parquet", "s3://b/a*.parquet"])
def test_files_that_no_reader_addresses_are_said_so(connection: duckdb.DuckDBPyConnection, location: str) -> None:
    found = read(connection, group_of(COLUMNS, [ProofFile(location, 0)], []))
    assert found.ending is ReadEnding.UNREADABLE
    assert "reader for" in found.text or "pattern" in found.text


def test_files_that_are_gone_or_no_parquet_are_unreadable(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    (tmp_path / "no.parquet").write_bytes(b"no parquet at all")
    file = stored(tmp_path / "a.parquet", pa.table({"a": [7]}))
    for name in ("no.parquet", "gone.parquet"):
        for work in (Work.ROWS, Work.ROWS_AGAIN, Work.BYTES, Work.FINGERPRINT):
            group = group_of(COLUMNS, [replace(file, path=str(tmp_path / name))], [file])
            assert read(connection, group, work).ending is ReadEnding.UNREADABLE


def test_without_memory_for_files_and_numbers_a_difference_names_the_columns(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object) -> None:
        raise duckdb.OutOfMemoryException("no memory")

    monkeypatch.setattr("actor.proofread.comparison._keep_hashes", exhausted)
    files = [stored(tmp_path / f"{value}.parquet", pa.table({"a": pa.array([value], pa.int8())})) for value in (1, 2)]
    found = read(connection, group_of(COLUMNS, files[:1], files[1:]))
    assert (found.ending, found.columns, found.files) == (ReadEnding.DIFFERENT, ("a",), ())


def test_a_place_is_the_same_however_it_is_spelled() -> None:
    assert {readable(f"{scheme}/a/b") for scheme in ("", "file:", "file://")} == {"/a/b"}
    assert {readable(f"{scheme}://b/k") for scheme in ("s3", "s3a", "s3n")} == {"s3://b/k"}


LONG_COLUMNS = [Field("a", "int64")]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    made = S3Server("proofread")
    yield made
    made.close()


def put(server: S3Server, tmp_path: Path, key: str, values: list[int]) -> ProofFile:
    file = stored(tmp_path / "f.parquet", pa.table({"a": values}))
    server.put("proofread", key, Path(file.path).read_bytes())
    return ProofFile(f"s3a://proofread/{key}", file.size_bytes, len(values))


def test_rows_and_deletes_of_a_bucket_are_read_with_its_keys_and_a_difference_is_found(
    server: S3Server, tmp_path: Path
) -> None:
    server.put("proofread", "d.puffin", b"PFA1" + framed(PUFFIN_BODY))
    vector = Deletes(DeleteForm.PUFFIN_VECTOR, "s3://proofread/d.puffin", offset=4, size_bytes=len(framed(PUFFIN_BODY)))
    given = replace(put(server, tmp_path, "t/p=a b%20+ü/in.parquet", [0, 1, 2, 3]), deletes=(vector,))
    right, wrong = (
        put(server, tmp_path, f"t/{name}.parquet", values) for name, values in (("r", [2, 1]), ("w", [1, 3]))
    )
    settings = ProofreadSettings(stores=StoreOptions({"s3://proofread": server.options()}))
    proofreader = Proofreader(settings)
    proof = proofreader.check(group_of(LONG_COLUMNS, [given], [right], table="s3://proofread/t"), Proofread.STRICT)
    assert (proof.reading, proof.rows, proof.reader) == (Reading.ROWS, 2, "duckdb")
    with pytest.raises(Difference, match=r"w\.parquet"):
        proofreader.check(group_of(LONG_COLUMNS, [given], [wrong], table="s3://proofread/t"), Proofread.NEW)
    copied = group_of(LONG_COLUMNS, [right], [right], table="s3://proofread/t", copied=True)
    readings = [proofreader.check(copied, Proofread.NEW).reading for _ in range(3)]
    assert readings == [Reading.ROWS, Reading.NONE, Reading.NONE]
    proofreader.close()


def test_without_its_keys_a_bucket_is_unverified_and_no_key_is_shown(server: S3Server, tmp_path: Path) -> None:
    file = put(server, tmp_path, "t/x.parquet", [1])
    options = server.options(access_key_id="stranger", secret_access_key="quiet")  # noqa: S106
    proofreader = Proofreader(ProofreadSettings(stores=StoreOptions({"s3://": options})))
    proof = proofreader.check(group_of(LONG_COLUMNS, [file], [file]), Proofread.NEW)
    proofreader.close()
    assert (proof.reading, "403" in proof.unverified_because) == (Reading.NONE, True)
    assert "quiet" not in proof.unverified_because


def test_each_bucket_has_its_own_secret_of_options_in_either_spelling_and_of_keys_that_others_hold() -> None:
    stores = StoreOptions(
        {
            "": {"region": "eu-west-1"},
            "s3://a": {"AWS_ENDPOINT_URL": "http://h:9000/", "aws_access_key_id": "k", "aws_secret_access_key": "s"},
            "s3://b": {
                "fs.s3a.endpoint": "h.example",
                "virtual_hosted_style_request": "true",
                "fs.s3a.connection.x": "1",
            },
            "s3://c": {"skip_signature": "true"},
        }
    )
    files = [ProofFile(f"{scheme}://{bucket}/f", 0) for scheme, bucket in (("s3", "a"), ("s3a", "b"), ("s3", "c"))]
    found = secrets_of(
        group_of(LONG_COLUMNS, files, [ProofFile("/local", 0)]), stores, lambda bucket: {"access_key_id": bucket}
    )
    by_path = {"ENDPOINT": "h:9000", "USE_SSL": "false", "URL_STYLE": "path"}
    by_host = {"ENDPOINT": "h.example", "USE_SSL": "true", "URL_STYLE": "vhost"}
    assert found == {
        "a": {"KEY_ID": "k", "SECRET": "s", "REGION": "eu-west-1", **by_path},
        "b": {"KEY_ID": "b", "REGION": "eu-west-1", **by_host},
        "c": {"REGION": "eu-west-1"},
    }


def test_keys_of_the_environment_are_those_that_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    assert keys_of_environment("b") == {}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "")
    assert keys_of_environment("b") == {"access_key_id": "k"}
