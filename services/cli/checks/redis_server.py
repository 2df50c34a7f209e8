"""Checks of Redis: it answers, is new enough, keeps what it acknowledged, and agrees on the time."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from services.cli.checks.finding import ANSWER_TIMEOUT_S, Finding, FindingLevel
from services.settings import REDIS_URL, parse_redis_url
from shared.queue.keys import NO_KEY

if TYPE_CHECKING:
    from redis import Redis

OLDEST_REDIS = 7  # The queue's scripts are written for Redis 7; Valkey answers 7.2 for compatibility.
SKEW_WARN_MS = 2_000  # Leases are judged by Redis's clock; logs and ages are not, and become hard to read.


def check_redis(url: str, *, is_decider_ready: bool = False) -> list[Finding]:
    """Redis answers, is new enough, keeps what it acknowledged, and agrees on the time.

    is_decider_ready: a decider answers, so a socket that is not there is another folder's and no failure.
    """
    import redis  # noqa: PLC0415 - a client's installation may have no Redis driver

    from actor.queue_executor import connect  # noqa: PLC0415

    try:
        where = _without_password(parse_redis_url(url))
    except ValueError as problem:
        return [
            Finding("redis", FindingLevel.FAIL, f"its URL cannot be used: {problem}", REDIS_URL, f"correct {REDIS_URL}")
        ]
    try:
        with connect(url, timeout_s=ANSWER_TIMEOUT_S) as client:
            before_ms = time.time() * 1000
            seconds, micros = client.time()
            after_ms = time.time() * 1000
            server = client.info("server")
            persistence = client.info("persistence")
            memory = client.info("memory")
            refusal = _refusal(client)
    except (redis.RedisError, ValueError, OSError) as error:
        if is_decider_ready and where.startswith("unix:"):
            action = "to check it, run this where `lakewright standalone` was started, or set LAKEWRIGHT_REDIS_URL"
            return [Finding("redis", FindingLevel.WARN, "none here; the decider has its own", where, action)]
        action = "start it (`lakewright standalone`), or correct LAKEWRIGHT_REDIS_URL or LAKEWRIGHT_DATA_DIR"
        return [Finding("redis", FindingLevel.FAIL, f"does not answer: {error}", where, action)]
    skew_ms = round(int(seconds) * 1000 + int(micros) / 1000 - (before_ms + after_ms) / 2)
    return [
        check_redis_version(server, where),
        check_durability(persistence, where, refusal),
        check_eviction(memory, where),
        check_clock(skew_ms, where),
    ]


def _refusal(client: "Redis") -> str:
    """Return the server's answer to a write that changes nothing, empty if it takes writes."""
    from redis.exceptions import ResponseError  # noqa: PLC0415 - a client's installation may have no Redis driver

    try:
        client.delete(NO_KEY)
    except ResponseError as problem:
        return f"{problem.status_code or ''} {problem}".strip()
    return ""


def check_redis_version(server: Mapping[str, object], where: str) -> Finding:
    """The server is a Redis 7 or newer, or a Valkey."""
    name = "Valkey" if server.get("server_name") == "valkey" else "Redis"
    version = str(server.get("valkey_version") or server.get("redis_version") or "unknown")
    major = version.partition(".")[0]
    if major.isdigit() and int(major) >= OLDEST_REDIS:
        return Finding("redis", FindingLevel.OK, f"{name} {version}", where)
    return Finding("redis", FindingLevel.FAIL, f"{name} {version}", where, "use Redis 7 or newer, or Valkey")


def check_durability(persistence: Mapping[str, object], where: str, refusal: str = "") -> Finding:
    """Acknowledged jobs survive a restart of Redis; `refusal` is its answer to a write, empty if it takes writes."""
    if persistence.get("aof_enabled") != 1:
        action = "set `appendonly yes`: without it a restart loses jobs that were acknowledged"
        return Finding("redis durability", FindingLevel.FAIL, "the append-only file is off", where, action)
    if persistence.get("aof_last_write_status") == "err":
        action = "make room on its disk: it takes no writes until then"
        return Finding("redis durability", FindingLevel.FAIL, "the append-only file cannot be written", where, action)
    if refusal:
        action = "make room on its disk and read its log: it takes no writes until then"
        return Finding("redis durability", FindingLevel.FAIL, f"takes no writes: {refusal}", where, action)
    return Finding("redis durability", FindingLevel.OK, "the append-only file is on", where)


def check_eviction(memory: Mapping[str, object], where: str) -> Finding:
    """Redis refuses writes when it is full rather than forgetting jobs."""
    policy = str(memory.get("maxmemory_policy", "unknown"))
    if policy == "noeviction":
        return Finding("redis eviction", FindingLevel.OK, "noeviction", where)
    action = "set `maxmemory-policy noeviction`: a queue that forgets keys loses jobs without a word"
    return Finding("redis eviction", FindingLevel.FAIL, f"maxmemory-policy is {policy}", where, action)


def check_clock(skew_ms: int, where: str) -> Finding:
    """This machine and Redis agree on the time."""
    what = f"Redis is {abs(skew_ms)} ms {'ahead of' if skew_ms >= 0 else 'behind'} this machine"
    if abs(skew_ms) <= SKEW_WARN_MS:
        return Finding("clock", FindingLevel.OK, what, where)
    action = "synchronize the clocks: leases are safe, but ages and histories are hard to read"
    return Finding("clock", FindingLevel.WARN, what, where, action)


def _without_password(url: str) -> str:
    """Return where a URL leads; its options are left out too, because a password may be one of them."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
