"""The client of Unity catalogs on real connections: limits of time and size, and whom the token is shown to."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from services.catalog_options import UnityClient
from shared import bounded_answer
from shared.errors import PermanentError, RetryableError
from shared.unity.exchange import UnityRequest
from shared.unity.options import UnityOptions
from tests.support.unity_server import PREFIX, TOKEN, UnityServer, unity_server

ASK = UnityRequest("tables/a.b.c")


@pytest.fixture
def unity() -> Iterator[UnityServer]:
    with unity_server() as server:
        yield server


def client(uri: str, *, timeout_s: float = 30.0, token: str = TOKEN) -> UnityClient:
    return UnityClient("unity", UnityOptions(uri, ("file:///lake",), token, timeout_s=timeout_s))


@contextmanager
def raw_server(answer: bytes, *, then_closes: bool) -> Iterator[str]:
    """Serve one connection: send these bytes, and close it, or keep it open and silent."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        ended = threading.Event()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)
                if not then_closes:
                    ended.wait()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            thread.join()


def test_status_and_body_are_returned_whatever_they_are(unity: UnityServer) -> None:
    unity.put("a.b.c", "file:///lake/c")
    assert client(unity.uri).send(ASK).status == 200
    assert client(unity.uri).send(UnityRequest("tables/a.b.d")).status == 404
    assert client(unity.uri, token="").send(ASK).status == 401


def test_a_redirect_is_not_followed(unity: UnityServer) -> None:
    """The token would be sent to wherever it leads."""
    with unity_server() as other:
        unity.fault = (307, f"{other.uri}/tables/a.b.c".encode())
        assert client(unity.uri).send(ASK).status == 307
        assert other.requests.total() == 0
    assert unity.requests == {f"GET {PREFIX}/tables/a.b.c": 1}


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
def test_an_answer_that_does_not_come_to_its_end_is_asked_for_again(answer: bytes) -> None:
    for then_closes, timeout_s in ((True, 30.0), (False, 0.5)):
        with raw_server(answer, then_closes=then_closes) as uri, pytest.raises(RetryableError, match="catalog unity"):
            client(uri, timeout_s=timeout_s).send(ASK)


def test_a_server_that_is_not_there_is_asked_again() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(RetryableError, match=f"127.0.0.1:{port}: no answer"):
        client(f"http://127.0.0.1:{port}").send(ASK)


def test_an_answer_beyond_the_limit_is_not_read(unity: UnityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    unity.put("a.b.c", "file:///lake/c", comment="x" * 5_000)
    monkeypatch.setattr(bounded_answer, "MAX_ANSWER_BYTES", 4_000)
    with pytest.raises(PermanentError, match="more than 4000 bytes"):
        client(unity.uri).send(ASK)


def test_no_error_shows_the_token() -> None:
    for options in (UnityOptions("http://127.0.0.1:1", ("file:///lake",), "s3cret"),):
        with pytest.raises(RetryableError) as refused:
            UnityClient("unity", options).send(ASK)
        assert "s3cret" not in str(refused.value)
        assert "s3cret" not in repr(options)


def test_an_answer_that_comes_byte_by_byte_ends_at_the_time_limit() -> None:
    """Each part comes within the limit of the connection, and the answer as a whole does not."""
    ended = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not ended.wait(0.05):
                    connection.sendall(b" ")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with pytest.raises(RetryableError, match="took too long"):
                client(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_s=0.5).send(ASK)
        finally:
            ended.set()
            thread.join()
