"""The jars are those of the installed delta-spark and the one of our own sources; every deviation is seen."""

import fcntl
import hashlib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from queue import SimpleQueue

import pyspark
import pytest

from actor.jvm import jars, own_jar
from actor.jvm.java import JavaHome, JavaSource
from shared.errors import PermanentError
from tests.support.time_limits import scaled


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


def java_that(folder: Path, script: str) -> JavaHome:
    """A Java home whose `java` is a shell script: spark-submit runs it, and no JVM is started."""
    java = folder / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return JavaHome(folder / "home", "21.0.8", JavaSource.GIVEN)


ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def test_a_fetch_that_brings_nothing_says_what_spark_said(tmp_path: Path) -> None:
    home = java_that(tmp_path, "echo 'Server access error: connection refused'; exit 1")
    with pytest.raises(PermanentError, match="2 of 2 jars did not arrive") as caught:
        jars.fetch(tmp_path / "ivy", home, environment=ENVIRONMENT, progress=lambda _: None, wanted=TWO)
    assert "LAKEWRIGHT_IVY_DIR" in str(caught.value)


def test_two_processes_never_fetch_into_one_directory_at_the_same_time(tmp_path: Path) -> None:
    """Ivy's cache has no lock of its own: of two that download one jar, one fails."""
    home = java_that(tmp_path, f"touch {tmp_path}/java-ran; exit 1")
    ivy = tmp_path / "ivy"
    (ivy / "jars").mkdir(parents=True)
    lines: SimpleQueue[str] = SimpleQueue()
    with (ivy / jars.FETCH_LOCK).open("w") as other, ThreadPoolExecutor(1) as thread:
        fcntl.flock(other, fcntl.LOCK_EX)
        fetched = thread.submit(jars.fetch, ivy, home, environment=ENVIRONMENT, progress=lines.put, wanted=TWO)
        assert "waiting for another process" in lines.get(timeout=scaled(20))
        for letter in "ab":
            (ivy / "jars" / f"{letter}.jar").write_text(letter)
        fcntl.flock(other, fcntl.LOCK_UN)
        assert fetched.result(timeout=scaled(20)).complete
    assert not (tmp_path / "java-ran").exists()


def test_a_fetch_that_loses_a_download_asks_again_for_what_is_missing(tmp_path: Path) -> None:
    jar_files = tmp_path / "ivy" / "jars"
    home = java_that(
        tmp_path, f"cd {jar_files}; if [ -e a.jar ]; then printf b >b.jar; else printf a >a.jar; fi; exit 1"
    )
    jar_files.mkdir(parents=True)
    lines: list[str] = []
    fetched = jars.fetch(tmp_path / "ivy", home, environment=ENVIRONMENT, progress=lines.append, wanted=TWO)
    assert fetched.complete
    assert lines == ["1 of 2 jars did not arrive; attempt 2 of 3"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One source, and no jar yet."""
    sources = tmp_path / "java"
    (sources / "delta").mkdir(parents=True)
    (sources / "delta" / "A.java").write_text("class A {}")
    monkeypatch.setattr(own_jar, "SOURCES", sources)
    monkeypatch.setattr(own_jar, "JAR", tmp_path / "lakewright.jar")
    return tmp_path


def pack(state: str) -> None:
    with zipfile.ZipFile(own_jar.JAR, "w") as archive:
        archive.writestr(own_jar.MANIFEST, own_jar.manifest(state))


def test_a_jar_of_these_sources_is_used(package: Path) -> None:
    pack(own_jar.digest())
    assert own_jar.own_jar() == package / "lakewright.jar"


def test_a_missing_jar_is_reported_with_what_makes_it(package: Path) -> None:
    with pytest.raises(PermanentError, match=rf"{package}/lakewright.jar is missing.*-m services.java_jar"):
        own_jar.own_jar()
    (package / "lakewright.jar").write_bytes(b"half a j")
    with pytest.raises(PermanentError, match="is missing"):
        own_jar.own_jar()


@pytest.mark.parametrize("change", ["text", "name"])
def test_a_jar_of_other_sources_is_refused(package: Path, change: str) -> None:
    pack(own_jar.digest())
    source = package / "java" / "delta" / "A.java"
    if change == "text":
        source.write_text("class A { int other; }")
    else:
        source.rename(source.with_name("C.java"))
    with pytest.raises(PermanentError, match=rf"was not compiled from the sources in {package}/java"):
        own_jar.own_jar()


def test_a_line_of_the_manifest_is_as_short_as_the_format_asks_for() -> None:
    assert max(map(len, own_jar.manifest(own_jar.digest()).splitlines())) <= 72
