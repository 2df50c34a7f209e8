"""An actor runs the classes of the sources that it was released with, or it does not start."""

import zipfile
from pathlib import Path

import pytest

from actor.jvm import own_jar
from shared.errors import PermanentError


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
