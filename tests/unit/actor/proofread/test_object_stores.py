"""Groups on S3 are read with the keys of each bucket."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from actor.proofread.buckets import keys_of_environment, secrets_of
from actor.proofread.model import DeleteForm, Deletes, Field, ProofFile, Reading
from actor.proofread.proofreader import Proofreader, ProofreadSettings
from shared.errors import Difference
from shared.paths.store_options import StoreOptions
from shared.policy.policy import Proofread
from tests.support.proofread_groups import group_of, stored
from tests.support.s3_server import S3Server
from tests.unit.actor.proofread.test_vectors import PUFFIN_BODY, framed

COLUMNS = [Field("a", "int64")]


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
    proof = proofreader.check(group_of(COLUMNS, [given], [right], table="s3://proofread/t"), Proofread.STRICT)
    assert (proof.reading, proof.rows, proof.reader) == (Reading.ROWS, 2, "duckdb")
    with pytest.raises(Difference, match=r"w\.parquet"):
        proofreader.check(group_of(COLUMNS, [given], [wrong], table="s3://proofread/t"), Proofread.NEW)
    copied = group_of(COLUMNS, [right], [right], table="s3://proofread/t", copied=True)
    readings = [proofreader.check(copied, Proofread.NEW).reading for _ in range(3)]
    assert readings == [Reading.ROWS, Reading.NONE, Reading.NONE]
    proofreader.close()


def test_without_its_keys_a_bucket_is_unverified_and_no_key_is_shown(server: S3Server, tmp_path: Path) -> None:
    file = put(server, tmp_path, "t/x.parquet", [1])
    options = server.options(access_key_id="stranger", secret_access_key="quiet")  # noqa: S106
    proofreader = Proofreader(ProofreadSettings(stores=StoreOptions({"s3://": options})))
    proof = proofreader.check(group_of(COLUMNS, [file], [file]), Proofread.NEW)
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
        group_of(COLUMNS, files, [ProofFile("/local", 0)]), stores, lambda bucket: {"access_key_id": bucket}
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
