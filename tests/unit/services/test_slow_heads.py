"""A connection whose head does not arrive in time is ended; one that is slow after its head is another's business."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from services.decider.slow_heads import EndsSlowHeads
from tests.support.waiting import until

WHOLE = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


class Impatient(EndsSlowHeads):
    """The same with less patience."""

    head_s = 0.5


async def answers(_: Scope, receive: Receive, send: Send) -> None:
    """Read the body, wait longer than a head may take, and answer."""
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(1.25 * Impatient.head_s)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port() -> Iterator[int]:
    config = uvicorn.Config(
        answers, host="127.0.0.1", port=0, log_config=None, access_log=False, lifespan="off", http=Impatient
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    until("it serves", lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(30)


@pytest.mark.parametrize("begun", [b"", b"GET / HTT", WHOLE[:-2]])
def test_a_head_that_does_not_come_ends_the_connection(port: int, begun: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as slow:
        slow.sendall(begun)
        started_s = time.monotonic()
        assert slow.recv(100) == b""
        assert time.monotonic() - started_s >= 0.1


def test_a_slow_answer_is_waited_for_and_the_next_head_is_timed_again(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as caller:
        for _ in range(2):
            caller.sendall(WHOLE)
            answer = b""
            while not answer.endswith(b"ok"):
                answer += caller.recv(1_000)
            assert answer.startswith(b"HTTP/1.1 200")
        caller.sendall(b"GET / HTT")
        assert caller.recv(100) == b""
