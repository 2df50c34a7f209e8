"""One laptop, one command: Redis, decider and actor, each as the same program that a cluster would run.

This is the configuration of the three: commands, environment, files below one data directory, when they count as ready
and how long they may take to end. The data directory has one household at a time, which a lock keeps.

Whatever lies below the data directory is this user's alone. The actor writes into tables of others, too, and so gets
back the umask of the user who started the standalone.
"""

import errno
import fcntl
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import structlog
from redis import Redis

from actor.queue_executor import connect
from services.actor.settings import NAME
from services.paths import ready_file
from services.private import closed_dir
from services.redis_socket import socket_path
from services.settings import (
    DATA_DIR,
    DEFAULT_HTTP_ADDRESS,
    GROUP,
    HTTP_ADDRESS,
    READY_FILE,
    REDIS_URL,
    STATE,
    SUPERVISED,
    start_timeout_s,
)
from services.standalone import redis_server
from services.standalone.append_only_file import AppendOnlyFile
from services.standalone.redis_server import AppendFsync, RedisOptions
from services.standalone.supervisor import ChildSpec
from shared.errors import InvalidInput

PRIVATE_UMASK = 0o077
"""Umask of the standalone itself and of Redis: other users read nothing that they write."""
ACTOR_STOP_S = 30.0  # The actor ends at the next group boundary; one group of 128 MB takes seconds.
DECIDER_STOP_S = 10.0  # Requests in flight are short.
REDIS_STOP_S = 10.0  # SIGTERM makes it write out its append-only file, as SHUTDOWN does.
_ASK_TIMEOUT_S = 1.0
_QUOTED_CHARS = 200  # Of an answer that is no problem document: enough to see whose it is.

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StandaloneOptions:
    """Options of the command.

    `environment` is passed on to the children; addresses and directories in it are replaced by those chosen here.
    `table_umask` is the umask of the children that write into tables; None is this process's.
    """

    data_dir: Path
    environment: Mapping[str, str]
    http_address: str = DEFAULT_HTTP_ADDRESS
    redis_server: str = "bundled"
    append_fsync: AppendFsync = AppendFsync.EVERYSEC
    actors: int = 1
    table_umask: int | None = None


@contextmanager
def data_dir_lock(data_dir: Path) -> Iterator[None]:
    """Own the data directory; the lock goes with the process, however it ends.

    Raises:
        InvalidInput: another standalone owns it, or it cannot be written.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        lock = (data_dir / "lock").open("a+", encoding="ascii")
    except OSError as error:
        raise InvalidInput(
            f"The data directory {data_dir} cannot be written ({error.strerror}): choose another with --data-dir",
            field="data_dir",
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            raise InvalidInput(
                f"The data directory {data_dir} is in use by process {lock.read().strip() or 'unknown'}: stop it, "
                "or choose another directory with --data-dir",
                field="data_dir",
            ) from error
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def require_free_address(http_address: str) -> None:
    """Raise InvalidInput where the decider could not listen, for another decider there would answer its probe."""
    host, _, port = http_address.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _name, place in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # As the server does.
                probe.bind(place)
    except (OSError, ValueError) as error:
        is_taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        why = "is in use: stop the program that listens there" if is_taken else f"cannot be used ({error})"
        raise InvalidInput(
            f"{http_address} {why}, or choose another address with --http-address", field="http_address"
        ) from error


def children(options: StandaloneOptions) -> tuple[ChildSpec, ...]:
    """Processes to run, in the order of starting.

    Raises:
        InvalidInput: no usable Redis server, or a setting that cannot be used.
        PermanentError: a folder of the data directory is another user's.
    """
    home = options.data_dir.resolve()
    binary = redis_server.find_binary(options.redis_server, path=options.environment.get("PATH", ""))
    redis = _redis_options(options)
    for folder in (redis.data_dir, redis.socket.parent, home / "logs", home / "spark"):
        closed_dir(folder)
    kept = AppendOnlyFile(redis.data_dir)
    patience_s, environment = start_timeout_s(options.environment), _environment(options)
    log.info("redis_selected", version=binary.version, url=redis.url, data=str(redis.data_dir))
    specs = [
        ChildSpec(
            name="redis",
            command=redis_server.command(binary, redis),
            environment=environment,
            log_file=home / "logs" / "redis.log",
            obstacle=lambda: _redis_obstacle(redis, kept),
            ready_timeout_s=patience_s,
            stop_timeout_s=REDIS_STOP_S,
            explain=lambda tail: redis_server.explain_failure(tail, redis),
            recover=kept.repair,
            umask=PRIVATE_UMASK,
        ),
        ChildSpec(
            name="decider",
            command=(sys.executable, "-m", "services.decider"),
            environment=environment,
            log_file=home / "logs" / "decider.log",
            obstacle=lambda: decider_obstacle(options.http_address),
            ready_timeout_s=patience_s,
            stop_timeout_s=DECIDER_STOP_S,
            umask=PRIVATE_UMASK,
        ),
    ]
    if options.actors:
        ready_file(environment).unlink(missing_ok=True)  # A killed actor leaves its own behind.
        specs.append(actor(options, group="", number=1))
    return tuple(specs)


def actor(options: StandaloneOptions, group: str, number: int) -> ChildSpec:
    """Return an actor of a group of the queue, numbered from 1; the first of the queue itself is `actor`."""
    environment = _environment(options)
    name = "-".join(("actor", *filter(None, (group, "" if number == 1 else str(number)))))
    ready = ready_file(environment).with_name(f"{name}.ready")
    environment |= {GROUP: group, READY_FILE: str(ready)}
    if given := environment.get(NAME):
        environment[NAME] = given + name.removeprefix("actor")
    missing = "the start of Spark and the self-test of the actor"
    return ChildSpec(
        name=name,
        command=(sys.executable, "-m", "services.actor"),
        environment=environment,
        log_file=options.data_dir.resolve() / "logs" / f"{name}.log",
        obstacle=lambda: "" if ready.exists() else missing,
        ready_timeout_s=start_timeout_s(options.environment),
        stop_timeout_s=ACTOR_STOP_S,
        umask=options.table_umask,
    )


def _redis_obstacle(redis: RedisOptions, kept: AppendOnlyFile) -> str:
    """Return why Redis cannot be used yet; what it loaded is copied before anyone writes."""
    missing = redis_server.obstacle(redis.socket)
    if not missing:
        kept.keep_copy()
    return missing


def redis_client(options: StandaloneOptions) -> Redis:
    """Return a client of the embedded server; nothing is sent yet."""
    return connect(_redis_options(options).url, timeout_s=_ASK_TIMEOUT_S, connections=1)


def _redis_options(options: StandaloneOptions) -> RedisOptions:
    home = options.data_dir.resolve()
    return RedisOptions(home / "redis", socket_path(home), options.append_fsync)


def _environment(options: StandaloneOptions) -> dict[str, str]:
    """Return what all children see."""
    home = options.data_dir.resolve()
    return {
        **options.environment,
        REDIS_URL: _redis_options(options).url,
        HTTP_ADDRESS: options.http_address,
        DATA_DIR: str(home),
        SUPERVISED: str(options.actors > 0).lower(),
        STATE: options.environment.get(STATE) or str(home / "registry"),
        "PYTHONUNBUFFERED": "1",  # A log that ends before the crash it should explain is of no use.
    }


def decider_url(http_address: str) -> str:
    """Return where a decider that listens at this address answers."""
    host, _, port = http_address.rpartition(":")
    # An address that means every interface is answered on the loopback one.
    host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://{host}:{port}"


def decider_obstacle(http_address: str) -> str:
    """Return why the decider is not ready, in the words of its /readyz; empty if it is."""
    url = f"{decider_url(http_address)}/readyz"
    try:
        answer = httpx.get(url, timeout=_ASK_TIMEOUT_S, trust_env=False)
    except httpx.HTTPError as problem:
        return f"an answer from {url} ({problem})"
    if answer.status_code == httpx.codes.OK:
        return ""
    return f"readiness: {url} answers {answer.status_code}: {_detail(answer)}"


def _detail(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:_QUOTED_CHARS]
