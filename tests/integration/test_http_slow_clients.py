"""A request that does not arrive in time loses its connection; one that does may take its time to be answered."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, Request

from services.decider import punctual
from tests.support.waiting import until

PATIENCE_S = 0.5


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a small application behind the protocol of the decider, with less patience."""
    monkeypatch.setattr(punctual, "ARRIVAL_S", PATIENCE_S)
    app = FastAPI()

    @app.post("/slow")
    async def slow(request: Request) -> int:
        taken = len(await request.body())
        await asyncio.sleep(3 * PATIENCE_S)
        return taken

    server = uvicorn.Server(uvicorn.Config(app, port=0, http=punctual.PunctualProtocol, log_config=None))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    until("it serves", lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(10)


@pytest.mark.parametrize(
    "sent",
    [b"", b"POST /slow HTTP/1.1\r\nhost: x\r\n", b"POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nab"],
)
def test_a_request_that_never_arrives_is_given_up(port: int, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(sent)
        assert client.recv(1_000) == b"", "closed without an answer"


def test_an_answer_may_take_longer_than_a_request_and_the_connection_is_used_again(port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
        assert [client.post("/slow", content=b"x" * 100_000).json() for _ in range(2)] == [100_000, 100_000]
