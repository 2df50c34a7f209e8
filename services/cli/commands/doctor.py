"""What keeps Lakewright from working here is named before it fails: what, where, and what to do about it.

Each check reads one thing and returns a finding; none raises, none needs another, and nothing is changed but the
shim of the bundled Java, which searching for a Java writes.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from actor.jvm import jars
from actor.jvm.java import JavaSearch, find_java
from services.cli.cli_context import setting_of
from services.cli.client import ApiClient, CallFailed
from services.cli.render import counted
from services.paths import data_dir, ivy_dir, java_search
from services.settings import REDIS_URL, TOKEN, URL, default_url, parse_redis_url, redis_url
from shared.errors import LakewrightError
from shared.queue.keys import NO_KEY

if TYPE_CHECKING:
    from redis import Redis
    from rich.console import Console

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
OLDEST_REDIS = 7  # The queue's scripts are written for Redis 7; Valkey answers 7.2 for compatibility.
FREE_WARN_BYTES = 5 * 2**30  # Spark spills what does not fit in memory, and Redis rewrites its file beside the old one.
FREE_FAIL_BYTES = 512 * 2**20  # Below this the next rewrite of the append-only file may fail.
SKEW_WARN_MS = 2_000  # Leases are judged by Redis's clock; logs and ages are not, and become hard to read.
_TIMEOUT_S = 3.0  # A server that takes longer to answer is not usable either.


class FindingLevel(StrEnum):
    """How a finding is meant: `warn` works but should be changed, `fail` does not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's result; `action` is empty if nothing is to be done."""

    check: str
    status: FindingLevel
    what: str
    where: str = ""
    action: str = ""


@dataclass(frozen=True, slots=True)
class DoctorSettings:
    """Addresses and folders to check."""

    java: JavaSearch
    ivy_dir: Path
    data_dir: Path
    redis_url: str
    decider_url: str
    token: str | None = field(default=None, repr=False)


def doctor_settings(environ: Mapping[str, str]) -> DoctorSettings:
    """Read what to check from the environment, as the services do."""
    return DoctorSettings(
        java=java_search(environ),
        ivy_dir=ivy_dir(environ),
        data_dir=data_dir(environ),
        redis_url=redis_url(environ),
        decider_url=default_url(environ),
        token=environ.get(TOKEN) or None,
    )


def doctor(
    context: typer.Context,
    table: Annotated[
        str | None, typer.Argument(help="Check this table instead: a path, a URI, or a registered name.")
    ] = None,
) -> None:
    """Check this machine and the services, or whether a table was damaged. Exit code 1: a check failed."""
    if table is not None:
        from services.cli.commands.doctor_table import doctor_table  # noqa: PLC0415 - it reads logs, which takes optional parts

        if code := doctor_table(table, setting_of(context)):
            raise typer.Exit(code)
        return
    environment = {**os.environ, URL: setting_of(context).url}
    findings = run_checks(doctor_settings(environment))
    if setting_of(context).as_json:
        typer.echo(to_json(findings))
    else:
        show(findings, setting_of(context).output().console)
    if failed(findings):
        raise typer.Exit(1)


def run_checks(settings: DoctorSettings) -> list[Finding]:
    """Run every check; takes some seconds at most, if servers do not answer."""
    checks: tuple[Callable[[], list[Finding]], ...] = (
        lambda: [check_python(sys.version_info[:2])],
        lambda: [check_java(settings.java)],
        lambda: [check_jars(settings.ivy_dir)],
        lambda: check_redis(settings.redis_url),
        lambda: check_service(settings.decider_url, settings.token),
        lambda: [check_disk(settings.data_dir)],
    )
    return [finding for check in checks for finding in check()]


def failed(findings: list[Finding]) -> bool:
    """True if one of them is a failure."""
    return any(finding.status is FindingLevel.FAIL for finding in findings)


def check_python(version: tuple[int, ...]) -> Finding:
    """The interpreter that runs this is one that Lakewright is tested on."""
    what = f"Python {'.'.join(map(str, version))}"
    if OLDEST_PYTHON <= version <= NEWEST_PYTHON:
        return Finding("python", FindingLevel.OK, what, sys.executable)
    return Finding("python", FindingLevel.FAIL, what, sys.executable, "use Python 3.11, 3.12 or 3.13")


def check_java(search: JavaSearch) -> Finding:
    """There is a Java that Spark runs on."""
    try:
        java = find_java(search)
    except LakewrightError as error:
        return Finding("java", FindingLevel.FAIL, str(error), action="needed by actors only")
    return Finding("java", FindingLevel.OK, f"Java {java.version} from {java.source}", str(java.path))


def check_jars(directory: Path) -> Finding:
    """Delta's jars are there, so that an actor starts without a network."""
    found = jars.look_up(directory)
    if found.complete:
        return Finding("jars", FindingLevel.OK, f"all {len(found.files)} jars of Delta", str(found.directory))
    lacking = [f"{name} is missing" for name in found.missing] + [f"{name} is damaged" for name in found.damaged]
    return Finding(
        "jars",
        FindingLevel.WARN,
        f"{len(lacking)} of {len(found.files)} jars: {lacking[0]}",
        str(found.directory),
        "the next actor fetches them; or run `python -m services.bootstrap` (`make setup`)",
    )


def check_redis(url: str) -> list[Finding]:
    """Redis answers, is new enough, keeps what it acknowledged, and agrees on the time."""
    import redis  # noqa: PLC0415 - a client's installation may have no Redis driver
    from redis.backoff import NoBackoff  # noqa: PLC0415
    from redis.retry import Retry  # noqa: PLC0415

    try:
        where = _without_password(parse_redis_url(url))
    except ValueError as problem:
        return [
            Finding("redis", FindingLevel.FAIL, f"its URL cannot be used: {problem}", REDIS_URL, f"correct {REDIS_URL}")
        ]
    try:
        with redis.Redis.from_url(
            url, retry=Retry(NoBackoff(), 0), socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S
        ) as client:
            before_ms = time.time() * 1000
            seconds, micros = client.time()
            after_ms = time.time() * 1000
            server = client.info("server")
            persistence = client.info("persistence")
            memory = client.info("memory")
            refusal = _refusal(client)
    except (redis.RedisError, ValueError, OSError) as error:
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


def check_service(url: str, token: str | None) -> list[Finding]:
    """The decider is ready; only one that is knows its actors."""
    decider = check_decider(url)
    if decider.status is not FindingLevel.OK:
        return [decider]
    try:
        with ApiClient(url.rstrip("/"), token) as api:
            answer = api.get("/v1/actors")
            return [decider, check_actors(answer, url), *check_unserved(answer, url)]
    except CallFailed as problem:
        action = "set LAKEWRIGHT_TOKEN to a token that may read"
        return [decider, Finding("actors", FindingLevel.WARN, f"not known: {problem}", url, action)]


def check_actors(answer: Mapping[str, Any], where: str) -> Finding:
    """An actor takes jobs; `answer` is the API's list of actors."""
    working = [one for one in answer["actors"] if one["state"] in ("working", "idle")]
    if working:
        what = f"{counted(len(working), 'actor')} with {counted(sum(one['slots'] for one in working), 'slot')}"
        return Finding("actors", FindingLevel.OK, f"{what}: {', '.join(one['id'] for one in working)}", where)
    others = [f"{one['id']} {one['state']}" + (f": {one['error']}" if one["error"] else "") for one in answer["actors"]]
    what = "none takes jobs" + (f" ({'; '.join(others)})" if others else "")
    action = "start one (`lakewright actor`), or wait: an actor takes jobs about a minute after its start"
    return Finding("actors", FindingLevel.WARN, what, where, action)


def check_unserved(answer: Mapping[str, Any], where: str) -> list[Finding]:
    """No job waits for an actor that was never started; `answer` is the API's list of actors."""
    return [
        Finding(
            "jobs",
            FindingLevel.WARN,
            f"{counted(one['jobs'], 'job')} cannot run: no actor can do {one['ability']}",
            where,
            f"start an actor that can do {one['ability']}; `lakewright actors list` shows what each can run",
        )
        for one in answer["unserved"]
    ]


def check_decider(url: str) -> Finding:
    """The decider reports that it is ready."""
    import httpx  # noqa: PLC0415 - a fifth of a second, which --help need not wait for

    address = f"{url.rstrip('/')}/readyz"
    try:
        answer = httpx.get(address, timeout=_TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        action = "start it (`lakewright standalone`), or correct LAKEWRIGHT_URL"
        return Finding("decider", FindingLevel.FAIL, f"does not answer: {error}", address, action)
    if answer.status_code == httpx.codes.OK:
        return Finding("decider", FindingLevel.OK, "ready", address)
    action = "read its log: it is running, but something that it needs is not"
    return Finding("decider", FindingLevel.FAIL, f"answers {answer.status_code}: {answer.text[:200]}", address, action)


def check_disk(directory: Path) -> Finding:
    """There is room where Redis and Spark write."""
    existing = next(folder for folder in (directory.resolve(), *directory.resolve().parents) if folder.is_dir())
    free_bytes = shutil.disk_usage(existing).free
    what = f"{free_bytes / 2**30:.1f} GiB free"
    if free_bytes >= FREE_WARN_BYTES:
        return Finding("disk", FindingLevel.OK, what, str(existing))
    status = FindingLevel.FAIL if free_bytes < FREE_FAIL_BYTES else FindingLevel.WARN
    return Finding("disk", status, what, str(existing), "make room, or set LAKEWRIGHT_DATA_DIR to a larger disk")


def to_json(findings: list[Finding]) -> str:
    """The findings for machines."""
    return json.dumps({"ok": not failed(findings), "findings": [asdict(finding) for finding in findings]}, indent=2)


def show(findings: list[Finding], console: "Console") -> None:
    """The findings for people."""
    from rich.table import Table  # noqa: PLC0415 - for people only
    from rich.text import Text  # noqa: PLC0415

    colors = {FindingLevel.OK: "green", FindingLevel.WARN: "yellow", FindingLevel.FAIL: "red"}
    table = Table(show_header=True, header_style="bold")
    for title in ("Check", "Status", "What", "Where", "What to do"):
        table.add_column(title, overflow="fold")
    for finding in findings:
        # Text, not markup: messages of others may hold brackets.
        status = Text(finding.status, style=colors[finding.status])
        table.add_row(finding.check, status, Text(finding.what), Text(finding.where), Text(finding.action))
    console.print(table)


def _without_password(url: str) -> str:
    """Return where a URL leads; its options are left out too, because a password may be one of them."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
