"""People may set any option of Spark but those that the actor depends on; a cluster's defaults are theirs to change."""

import json
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.jvm import spark
from actor.jvm.spark_options import CLUSTER_DEFAULTS, OWN, OWN_PREFIXES, parse_spark_options
from services.actor.__main__ import known_secrets
from services.actor.settings import SPARK_OPTIONS, actor_settings
from shared.errors import InvalidInput

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
