"""The list of jars is the one of the installed delta-spark, and every deviation from it is seen."""

import hashlib
from importlib import metadata
from pathlib import Path

import pytest

from actor.delta import jars
from actor.delta.java import JavaHome, JavaSource
from shared.errors import PermanentError


@pytest.fixture
def two_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        jars, "DIGESTS", {"a.jar": hashlib.sha256(b"a").hexdigest(), "b.jar": hashlib.sha256(b"b").hexdigest()}
    )


def test_the_package_is_that_of_the_locked_delta_spark_and_pyspark() -> None:
    spark = ".".join(metadata.version("pyspark").split(".")[:2])
    assert f"io.delta:delta-spark_{spark}_2.13:{metadata.version('delta-spark')}" == jars.PACKAGE
    assert any(jars.PACKAGE.split(":")[2] in name and "delta-spark" in name for name in jars.DIGESTS)


@pytest.mark.usefixtures("two_jars")
def test_missing_and_damaged_jars_are_named(tmp_path: Path) -> None:
    assert jars.look_up(tmp_path).missing == ("a.jar", "b.jar")
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "a.jar").write_bytes(b"a")
    (tmp_path / "jars" / "b.jar").write_bytes(b"cut")
    found = jars.look_up(tmp_path)
    assert (found.missing, found.damaged, found.complete) == ((), ("b.jar",), False)
    (tmp_path / "jars" / "b.jar").write_bytes(b"b")
    assert jars.look_up(tmp_path).complete


@pytest.mark.usefixtures("two_jars")
def test_a_fetch_that_brings_nothing_says_what_spark_said(tmp_path: Path) -> None:
    """spark-submit runs a java that fails like an unreachable mirror; no JVM is started."""
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'Server access error: connection refused'\nexit 1\n")
    java.chmod(0o755)
    home = JavaHome(tmp_path / "home", "21.0.8", JavaSource.GIVEN)
    with pytest.raises(PermanentError, match="2 of 2 jars did not arrive") as caught:
        jars.fetch(tmp_path / "ivy", home, environment={"PATH": "/usr/bin:/bin"}, progress=lambda _: None)
    assert "LAKEWRIGHT_IVY_DIR" in str(caught.value)
