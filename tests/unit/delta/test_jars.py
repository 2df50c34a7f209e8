"""The list of jars is the one of the installed delta-spark, and every deviation from it is seen."""

import hashlib
from importlib import metadata
from pathlib import Path

import pyspark
import pytest

from actor.jvm import jars
from actor.jvm.java import JavaHome, JavaSource
from shared.errors import PermanentError


class TwoJars(jars.JarSet):
    """A set that wants `a.jar` and `b.jar`, which hold their own letter."""

    def digests(self) -> dict[str, str]:
        return {f"{letter}.jar": hashlib.sha256(letter.encode()).hexdigest() for letter in "ab"}


TWO = TwoJars("tests", (), (), "", 0)


def test_the_package_is_that_of_the_locked_delta_spark_and_pyspark() -> None:
    spark = ".".join(metadata.version("pyspark").split(".")[:2])
    assert f"io.delta:delta-spark_{spark}_2.13:{metadata.version('delta-spark')}" == jars.DELTA_PACKAGE
    assert any(jars.DELTA_PACKAGE.split(":")[2] in name and "delta-spark" in name for name in jars.DELTA.digests())


def test_the_file_system_for_s3_is_of_the_hadoop_that_spark_ships() -> None:
    group, artifact, release = jars.HADOOP_AWS.split(":")
    assert f"{group}_{artifact}-{release}.jar" in jars.S3.digests()
    assert list((Path(pyspark.__file__).parent / "jars").glob(f"hadoop-client-api-{release}.jar"))


@pytest.mark.parametrize("wanted", [jars.DELTA, jars.S3])
def test_every_package_that_is_asked_for_is_on_the_list(wanted: jars.JarSet) -> None:
    for package in wanted.packages:
        assert "{}_{}-{}.jar".format(*package.split(":")) in wanted.digests()


def test_missing_and_damaged_jars_are_named(tmp_path: Path) -> None:
    assert jars.look_up(tmp_path, TWO).missing == ("a.jar", "b.jar")
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "a.jar").write_bytes(b"a")
    (tmp_path / "jars" / "b.jar").write_bytes(b"cut")
    found = jars.look_up(tmp_path, TWO)
    assert (found.missing, found.damaged, found.complete) == ((), ("b.jar",), False)
    (tmp_path / "jars" / "b.jar").write_bytes(b"b")
    assert jars.look_up(tmp_path, TWO).complete


def test_a_fetch_that_brings_nothing_says_what_spark_said(tmp_path: Path) -> None:
    """spark-submit runs a java that fails like an unreachable mirror; no JVM is started."""
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'Server access error: connection refused'\nexit 1\n")
    java.chmod(0o755)
    home = JavaHome(tmp_path / "home", "21.0.8", JavaSource.GIVEN)
    with pytest.raises(PermanentError, match="2 of 2 jars did not arrive") as caught:
        jars.fetch(tmp_path / "ivy", home, environment={"PATH": "/usr/bin:/bin"}, progress=lambda _: None, wanted=TWO)
    assert "LAKEWRIGHT_IVY_DIR" in str(caught.value)
