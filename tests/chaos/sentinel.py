"""Faults of a primary that sentinels replace, and of workers: everything finds the primary by its sentinels."""

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import redis

from tests.chaos.faults import worker_killed, worker_paused
from tests.chaos.history import now_ns
from tests.chaos.network import Network
from tests.chaos.run import run_in
from tests.chaos.verdict import Verdict
from tests.chaos.world import World
from tests.support.redis_server import RedisServer
from tests.support.stack import free_port
from tests.support.time_limits import scaled
from tests.support.waiting import until

PRIMARY = "lakewright"
QUORUM = 2
SENTINELS = 3
REPLICAS = 2
DOWN_AFTER_MS = 500
SETTINGS = (
    ("repl-diskless-sync-delay", "0"),
    ("min-replicas-to-write", "1"),
    ("min-replicas-max-lag", "10"),
)
"""A primary without a replica takes no writes: after a failover they would be gone."""


class RedisSentinels:
    """The servers and their sentinels; `primary` is the server that the sentinels name."""

    def __init__(self, binary: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lw-sentinel-"))
        self.servers = [
            RedisServer(binary, appendfsync="everysec", extra=SETTINGS).start() for _ in range(REPLICAS + 1)
        ]
        first, *others = self.servers
        for server in others:
            with server.client() as client:
                client.replicaof("127.0.0.1", str(first.port))
        self.ports = [free_port() for _ in range(SENTINELS)]
        self._sentinels = [self._start_sentinel(binary, port, first.port) for port in self.ports]
        until("the sentinels know each other and the replicas", self._is_complete)

    @property
    def url(self) -> str:
        """What services are given."""
        return f"redis+sentinel://{','.join(f'127.0.0.1:{port}' for port in self.ports)}/{PRIMARY}/0"

    @property
    def primary(self) -> RedisServer:
        """The server that most sentinels name."""
        named = [port for port in map(self._named_by, self.ports) if port]
        chosen = max(named, key=named.count)
        return next(server for server in self.servers if server.port == chosen)

    def fail_over(self, *, is_paused: bool) -> RedisServer:
        """Kill or pause the primary, and return it once the sentinels have agreed on another one."""
        old = self.primary
        if is_paused:
            old.signal(signal.SIGSTOP)
        else:
            old.kill()
        until("another server is the primary", lambda: self._is_agreed_on_another(old), seconds=60)
        return old

    def bring_back(self, old: RedisServer, *, is_paused: bool) -> None:
        """Let the old primary go on, or start it again on its old data, and return once it is a replica."""
        if is_paused:
            old.signal(signal.SIGCONT)
        else:
            old.start()
        until("the old primary is a replica", lambda: self._is_replica(old), seconds=300)
        until("the sentinels know all servers", self._is_complete, seconds=60)

    def close(self) -> None:
        """End all processes, and remove their folders."""
        for process in self._sentinels:
            process.kill()
            process.wait(scaled(30))
        for server in self.servers:
            server.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start_sentinel(self, binary: Path, port: int, primary_port: int) -> "subprocess.Popen[bytes]":
        config = self.folder / f"{port}.conf"
        config.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {self.folder}\nlogfile {self.folder / f'{port}.log'}\n"
            f"sentinel monitor {PRIMARY} 127.0.0.1 {primary_port} {QUORUM}\n"
            f"sentinel down-after-milliseconds {PRIMARY} {int(scaled(DOWN_AFTER_MS))}\n"
            f"sentinel failover-timeout {PRIMARY} {int(scaled(3_000))}\n"
        )
        return subprocess.Popen(
            [str(binary), str(config), "--sentinel"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def _state(self, port: int) -> dict[str, object]:
        try:
            with redis.Redis(port=port, socket_timeout=scaled(2)) as client:
                found = client.sentinel_masters()
        except redis.RedisError:
            return {}
        return dict(found.get(PRIMARY, {}))  # type: ignore[union-attr]

    def _named_by(self, port: int) -> int:
        return int(str(self._state(port).get("port", 0)))

    def _is_complete(self) -> bool:
        states = [self._state(port) for port in self.ports]
        known = [(one.get("num-other-sentinels"), one.get("num-slaves"), one.get("flags")) for one in states]
        return (
            known == [(SENTINELS - 1, REPLICAS, frozenset({"master"}))] * SENTINELS
            or known == [(SENTINELS - 1, REPLICAS, "master")] * SENTINELS
        )

    def _is_agreed_on_another(self, old: RedisServer) -> bool:
        named = {self._named_by(port) for port in self.ports}
        return len(named) == 1 and not named & {0, old.port} and not self._is_replica(self.primary)

    @staticmethod
    def _is_replica(server: RedisServer) -> bool:
        try:
            with server.client() as client:
                found = client.info("replication")
        except redis.RedisError:
            return False
        return found["role"] == "slave" and found["master_link_status"] == "up"


class SentinelNetwork(Network):
    """No proxy: sentinels name the servers' own addresses."""

    def __init__(self, sentinels: RedisSentinels) -> None:
        self.sentinels = sentinels

    @property
    def url(self) -> str:
        """The sentinels."""
        return self.sentinels.url

    @property
    def direct_url(self) -> str:
        """The sentinels, too."""
        return self.sentinels.url

    def close(self) -> None:
        """End all servers."""
        self.sentinels.close()


def primary_killed(world: World) -> None:
    """Kill -9 the primary; it comes back with its old data, and becomes a replica."""
    _fail_over(world, "primary_killed", is_paused=False)


def primary_paused(world: World) -> None:
    """Stop the primary; when it goes on, it takes itself for the primary until a sentinel tells it otherwise."""
    _fail_over(world, "primary_paused", is_paused=True)


def _fail_over(world: World, fault: str, *, is_paused: bool) -> None:
    if not isinstance(world.network, SentinelNetwork):
        raise TypeError("this world has no sentinels")
    sentinels, since = world.network.sentinels, now_ns()
    world.kills += 1
    with world.lock:
        old = sentinels.fail_over(is_paused=is_paused)
        world.redis = sentinels.primary
        world.take_back(fault, since)
    world.await_service(fault, since)
    with world.lock:
        # Until a sentinel demotes it, the old primary acknowledges what it is sent, and then forgets it.
        sentinels.bring_back(old, is_paused=is_paused)
        world.take_back(fault, since)


FAULTS = (worker_killed, worker_paused, primary_killed, primary_paused)


def run(binary: Path, seconds: float, seed: int, say: Callable[[str], None]) -> Verdict:
    """Run for so many seconds with sentinels, every kind of fault at least once."""
    sentinels = RedisSentinels(binary)
    with tempfile.TemporaryDirectory() as folder:
        world = World(sentinels.primary, SentinelNetwork(sentinels), Path(folder), Random(seed))
        return run_in(world, FAULTS, seconds, seed, say)
