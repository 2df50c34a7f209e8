"""Callers that mean no good, or know no better: they must not cost the others anything but a little time."""

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, field

from tests.support.time_limits import scaled

BIG_BODY_BYTES = 10 * 1_048_576
DRIP_EVERY_S = 1.0


@dataclass(slots=True)
class Nuisance:
    """Slow clients, each of which sends a byte a second, and bodies of 10 MB, one after another."""

    host: str
    port: int
    answers: Counter[str] = field(default_factory=Counter)

    async def slow_client(self, stop: asyncio.Event, *, with_body: bool) -> None:
        """Begin a request, and never end it."""
        while not stop.is_set():
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(self.host, self.port)
                try:
                    start = f"POST /v1/events HTTP/1.1\r\nhost: {self.host}\r\ncontent-length: 100000\r\n".encode()
                    writer.write(start + (b"\r\n" if with_body else b""))
                    await self._drip(reader, writer, stop)
                finally:
                    writer.close()

    async def _drip(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stop: asyncio.Event) -> None:
        answer = asyncio.create_task(reader.read(65_536))
        try:
            while not stop.is_set() and not answer.done():
                writer.write(b"x")
                await writer.drain()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(answer), DRIP_EVERY_S)
            self.answers["slow: still open" if not answer.done() else "slow: closed by the decider"] += 1
        finally:
            answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)

    async def big_bodies(self, stop: asyncio.Event) -> None:
        """Post 10 MB, announced and in chunks by turns, as fast as they are taken."""
        announced = False
        while not stop.is_set():
            announced = not announced
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), 0.5)
            self.answers[f"big: {await self._post(announced=announced)}"] += 1

    async def _post(self, *, announced: bool) -> str:
        """Return the status of the answer, or `closed` if the connection was closed before it could be read."""
        piece = b"[" * 65_536
        try:
            reader, writer = await asyncio.open_connection(self.host, self.port)
            answer = asyncio.create_task(reader.readline())
            try:
                length = f"content-length: {BIG_BODY_BYTES}" if announced else "transfer-encoding: chunked"
                writer.write(f"POST /v1/events HTTP/1.1\r\nhost: {self.host}\r\n{length}\r\n\r\n".encode())
                # Read beside writing: what the decider said before it closed is lost to whoever looks only afterwards.
                for _ in range(BIG_BODY_BYTES // len(piece)):
                    if answer.done():
                        break
                    writer.write(piece if announced else f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                    await asyncio.wait_for(writer.drain(), scaled(10))
                    if announced:
                        # Its size is known by now; a client that goes on writing may lose the answer to the reset.
                        await asyncio.wait({answer}, timeout=scaled(10))
                line = await asyncio.wait_for(answer, scaled(10))
                return line.split(b" ")[1].decode() if line else "closed"
            finally:
                answer.cancel()
                await asyncio.gather(answer, return_exceptions=True)
                writer.close()
        except OSError:
            return "closed"
