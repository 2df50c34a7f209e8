"""An authority of certificates for one test, and what it issues to a server and a client on this machine."""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Issued:
    """Files of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """Issues certificates for 127.0.0.1 into a folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._name = folder, _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = folder / f"{name}.pem"
        made = _builder(self._name, self._name, self._key).add_extension(x509.BasicConstraints(True, None), True)
        self.certificate.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str) -> Issued:
        """Issue a certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        made = _builder(_name(name), self._name, key).add_extension(here, False).sign(self._key, hashes.SHA256())
        issued = Issued(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        issued.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        form = serialization.PrivateFormat.TraditionalOpenSSL
        plain = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        issued.key.write_bytes(plain)
        return issued


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID)
        .not_valid_after(now + VALID)
    )
