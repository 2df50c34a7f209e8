"""The key store written in Python is one that Java's own tool accepts, with the same certificates in it."""

import ssl
from pathlib import Path

import pytest

from actor.jvm.trust_store import certificates, java_key_store
from shared.errors import InvalidInput


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
