"""Runs the contenders one after another on the same Redis, emptied in between, and counts jobs per second.

Each has its own environment below .cache/bench-venv, made on demand: none of them is a dependency of the project.
"""

import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.queue.contenders.contest import SLOTS
from tests.support.redis_server import RedisServer

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
VENVS = ROOT / ".cache" / "bench-venv"
PEERS = {
    "arq": ("arq",),
    "rq": ("rq",),
    "saq": ("saq[redis]", "typing_extensions"),  # It imports the latter without asking for it.
    "docket": ("pydocket",),
    "dramatiq": ("dramatiq[redis]",),
}
OURS = "lakewright"
PROCESS_PER_WORKER = ("rq",)
"""The others serve their workers from one process, by threads or coroutines, as they are made to."""

START_S = 30.0
POLL_S = 0.005


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the contest; `delay_ms` is added to each reply of Redis."""

    workers: int
    delay_ms: float

    @property
    def name(self) -> str:
        """How results call it."""
        return f"{self.workers}_workers" + (f"_plus_{self.delay_ms:g}ms" if self.delay_ms else "")


SETTINGS = (Setting(1, 0), Setting(10, 0), Setting(1, 1), Setting(10, 1))


def python_of(name: str) -> Path:
    """Return the contender's interpreter, installed if it is not there yet."""
    if name == OURS:
        return Path(sys.executable)
    venv = VENVS / name
    python = venv / "bin" / "python"
    if not (venv / "ready").exists():
        uv = shutil.which("uv", path=f"{ROOT / '.venv/bin'}{os.pathsep}{os.environ['PATH']}") or "uv"
        subprocess.run([uv, "venv", "-q", "--clear", "-p", sys.executable, str(venv)], check=True)
        subprocess.run([uv, "pip", "install", "-q", "-p", str(venv), *PEERS[name]], check=True)
        (venv / "ready").touch()
    return python


@contextmanager
def slowed(server: RedisServer, delay_ms: float) -> Iterator[str]:
    """Give the address of Redis, behind a proxy if there is a delay."""
    if not delay_ms:
        yield server.url
        return
    command = [sys.executable, str(HERE / "slow_network.py"), str(server.port), str(delay_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout is not None
        yield f"redis://127.0.0.1:{int(proxy.stdout.readline())}/0"
        proxy.kill()


def jobs_per_s(name: str, server: RedisServer, setting: Setting, *, jobs: int, window_s: float) -> float:
    """Put the jobs, then count from the first finished job until the last one, or for as long as the window."""
    with server.client() as client:
        client.flushall()
    call(name, "enqueue", server.url, str(jobs))
    processes = setting.workers if name in PROCESS_PER_WORKER else 1
    workers = 1 if name in PROCESS_PER_WORKER else setting.workers
    with tempfile.NamedTemporaryFile() as file, slowed(server, setting.delay_ms) as url:
        file.write(bytes(SLOTS * 8))
        file.flush()
        running = [start(name, "work", url, str(workers), file.name, str(slot)) for slot in range(processes)]
        try:
            with mmap.mmap(file.fileno(), SLOTS * 8) as memory:
                return _rate(memory, jobs, window_s)
        finally:
            for process in running:
                process.kill()
                process.wait()


def _rate(memory: mmap.mmap, jobs: int, window_s: float) -> float:
    def count() -> int:
        return sum(struct.unpack(f"<{SLOTS}q", memory[:]))

    give_up = time.monotonic() + START_S
    while not count():
        if time.monotonic() > give_up:
            return 0.0
        time.sleep(POLL_S)
    started, first = time.monotonic(), count()
    while count() < jobs and time.monotonic() < started + window_s:
        time.sleep(POLL_S)
    return (count() - first) / (time.monotonic() - started)


def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a contender."""
    script = HERE / "contenders" / f"on_{name}.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT) if name == OURS else ""}
    return subprocess.Popen([str(python_of(name)), str(script), *arguments], env=environment)


def call(name: str, *arguments: str) -> None:
    """Run a contender to its end."""
    with start(name, *arguments) as process:
        if process.wait() != 0:
            raise RuntimeError(f"{name} {arguments[0]} failed")
