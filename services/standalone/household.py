"""One laptop, one command: Redis, decider and one actor, each as the same program that a cluster would run.

Here stands what the three are told: commands, environment, files below one data directory, when they count as ready
and how long they may take to end. The data directory has one household at a time, which a lock keeps.
"""

import fcntl
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import structlog

from services.settings import DATA_DIR, DEFAULT_HTTP_ADDRESS, DEFAULT_REDIS_PORT, HTTP_ADDRESS, REDIS_URL
from services.standalone import redis_server
from services.standalone.redis_server import AppendFsync, RedisOptions
from services.standalone.supervisor import ChildSpec
from shared.errors import InvalidInput

REDIS_READY_S = 120.0  # Loading runs at some 100 MB/s; this is an append-only file of about 10 GB.
DECIDER_READY_S = 30.0  # Imports take a second or two, more on a cold disk.
ACTOR_STOP_S = 30.0  # The actor ends at the next group boundary; one group of 128 MB takes seconds.
DECIDER_STOP_S = 10.0  # Requests in flight are short.
REDIS_STOP_S = 10.0  # SIGTERM makes it write out its append-only file, as SHUTDOWN does.
_ASK_TIMEOUT_S = 1.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StandaloneOptions:
    """What a person may choose; `redis_port` None is 7421 or, if that is taken, a free one; 0 is a free one.

    `environment` is passed on to the children; addresses and directories in it are replaced by those chosen here.
    """

    data_dir: Path
    environment: Mapping[str, str]
    http_address: str = DEFAULT_HTTP_ADDRESS
    redis_port: int | None = None
    redis_server: str = "bundled"
    append_fsync: AppendFsync = AppendFsync.EVERYSEC
    with_actor: bool = True


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


def children(options: StandaloneOptions) -> tuple[ChildSpec, ...]:
    """What to run, in the order of starting.

    Raises:
        InvalidInput: no usable Redis server, or its port is taken.
    """
    home = options.data_dir.resolve()
    binary = redis_server.find_binary(options.redis_server, path=options.environment.get("PATH", ""))
    redis = RedisOptions(home / "redis", _choose_port(options.redis_port), options.append_fsync)
    redis.data_dir.mkdir(parents=True, exist_ok=True)
    environment = {
        **options.environment,
        REDIS_URL: redis.url,
        HTTP_ADDRESS: options.http_address,
        DATA_DIR: str(home),
        "PYTHONUNBUFFERED": "1",  # A log that ends before the crash it should explain is of no use.
    }
    log.info("redis_chosen", version=binary.version, url=redis.url, data=str(redis.data_dir))
    specs = [
        ChildSpec(
            name="redis",
            command=redis_server.command(binary, redis),
            environment=environment,
            log_file=home / "logs" / "redis.log",
            ready=lambda: redis_server.is_ready(redis.port),
            ready_timeout_s=REDIS_READY_S,
            stop_timeout_s=REDIS_STOP_S,
            explain=lambda tail: redis_server.explain_failure(tail, redis),
        ),
        ChildSpec(
            name="decider",
            command=(sys.executable, "-m", "services.decider"),
            environment=environment,
            log_file=home / "logs" / "decider.log",
            ready=lambda: decider_is_ready(options.http_address),
            ready_timeout_s=DECIDER_READY_S,
            stop_timeout_s=DECIDER_STOP_S,
        ),
    ]
    if options.with_actor:
        specs.append(
            ChildSpec(
                name="actor",
                command=(sys.executable, "-m", "services.actor"),
                environment=environment,
                log_file=home / "logs" / "actor.log",
                stop_timeout_s=ACTOR_STOP_S,
            )
        )
    return tuple(specs)


def decider_is_ready(http_address: str) -> bool:
    """True if the decider's /readyz says so."""
    host, _, port = http_address.rpartition(":")
    # An address that means every interface is answered on the loopback one.
    host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)  # noqa: S104 - compared, not bound
    try:
        answer = httpx.get(f"http://{host}:{port}/readyz", timeout=_ASK_TIMEOUT_S, trust_env=False)
    except httpx.HTTPError:
        return False
    return answer.status_code == httpx.codes.OK


def _choose_port(asked: int | None) -> int:
    if asked == 0:
        return redis_server.free_port()
    try:
        redis_server.require_free(DEFAULT_REDIS_PORT if asked is None else asked)
    except InvalidInput:
        if asked is not None:
            raise
        port = redis_server.free_port()
        log.warning("redis_port_taken", port=DEFAULT_REDIS_PORT, instead=port)
        return port
    return DEFAULT_REDIS_PORT if asked is None else asked
