"""A TCP proxy that keeps each reply for a while: `python slow_network.py TARGET_PORT DELAY_MS`; prints its own port.

It is a process of its own, so that it takes no time from the contenders' interpreter; order is kept.
"""

import asyncio
import contextlib
import sys
from collections import deque


class Reply(asyncio.Protocol):
    """The server's side: what it says is passed on `delay_s` later."""

    def __init__(self, client: asyncio.Transport, delay_s: float) -> None:
        self._client, self._delay_s = client, delay_s
        self._kept: deque[bytes] = deque()

    def data_received(self, data: bytes) -> None:
        """Keep a piece for a while."""
        self._kept.append(data)
        asyncio.get_running_loop().call_later(self._delay_s, self._pass_on)

    def _pass_on(self) -> None:
        self._client.write(self._kept.popleft())

    def connection_lost(self, _: Exception | None) -> None:
        """Hang up on the client, too."""
        self._client.close()


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, delay_s: float) -> None:
    """Pass requests on at once and replies later."""
    loop = asyncio.get_running_loop()
    server, _ = await loop.create_connection(lambda: Reply(writer.transport, delay_s), "127.0.0.1", port)  # type: ignore[arg-type]
    with contextlib.suppress(ConnectionError):  # A contender that was killed does not say goodbye.
        while data := await reader.read(1 << 16):
            server.write(data)
    server.close()


async def main(port: int, delay_ms: float) -> None:
    """Serve until killed."""
    server = await asyncio.start_server(lambda r, w: relay(r, w, port, delay_ms / 1000), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
