"""A connection whose head does not arrive in time is ended; one that is slow after its head is another's business."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from services.decider.header_timeout import MAX_HEAD_LINES, MAX_TINY_CHUNKS, HeaderTimeoutProtocol
from services.decider.open_connections import OpenConnections
from tests.support.time_limits import scaled
from tests.support.waiting import until

MANY, CHUNK_BYTES = 64, 1_000_000
chunks_sent: list[int] = []
calls_begun: list[str] = []

FEW = 8
"""Connections that the server takes, half of them of one address."""

WHOLE = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


class Impatient(HeaderTimeoutProtocol):
    """The same with less patience."""

    head_s = scaled(0.5)  # A busy machine is slow to send and to read, too.


async def answers(scope: Scope, receive: Receive, send: Send) -> None:
    """Read the body, wait longer than a head may take, and answer; `/large` sends MANY chunks at once."""
    calls_begun.append(scope["path"])
    while (await receive()).get("more_body"):
        pass
    if scope["path"] == "/large":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(MANY):
            await send({"type": "http.response.body", "body": b"." * CHUNK_BYTES, "more_body": True})
            chunks_sent.append(CHUNK_BYTES)
        await send({"type": "http.response.body", "body": b"ok"})
        return
    await asyncio.sleep(1.25 * Impatient.head_s)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port() -> Iterator[int]:
    config = uvicorn.Config(
        answers,
        host="127.0.0.1",
        port=0,
        log_config=None,
        access_log=False,
        lifespan="off",
        http=partial(Impatient, OpenConnections(FEW)),
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    until("it serves", lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(scaled(30))


def whole_answer(caller: socket.socket) -> bytes:
    """Head and body may come one after the other."""
    answer = b""
    while not answer.endswith(b"ok"):
        more = caller.recv(1_000)
        assert more, f"the connection ended after {answer!r}"
        answer += more
    return answer


@pytest.mark.parametrize("begun", [b"", b"GET / HTT", WHOLE[:-2]])
def test_a_head_that_does_not_come_ends_the_connection(port: int, begun: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=scaled(10)) as slow:
        slow.sendall(begun)
        started_s = time.monotonic()
        assert slow.recv(100) == b""
        assert time.monotonic() - started_s >= 0.1


def test_a_slow_answer_is_waited_for_and_the_next_head_is_timed_again(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=scaled(10)) as caller:
        for _ in range(2):
            caller.sendall(WHOLE)
            assert whole_answer(caller).startswith(b"HTTP/1.1 200")
        caller.sendall(b"GET / HTT")
        assert caller.recv(100) == b""


def head(lines: int, more: bytes = b"") -> bytes:
    return WHOLE[:-2] + more + b"a: b\r\n" * (lines - 3 - bool(more)) + b"\r\n"


@pytest.mark.parametrize("before", [b"", WHOLE])
def test_a_head_of_too_many_lines_ends_the_connection(port: int, before: bytes) -> None:
    """Alone, or sent together with the call before it, which is answered."""
    with socket.create_connection(("127.0.0.1", port), timeout=scaled(10)) as caller:
        caller.sendall(before + head(MAX_HEAD_LINES + 1))
        reported = b"".join(iter(lambda: caller.recv(1_000), b""))
        assert (reported.count(b"HTTP/1.1 200"), reported.count(b"HTTP/1.1 400")) == (bool(before), 1)


def test_a_body_in_too_many_tiny_chunks_ends_the_connection(port: int) -> None:
    begun = WHOLE[:-2].replace(b"GET", b"POST") + b"Transfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=scaled(10)) as caller:
        caller.sendall(begun + b"1\r\na\r\n" * (MAX_TINY_CHUNKS + 20) + b"0\r\n\r\n")
        assert b" 400 " in b"".join(iter(lambda: caller.recv(1_000), b""))
    with socket.create_connection(("127.0.0.1", port), timeout=scaled(10)) as caller:
        caller.sendall(begun + b"40\r\n" + b"a" * 64 + b"\r\n0\r\n\r\n")
        assert whole_answer(caller).startswith(b"HTTP/1.1 200")


def test_lines_of_a_body_do_not_count_and_as_many_as_are_allowed_are_read(port: int) -> None:
    body = b"\n" * 1_000
    whole = head(MAX_HEAD_LINES, b"Content-Length: %d\r\n" % len(body)).replace(b"GET", b"POST") + body
    with socket.create_connection(("127.0.0.1", port), timeout=scaled(10)) as caller:
        for _ in range(2):
            caller.sendall(whole)
            assert whole_answer(caller).startswith(b"HTTP/1.1 200")


def test_a_response_that_is_not_read_is_not_written_on(port: int) -> None:
    """The transport pauses the server's protocol; without that, all chunks are written before anyone else is served."""
    chunks_sent.clear()
    with (
        socket.create_connection(("127.0.0.1", port), timeout=scaled(10)) as slow,
        socket.create_connection(("127.0.0.1", port), timeout=scaled(10)) as other,
    ):
        slow.sendall(WHOLE.replace(b"/ ", b"/large ", 1))
        until("the response has begun", lambda: bool(chunks_sent))
        other.sendall(WHOLE)
        assert whole_answer(other).startswith(b"HTTP/1.1 200")
        assert len(chunks_sent) < MANY
        received = 0
        while received < MANY * CHUNK_BYTES:
            received += len(more := slow.recv(1_000_000))
            assert more, f"the connection ended after {received:,} bytes"
        until("the response has ended", lambda: len(chunks_sent) == MANY)


def test_new_connections_displace_those_that_send_no_call_and_never_one_whose_call_is_in_progress(port: int) -> None:
    with contextlib.ExitStack() as opened:
        sockets = (socket.create_connection(("127.0.0.1", port), timeout=scaled(10)) for _ in range(1 + 3 * FEW))
        honest = opened.enter_context(next(sockets))
        calls_begun.clear()
        honest.sendall(WHOLE)
        until("its call is in progress", lambda: calls_begun)
        crowd = [opened.enter_context(one) for one in sockets]
        for first in crowd[: 2 * FEW]:
            with contextlib.suppress(ConnectionResetError):
                assert first.recv(100) == b""
        assert whole_answer(honest).startswith(b"HTTP/1.1 200")
