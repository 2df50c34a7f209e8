"""Redis behind TLS: deciders, actors and the doctor trust one authority, and show a certificate of their own.

A proxy ends TLS, because the server of the tests has none.
"""

import datetime as dt
import ipaddress
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from actor.queue_executor import SyncQueueExecutor, connect
from services.cli.checks.finding import FindingLevel
from services.cli.checks.redis_server import check_redis
from services.settings import parse_redis_url
from shared.errors import RetryableError
from shared.queue import commands, keys, queries
from shared.queue.model import Band, JobKey, JobRequest, RunResult
from shared.retry import RetryPolicy
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.stack import free_port
from tests.support.waiting import until

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


PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
QUEUE = "default"


def documented_rights() -> list[str]:
    """Return the arguments of `ACL SETUSER` as the page has them."""
    (found,) = re.findall(r"^ACL SETUSER lakewright (.+?)\n```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return str(found).replace("\\\n", " ").replace(">PASSWORD", ">secret").split()


@pytest.fixture
def limited_url(own_redis_server: RedisServer) -> Iterator[str]:
    """URL of the user; whatever it was refused fails the test."""
    with own_redis_server.client() as client:
        client.execute_command("ACL", "SETUSER", "lakewright", *documented_rights())
        yield f"redis://lakewright:secret@127.0.0.1:{own_redis_server.port}/0"
        refused = client.acl_log()
    assert refused == []


def test_deciders_and_actors_work_with_the_documented_rights(limited_url: str, tmp_path: Path) -> None:
    state = (tmp_path / "registry").as_uri()
    with LiveDecider(decider_settings(limited_url, state=state, roots=(tmp_path.as_uri(),))) as live:
        name = live.register(WrittenTable(tmp_path / "orders").path, "orders")
        live.post(f"/v1/tables/{name}/pause", {}).raise_for_status()
        live.post(f"/v1/tables/{name}/resume", {}).raise_for_status()
        for path in ("/v1/queue", "/v1/backlog", "/v1/status", "/v1/actors", f"/v1/tables/{name}/decisions"):
            live.get(path)
        for task in live.services.background:
            if task not in ("refresh_queue", "finished_runs", "sweep"):  # These wait, and run by themselves.
                live.run(live.task(task).run_once())
        with connect(limited_url) as client:
            queue = SyncQueueExecutor(client, QUEUE)
            key = JobKey("orders-1", "p", "compact")
            queue.run(commands.enqueue(QUEUE, JobRequest(key, "sales", Band.NORMAL, 5, 1, 1)))
            (claim,) = queue.run(commands.claim(QUEUE, worker="w", nonce="a", slots=1, lease_ms=60_000))
            how = {"worker": "w", "nonce": "b", "cost_bytes": 1, "seen_version": 1, "result": "{}"}
            queue.run(commands.finish(QUEUE, id=claim.id, token=claim.token, run_result=RunResult.DONE, **how))
        live.client.delete(f"/v1/tables/{name}").raise_for_status()
        until("it is ready", lambda: live.client.get("/readyz").is_success)


def test_a_node_of_a_cluster_is_refused_with_what_to_do_instead() -> None:
    # Its own choice, 10,000 above the other port, may be beyond the last one.
    bus = ("cluster-port", str(free_port()))
    with RedisServer(extra=(("cluster-enabled", "yes"), bus)) as server:
        with server.client() as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
            until("the cluster is up", lambda: b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO"))
        with LiveDecider(decider_settings(server.url)) as live:
            ready = live.client.get("/readyz")
            assert (ready.status_code, "node of a cluster" in ready.json()["detail"]) == (503, True)


@pytest.mark.parametrize(
    "refused", ["FLUSHALL", "CONFIG GET dir", "KEYS *", "GET other", "SHUTDOWN", "ACL LIST", "SAVE"]
)
def test_the_documented_rights_include_no_others(own_redis_server: RedisServer, refused: str) -> None:
    with own_redis_server.client() as client:
        client.execute_command("ACL", "SETUSER", "lakewright", *documented_rights())
    url = f"redis://lakewright:secret@127.0.0.1:{own_redis_server.port}/0"
    with redis.Redis.from_url(url) as client, pytest.raises(redis.exceptions.NoPermissionError):
        client.execute_command(*refused.split())
    with redis.Redis.from_url(url) as client:
        assert client.exists(keys.TABLES) == 0


def with_rights(server: RedisServer, *without: str) -> str:
    """Return the URL of a user with the documented rights but these."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "lakewright", *documented_rights(), *(f"-{one}" for one in without))
    return f"redis://lakewright:secret@127.0.0.1:{server.port}/0"


def test_without_rights_that_only_tidy_up_everything_else_works(
    own_redis_server: RedisServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url = with_rights(own_redis_server, "bgrewriteaof", "function|list", "function|delete")
    with LiveDecider(decider_settings(url)) as live:
        live.register(WrittenTable(tmp_path / "orders").path, "orders")
        for _ in range(2):
            for task in ("aof_rewrite", "library_cleanup"):
                live.run(live.task(task).run_once())
        until("it is ready", lambda: live.client.get("/readyz").is_success)
    stated = capfd.readouterr().err
    assert [stated.count(f"effect='{effect}'") for effect in ("the file is left as it is", "old libraries stay")] == [
        1,
        1,
    ]


def test_without_the_right_to_load_functions_a_decider_is_not_ready_and_names_it(own_redis_server: RedisServer) -> None:
    with LiveDecider(decider_settings(with_rights(own_redis_server, "function|load"))) as live:
        ready = live.client.get("/readyz")
        assert ready.status_code == 503
        assert "function|load" in ready.json()["detail"]
        assert "docs/deploy.md lists what a user of Redis needs" in ready.json()["detail"]
