"""Converts certificates in PEM into a Java key store, so that the bundled Java trusts what the machine trusts.

Java reads no PEM bundle, and importing with keytool starts a JVM per certificate. The JKS format holds public
certificates as they are; its digest only guards against damage, so nothing here is a secret.
"""

import hashlib
import re
import ssl
import struct
from collections.abc import Iterable
from pathlib import Path

from shared.errors import InvalidInput

PASSWORD = "changeit"  # noqa: S105 - Java's well-known default: a trust store holds nothing secret
_MAGIC = 0xFEEDFEED
_VERSION = 2
_TRUSTED_CERTIFICATE = 2
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def certificates(bundle: Path) -> tuple[bytes, ...]:
    """The certificates of a PEM file in DER form, each once, in the file's order.

    Raises:
        InvalidInput: the file cannot be read or holds no certificate.
    """
    try:
        text = bundle.read_text(encoding="ascii", errors="replace")
        found = tuple(dict.fromkeys(ssl.PEM_cert_to_DER_cert(block) for block in _CERTIFICATE.findall(text)))
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"The CA bundle {bundle} cannot be read ({error}); correct or unset SSL_CERT_FILE", field="SSL_CERT_FILE"
        ) from error
    if not found:
        raise InvalidInput(
            f"The CA bundle {bundle} holds no certificate; correct or unset SSL_CERT_FILE", field="SSL_CERT_FILE"
        )
    return found


def java_key_store(trusted: Iterable[bytes]) -> bytes:
    """A JKS key store of trusted DER certificates; equal input gives equal bytes (the entries carry no time)."""
    entries = [_entry(alias=f"ca{number}", der=der) for number, der in enumerate(trusted)]
    body = struct.pack(">III", _MAGIC, _VERSION, len(entries)) + b"".join(entries)
    # The salt is part of the format (sun.security.provider.JavaKeyStore.getPreKeyedHash).
    digest = hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body, usedforsecurity=False)
    return body + digest.digest()


def _entry(*, alias: str, der: bytes) -> bytes:
    created_ms = 0
    return (
        struct.pack(">I", _TRUSTED_CERTIFICATE)
        + _text(alias)
        + struct.pack(">q", created_ms)
        + _text("X.509")
        + struct.pack(">I", len(der))
        + der
    )


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">H", len(encoded)) + encoded
