"""People may set options of Spark but those that the actor depends on; they reach the JVM and no other user."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from actor.jvm import spark
from actor.jvm.s3a import BASE, hadoop_settings
from actor.jvm.spark_options import CLUSTER_DEFAULTS, OWN, OWN_PREFIXES, parse_spark_options, submitted_options
from services.actor.__main__ import known_secrets
from services.actor.settings import SPARK_OPTIONS, actor_settings
from shared.errors import InvalidInput
from shared.paths.store_options import StoreOptions
from tests.support.fake_programs import fake_java

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

FREE = {
    "spark.databricks.delta.delta.log.cacheSize",
    "spark.databricks.delta.snapshotPartitions",
    "spark.driver.bindAddress",
    "spark.driver.host",
    "spark.sql.shuffle.partitions",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism",
    "spark.ui.enabled",
    "spark.ui.showConsoleProgress",
}
"""Options that the actor sets, and works with other values of."""


def configuration(tmp_path: Path, master: str, options: dict[str, str]) -> dict[str, str]:
    settings = spark.SparkSettings(work_dir=tmp_path, ivy_dir=tmp_path, master=master, extra=options)
    return spark.configuration(settings)


@pytest.fixture(autouse=True)
def _no_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "_jars", lambda _settings: [Path("/jars/delta.jar")])


def test_options_are_read_as_spark_writes_them() -> None:
    text = '{"spark.executor.memory": "4g", "spark.cores.max": 8, "spark.ui.enabled": true}'
    assert parse_spark_options(text) == {
        "spark.executor.memory": "4g", "spark.cores.max": "8", "spark.ui.enabled": "true"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("spark.cores.max=8", "Expecting value"),
        ("[1]", "a JSON object"),
        ('{"spark.cores.max": [8]}', "plain values"),
        ('{"cores": 8}', "cores is no option of Spark"),
        *((json.dumps({name: "x"}), f"{name} is set by the actor itself") for name in sorted(OWN)),
        *((json.dumps({f"{one}x": "x"}), f"{one}x is set by the actor itself") for one in OWN_PREFIXES),
    ],
)
def test_what_is_no_option_or_the_actors_own_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem) as refused:
        actor_settings({SPARK_OPTIONS: text})
    assert refused.value.field == SPARK_OPTIONS


def test_an_error_repeats_no_value_and_secrets_are_kept_out_of_what_the_jvm_printed() -> None:
    secret = "0123456789abcdef"  # noqa: S105 - of no one
    with pytest.raises(InvalidInput) as refused:
        actor_settings({SPARK_OPTIONS: json.dumps({"spark.authenticate.secret": secret, "spark.jars": "x"})})
    assert secret not in str(refused.value)
    settings = actor_settings({SPARK_OPTIONS: json.dumps({"spark.authenticate.secret": secret})})
    assert secret in known_secrets(settings, {})
    assert secret not in repr(settings)


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077"])
def test_each_option_that_the_actor_sets_is_its_own_or_free(tmp_path: Path, master: str) -> None:
    found = configuration(tmp_path, master, {})
    rest = {name for name in found if name not in OWN and not name.startswith(OWN_PREFIXES)}
    assert rest <= FREE | CLUSTER_DEFAULTS.keys()


def test_executors_of_a_cluster_are_sent_the_jars_and_returned_when_idle_unless_people_set_otherwise(
    tmp_path: Path,
) -> None:
    found = configuration(tmp_path, "spark://host:7077", {})
    assert found["spark.jars"] == "/jars/delta.jar"
    assert found["spark.dynamicAllocation.enabled"] == "true"
    assert found["spark.speculation"] == "false"
    fixed = configuration(tmp_path, "spark://host:7077", {"spark.dynamicAllocation.enabled": "false"})
    assert fixed["spark.dynamicAllocation.enabled"] == "false"
    assert "spark.dynamicAllocation.enabled" not in configuration(tmp_path, "local[2]", {})


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
from tests.unit.actor.jvm.test_spark_options import OPTIONS
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
