"""Hostile clients, in a process of their own: each begins calls, and stays, leaves or reads on as its kind does.

A process, because they would slow the clock of honest clients in the same interpreter; at a low priority, because
real ones take no CPU time from the service that they attack. It prints how its clients fared once its input ends.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import resource
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tests.support.stack import ROOT, s3_event
from tests.support.time_limits import scaled

HONEST = "honest-admin-t0ken"
"""Of honest clients, whose role is not the point."""
HOOK, VIEWER, OPERATOR = "hostile-hook-t0ken", "hostile-viewer-t0ken", "hostile-operator-t0ken"
TOKENS = {
    "LAKEWRIGHT_TOKENS": f"admin:{HONEST},hook:{HOOK},viewer:{VIEWER},operator:{OPERATOR}",
    "LAKEWRIGHT_HMAC_SECRETS": "s3cret-for-tests-only-of-32-chars-and-more",
}
DRIP_EVERY_S = 1.0
PAUSE_S = 1.0
"""Between two calls of a client, by half more or less: not all call at the same moment, and none is a flood."""
PIECE_BYTES = 65_536
LARGE_BODY_BYTES = 10 * 1_048_576
HOSTILE_TABLES = 64
"""Tables with hostile files that hostile events may name, `hostile0000` and on."""


class Habit(StrEnum):
    """What a client does after it began a call."""

    WAIT = "sends no more"
    DRIP = "sends a byte a second"
    LEAVE = "leaves at once"
    READ = "reads the answer"


@dataclass(frozen=True, slots=True)
class Kind:
    """A habit, and what is sent for each call, by turns."""

    habit: Habit
    sent: tuple[bytes, ...]


def _head(call: str, *lines: str) -> bytes:
    return "\r\n".join((f"{call} HTTP/1.1", "host: 127.0.0.1", "connection: close", *lines, "", "")).encode()


def _post(path: str, token: str, body: object = None, *lines: str, length: int = 0) -> bytes:
    """Return a POST, or the head of one with a body of this length."""
    sent = b"" if length else json.dumps(body).encode()
    head = _head(
        f"POST {path}",
        *_bearer(token),
        f"content-length: {length or len(sent)}",
        "content-type: application/json",
        *lines,
    )
    return head + sent


def _bearer(token: str) -> tuple[str, ...]:
    return (f"authorization: Bearer {token}",) if token else ()


def _get(path: str, token: str) -> bytes:
    return _head(f"GET {path}", *_bearer(token))


_SIGNED = ("webhook-id: one", "webhook-timestamp: 1", "webhook-signature: v1,AAAA")
_UNKNOWN = tuple(s3_event(f"none{number}/_delta_log/{number:020d}.json") for number in range(20))
_HOSTILE = tuple(s3_event(f"hostile{number:04d}/_delta_log/{1:020d}.json") for number in range(HOSTILE_TABLES))
_OPTIMIZE = tuple(
    _post(f"/v1/tables/t{number:04d}/optimize", OPERATOR, {"mode": "full", "force": True}) for number in range(20)
)
_CHUNK = f"{PIECE_BYTES:x}\r\n".encode() + b"[" * PIECE_BYTES + b"\r\n"
KINDS: Mapping[str, Kind] = {
    "half-open connections": Kind(Habit.WAIT, (b"POST /v1/events HTTP/1.1\r\n",)),
    "slow heads": Kind(Habit.DRIP, (_head("POST /v1/events", "content-length: 100000")[:-2],)),
    "slow bodies of a token": Kind(Habit.DRIP, (_post("/v1/events", HOOK, length=100_000),)),
    "slow signed bodies": Kind(Habit.DRIP, (_post("/v1/events", "", None, *_SIGNED, length=100_000),)),
    "clients that leave": Kind(Habit.LEAVE, (_post("/v1/events", HOOK, length=100) + b"[",)),
    "large bodies": Kind(
        Habit.READ,
        (
            _post("/v1/events", HOOK, length=LARGE_BODY_BYTES) + b"[" * LARGE_BODY_BYTES,
            _head("POST /v1/events", *_bearer(HOOK), "transfer-encoding: chunked")
            + _CHUNK * (LARGE_BODY_BYTES // PIECE_BYTES),
        ),
    ),
    "deep bodies": Kind(Habit.READ, (_post("/v1/events", HOOK, length=40_000) + b"[" * 40_000,)),
    "guesses of tokens": Kind(Habit.READ, (_get("/v1/status", "a-guess-of-a-token"),)),
    "events of unknown tables": Kind(Habit.READ, tuple(_post("/v1/events", HOOK, one) for one in _UNKNOWN)),
    "events of hostile files": Kind(Habit.READ, tuple(_post("/v1/events", HOOK, one) for one in _HOSTILE)),
    "viewers": Kind(Habit.READ, tuple(_get(path, VIEWER) for path in ("/v1/queue", "/v1/backlog", "/v1/jobs"))),
    "requests to optimize": Kind(Habit.READ, _OPTIMIZE),
    "requests to optimize that leave": Kind(Habit.LEAVE, _OPTIMIZE),
}


class Crowd:
    """So many clients of each kind, until they are closed."""

    def __init__(self, port: int, counts: Mapping[str, int], pause_s: float = PAUSE_S) -> None:
        command = [sys.executable, "-m", "tests.attacks.hostile", str(port), json.dumps(counts), str(pause_s)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.fared: dict[str, dict[str, int]] = {}
        """Of each kind, calls that began, and calls by outcome: a status, or what became of the connection."""
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def close(self) -> None:
        """Have all leave."""
        printed, _ = self._process.communicate()
        self.fared = json.loads(printed)


class _Clients:
    """The clients of this process."""

    def __init__(self, port: int, pause_s: float) -> None:
        self._port, self._pause_s = port, pause_s
        self.fared: dict[str, Counter[str]] = defaultdict(Counter)

    async def live(self, name: str, turns: Iterator[bytes]) -> None:
        """Call again and again."""
        while True:
            self.fared[name]["began"] += 1
            self.fared[name][await self._called(KINDS[name].habit, next(turns))] += 1
            await asyncio.sleep(self._pause_s * random.uniform(0.5, 1.5))

    async def _called(self, habit: Habit, sent: bytes) -> str:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            await asyncio.sleep(DRIP_EVERY_S)
            return "refused"
        answer = asyncio.create_task(reader.readline())
        try:
            # Read beside writing: what the decider answers before it closes is lost to a client that reads afterwards.
            for start in range(0, len(sent), PIECE_BYTES):
                if answer.done():
                    break
                writer.write(sent[start : start + PIECE_BYTES])
                await asyncio.wait_for(writer.drain(), scaled(60))
                if len(sent) > PIECE_BYTES:
                    await asyncio.wait({answer}, timeout=0.01)
            if habit is Habit.LEAVE:
                return "left"
            while habit is Habit.DRIP and not (await asyncio.wait({answer}, timeout=DRIP_EVERY_S))[0]:
                writer.write(b"x")
                await writer.drain()
            line = await answer
            while await reader.read(PIECE_BYTES):
                pass
            return line.split(b" ")[1].decode() if line else "closed"
        except (OSError, TimeoutError):
            return "closed"
        finally:
            answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)
            writer.close()


async def _run(port: int, counts: Mapping[str, int], pause_s: float) -> dict[str, Counter[str]]:
    clients = _Clients(port, pause_s)
    turns = {name: itertools.cycle(KINDS[name].sent) for name in counts}
    tasks = [asyncio.create_task(clients.live(name, turns[name])) for name in counts for _ in range(counts[name])]
    print("began", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        if task.done():
            task.result()
    return clients.fared


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("counts", type=json.loads)
    parser.add_argument("pause_s", type=float)
    asked = parser.parse_args()
    os.nice(5)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    loop = asyncio.new_event_loop()
    print(json.dumps(loop.run_until_complete(_run(asked.port, asked.counts, asked.pause_s))), flush=True)
    os._exit(0)  # Whatever they are at: they are hostile.
