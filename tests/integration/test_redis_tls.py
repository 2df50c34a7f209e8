"""Redis behind TLS: deciders, actors and the doctor trust one authority, and show a certificate of their own.

A proxy ends TLS, because the server of the tests has none.
"""

import datetime as dt
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from actor.queue_executor import SyncQueueExecutor, connect
from services.cli.checks.finding import FindingLevel
from services.cli.checks.redis_server import check_redis
from services.settings import parse_redis_url
from shared.errors import RetryableError
from shared.queue import queries
from shared.retry import RetryPolicy
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.redis

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


class TlsProxy(Proxy):
    """Takes connections whose client has a certificate of the authority."""

    def __init__(self, target_port: int, authority: Authority) -> None:
        issued = authority.issue("server")
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(issued.certificate, issued.key)
        self._context.load_verify_locations(authority.certificate)
        self._context.verify_mode = ssl.CERT_REQUIRED
        super().__init__(target_port)

    def opened(self, client: socket.socket) -> socket.socket:
        return self._context.wrap_socket(client, server_side=True)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


@pytest.fixture
def url(own_redis_server: RedisServer, authority: Authority) -> Iterator[str]:
    """URL without any options."""
    proxy = TlsProxy(own_redis_server.port, authority)
    yield f"rediss://127.0.0.1:{proxy.port}/0"
    proxy.close()


def options(authority: Authority) -> str:
    """Return the options of the page."""
    own = authority.issue("client")
    return f"?ssl_ca_certs={authority.certificate}&ssl_certfile={own.certificate}&ssl_keyfile={own.key}"


def test_deciders_actors_and_the_doctor_speak_tls(url: str, authority: Authority, tmp_path: Path) -> None:
    whole = parse_redis_url(url + options(authority))
    with LiveDecider(decider_settings(whole, state=(tmp_path / "registry").as_uri())) as live:
        live.register(WrittenTable(tmp_path / "orders").path, "orders")
        assert live.get("/v1/tables/orders")["name"] == "orders"
        with connect(whole) as client:
            assert SyncQueueExecutor(client, "default").run(queries.depth("default")).depth
        assert check_redis(whole)[0].status is FindingLevel.OK


@pytest.mark.parametrize("missing", ["authority", "certificate"])
def test_who_does_not_trust_or_is_not_trusted_gets_no_connection(
    url: str, authority: Authority, tmp_path: Path, missing: str
) -> None:
    if missing == "authority":
        whole = url + options(Authority(tmp_path / "other", "other"))
    else:
        whole = f"{url}?ssl_ca_certs={authority.certificate}"
    with connect(whole) as client, pytest.raises(RetryableError, match=r"did not answer depth"):
        SyncQueueExecutor(client, "default", retry_policy=RetryPolicy(1, 0.01)).run(queries.depth("default"))
