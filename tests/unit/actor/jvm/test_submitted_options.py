"""Options reach the JVM and no other user of the machine; those of stores become Hadoop's."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from actor.jvm.s3a import BASE, hadoop_settings
from actor.jvm.submitted_options import submitted_options
from shared.errors import InvalidInput
from shared.paths.store_options import StoreOptions
from tests.support.fake_programs import fake_java

ROOT = Path(__file__).resolve().parents[4]
OPTIONS = {
    "spark.hadoop.fs.s3a.secret.key": "a/Secret+Key==",
    "spark.odd": " = : # ! \\ ä 😀\n ",
    "spark.driver.memory": "1g",
}


LAUNCH = """
import sys
from pathlib import Path
from actor.jvm.spark import launch
from shared.errors import PermanentError
from tests.unit.actor.jvm.test_submitted_options import OPTIONS
try:
    launch(OPTIONS, work_dir=Path(sys.argv[1]), java_home=Path(sys.argv[2]), local=True)
except PermanentError as problem:
    print(problem)
"""


def test_no_argument_of_the_jvm_has_an_option_or_its_value(tmp_path: Path) -> None:
    arguments, work = tmp_path / "arguments", tmp_path / "work"
    java = fake_java(tmp_path / "java", "17.0.1", then=f'echo "$*" >> {arguments}', exit_code=1)
    # In a process of its own: PySpark leaves the pipe to a JVM that ended at once to the garbage collector.
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH, str(work), str(java)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "Spark did not start" in done.stdout
    assert "--properties-file" in arguments.read_text()
    for word in ("Secret", "secret.key", "spark.odd"):
        assert word not in arguments.read_text()
    assert [file.name for file in work.iterdir()] == ["jvm.log"], "the options are deleted"


def test_the_file_is_this_users_alone_and_replaces_what_lay_there(tmp_path: Path) -> None:
    (tmp_path / "submitted.properties").symlink_to(tmp_path / "elsewhere")
    with submitted_options(OPTIONS, tmp_path) as arguments:
        file = Path(arguments.split()[-2])
        assert stat.S_IMODE(file.lstat().st_mode) == 0o600
        assert stat.S_ISREG(file.lstat().st_mode)
        written = dict(line.split("=") for line in file.read_text().splitlines())
        assert {_read(name): _read(value) for name, value in written.items()} == OPTIONS
    assert list(tmp_path.iterdir()) == []


def _read(escaped: str) -> str:
    """Return what Java reads: a surrogate pair is two escapes."""
    return escaped.encode("ascii").decode("unicode_escape").encode("utf-16-be", "surrogatepass").decode("utf-16-be")


MINIO = {"endpoint": "http://127.0.0.1:9000", "allow_http": "true", "aws_access_key_id": "k", "secret_access_key": "s"}


def test_without_options_amazons_own_order_of_credentials_applies() -> None:
    assert hadoop_settings(StoreOptions()) == dict(BASE)
    assert BASE["fs.s3a.aws.credentials.provider"].endswith("DefaultCredentialsProvider")


def test_an_own_endpoint_is_spoken_to_by_path_with_the_given_keys() -> None:
    found = hadoop_settings(StoreOptions({"": MINIO}))
    assert found["fs.s3a.endpoint"] == "http://127.0.0.1:9000"
    assert (found["fs.s3a.access.key"], found["fs.s3a.secret.key"]) == ("k", "s")
    assert found["fs.s3a.path.style.access"] == "true"
    assert found["fs.s3a.aws.credentials.provider"].endswith("SimpleAWSCredentialsProvider")
    with_token = hadoop_settings(StoreOptions({"": {**MINIO, "session_token": "t"}}))
    assert with_token["fs.s3a.aws.credentials.provider"].endswith("TemporaryAWSCredentialsProvider")


def test_a_bucket_has_options_of_its_own_and_other_stores_are_none_of_hadoops_business() -> None:
    options = {"s3://": {"region": "eu-west-1"}, "s3://open": {"skip_signature": "true"}, "gs://": {"token": "x"}}
    found = hadoop_settings(StoreOptions(options))
    assert found["fs.s3a.endpoint.region"] == "eu-west-1"
    assert found["fs.s3a.bucket.open.aws.credentials.provider"].endswith("AnonymousAWSCredentialsProvider")
    assert not any("session" in name for name in found)


def test_hadoops_own_settings_pass_and_what_cannot_be_said_is_refused() -> None:
    found = hadoop_settings(StoreOptions({"s3://b": {"fs.s3a.connection.maximum": "10"}}))
    assert found["fs.s3a.bucket.b.connection.maximum"] == "10"
    with pytest.raises(InvalidInput, match="'conditional_put'"):
        hadoop_settings(StoreOptions({"": {"conditional_put": "etag"}}))
