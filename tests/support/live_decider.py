"""A real decider inside the test process: real HTTP on a free port, real Redis, the parts at hand for counting.

It runs in a thread of its own with its own event loop; `run` carries a coroutine over to that loop. As a context it is
started, and closed at the end.
"""

import asyncio
import random
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
import pyarrow as pa
import structlog
import uvicorn
from deltalake import DeltaTable, write_deltalake
from fastapi import FastAPI
from typer.testing import CliRunner, Result

from decider.api.app import create_app
from decider.api.http_settings import StreamSlots
from decider.api.services import Services
from decider.background.discovery import DiscoveryLimits
from decider.decide.actions import ACTIONS, ActionRegistry
from decider.gateway.concurrency import CallLimits
from services.cli.__main__ import app
from services.decider.build import build_services
from services.decider.header_timeout import MAX_HEAD_BYTES
from services.decider.settings import Address, DeciderSettings, LocationSettings, TrackingSettings, parse_policy
from shared.layout.partition_stats import PartitionStats, stats_of_sizes
from shared.policy.policy import Policy
from tests.support.local_http import LOCAL
from tests.support.stack import s3_event
from tests.support.time_limits import scaled
from tests.support.waiting import until

T = TypeVar("T")

POLICY = parse_policy("target-file-size=256kb,min-input-files=4,max-job-wait=off")
"""Merges are ready at once: how long one waits goes by the pace of commits, which is that of the machine here."""
"""Small enough that files of a few kilobytes are worth merging."""

NO_SWEEP_S = 86_400.0
LOG = (
    *(structlog.processors.add_log_level, structlog.dev.set_exc_info),
    structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
)
"""Failures without the values of every frame, which take longer to print than most tests run."""


@dataclass(slots=True)
class LiveDecider:
    """One decider; `settings` are completed by a port (0: a free one)."""

    settings: DeciderSettings
    actions: ActionRegistry = ACTIONS
    port: int = 0
    _server: uvicorn.Server | None = None
    _thread: threading.Thread | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    services: Services = field(init=False)
    client: httpx.Client = field(init=False)

    def start(
        self,
        *,
        stream_slots: StreamSlots | None = None,
        tasks: Mapping[str, Any] | None = None,
        traces: Any = None,
    ) -> Self:
        """Start; `stream_slots` and the background `tasks` replace those that were built; `traces` records requests."""
        # Standard output belongs to the command line that a test may run beside the decider.
        structlog.configure(LOG, logger_factory=lambda *_: structlog.PrintLogger(sys.__stderr__))
        made = build_services(self.settings, self.actions)
        http = made.http if stream_slots is None else replace(made.http, stream_slots=stream_slots)
        self.services = replace(made, http=http, background={**made.background, **(tasks or {})})
        config = uvicorn.Config(
            create_app(self.services, traces),
            host="127.0.0.1",
            port=self.port,
            log_config=None,
            access_log=False,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
            timeout_graceful_shutdown=2,  # a reader of the stream never ends by itself
        )
        server = self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(server)), name="live-decider")
        self._thread.start()
        until("the decider serves", lambda: server.started)
        headers = {"authorization": f"Bearer {self.settings.access.token}"} if self.settings.access.token else {}
        self.client = httpx.Client(base_url=self.url, headers=headers, timeout=scaled(30), **LOCAL)
        return self

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Where it listens."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    def run(self, work: Coroutine[Any, Any, T], limit_s: float = 30) -> T:
        """Run a coroutine on the decider's loop; one that takes longer than the limit ends, and its calls."""
        assert self._loop is not None
        begun = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return begun.result(scaled(limit_s))
        except TimeoutError:
            begun.cancel()
            raise

    def task(self, name: str) -> Any:
        """Return a background task by name."""
        return self.services.background[name]

    def drain(self, limit_s: float = 30) -> None:
        """Return once every table that was requested has been read."""
        self.run(self.services.requests.refresh_queue.drained(), limit_s)

    def answered(self) -> None:
        """Return once no request runs: its span ends, and it is counted, after its client has the answer."""
        assert self._server is not None
        state = self._server.server_state
        until("every request has ended", lambda: not state.tasks)

    def sweep(self) -> None:
        """Sweep once, and return when all tables have been read."""
        self.run(self.task("sweep").run_once(spread_s=0.0))
        self.drain()

    def tick(self) -> None:
        """Read new commits, and process the timers that they set."""
        self.sweep()
        self.run(self.task("timers").run_once())

    def get(self, path: str, **params: Any) -> Any:
        """Return the body of a GET that must succeed."""
        answer = self.client.get(path, params=params)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()

    def post(self, path: str, body: object) -> httpx.Response:
        """Post JSON."""
        return self.client.post(path, json=body)

    def job_kinds(self) -> list[str]:
        """Return the kind of each job, in order."""
        return sorted(job["kind"] for job in self.get("/v1/jobs")["jobs"])

    def command(self, *arguments: str) -> Result:
        """Run the command line against it, in this process."""
        return CliRunner().invoke(app, ["--url", self.url, *arguments], env={"COLUMNS": "200"})

    def register(self, location: Path, name: str | None = None) -> str:
        """Register a table once the registry takes changes, wait until it was read, and return its name."""
        body = {"location": str(location)} | ({"name": name} if name else {})

        def answered() -> httpx.Response | None:
            given = self.post("/v1/tables", body)
            return None if given.status_code == httpx.codes.SERVICE_UNAVAILABLE else given

        answer = until("the registry takes changes", answered)
        assert answer.status_code == httpx.codes.CREATED, answer.text
        self.drain()
        return str(answer.json()["name"])

    def partitions(self, name: str) -> dict[str, PartitionStats]:
        """Return the stored state of every partition, as integers."""
        table = self.run(self.services.tables.registry.find(name))
        assert table is not None
        return dict(self.run(self.services.tables.states.all_partitions(table.id)))

    def reads(self) -> int:
        """Requests to object stores so far."""
        return sum(self.services.operations.read_meter.counts.values())

    def close(self) -> None:
        """End the server and its thread."""
        self.client.close()
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = True
        self._thread.join(scaled(30))
        structlog.reset_defaults()
        assert not self._thread.is_alive(), "the decider does not end"

    async def _serve(self, server: uvicorn.Server) -> None:
        self._loop = asyncio.get_running_loop()
        await server.serve()


@contextmanager
def deciders(redis_url: str, **defaults: Any) -> Iterator[Callable[..., LiveDecider]]:
    """Start deciders with settings of the test's choice, which win over the defaults; close them at the end."""
    with ExitStack() as stack:
        yield lambda **changes: stack.enter_context(LiveDecider(decider_settings(redis_url, **{**defaults, **changes})))


def decider_settings(redis_url: str, **changes: Any) -> DeciderSettings:
    """Settings for tests: the small policy, no sweep and no advice, and rates that no test reaches by accident.

    changes: fields of the settings or of one of their groups, by name; a group's other fields stay as they are here.
    """
    base = DeciderSettings(
        redis_url=redis_url,
        address=Address("127.0.0.1", 0),
        limits=CallLimits(events_per_s=100_000.0, calls_per_s=100_000.0),
        locations=LocationSettings(is_discovery_active=True),
        discovery=DiscoveryLimits(interval_s=0),
        tracking=TrackingSettings(sweep_s=NO_SWEEP_S, policy=POLICY, advice_cpu=0.0),
    )
    groups = {name: getattr(base, name) for name in ("access", "limits", "locations", "tracking", "archives")}
    for group, value in groups.items():
        own = {one.name: changes.pop(one.name) for one in fields(value) if one.name in changes}
        base = replace(base, **{group: replace(value, **own)})
    return replace(base, **changes)


@dataclass(slots=True)
class WrittenTable:
    """A partitioned Delta table written by the `deltalake` library: a writer that knows nothing of us."""

    path: Path
    seed: int = 0
    days: Sequence[str] = ("2026-01-01", "2026-01-02", "2026-01-03")
    configuration: Mapping[str, str] = field(default_factory=dict)
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self.append()

    @property
    def version(self) -> int:
        """Newest version."""
        return DeltaTable(str(self.path)).version()

    def append(self, commits: int = 1, *, days: Sequence[str] | None = None, rows: int | None = None) -> None:
        """Commit small files, each commit into one or two partitions."""
        for _ in range(commits):
            count = rows or self._random.randint(50, 400)
            chosen = days or self._random.sample(list(self.days), self._random.randint(1, min(2, len(self.days))))
            data = pa.table(
                {
                    "dt": [self._random.choice(list(chosen)) for _ in range(count)],
                    "value": [self._random.random() for _ in range(count)],
                }
            )
            write_deltalake(
                str(self.path), data, mode="append", partition_by=["dt"], configuration=dict(self.configuration) or None
            )

    def delete(self, day: str) -> None:
        """Delete a partition."""
        DeltaTable(str(self.path)).delete(f"dt = '{day}'")

    def event(self, version: int, bucket: str = "lake") -> dict[str, Any]:
        """Return the S3 notification of one commit."""
        return s3_event(f"{self.path.name}/_delta_log/{version:020d}.json", bucket)

    def count_files(self, policy: Policy = POLICY) -> dict[str, PartitionStats]:
        """Count the live files as `deltalake` lists them, partition by partition."""
        actions = pa.table(DeltaTable(str(self.path)).get_add_actions(flatten=True)).to_pydict()
        sizes: dict[str, list[int]] = {}
        for day, size in zip(actions["partition.dt"], actions["size_bytes"], strict=True):
            sizes.setdefault('{"dt":"' + str(day) + '"}', []).append(size)
        return {partition: stats_of_sizes(policy.size_levels, found) for partition, found in sizes.items()}


@cache
def decider_app() -> FastAPI:
    """Return the application; nothing is connected."""
    return create_app(build_services(DeciderSettings()))


@cache
def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document of the application."""
    return decider_app().openapi()
