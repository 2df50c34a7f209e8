"""All metrics of the decider, with labels of bounded cardinality.

Counts of this process are kept in its own registry; values from Redis are read for each scrape, so that all deciders
report the same queue. There is no series per table.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from decider.api.budget_view import BudgetView
from decider.background.runner import TaskHealth
from decider.background.tables_file_sync import TablesFileStatus
from decider.decide.actions import ACTIONS
from decider.decide.funnel import CommitCounter, funnel_stages
from decider.store.fleet_history import FleetSample
from decider.store.registry.saved_registry import SaveStatus
from decider.store.registry.table_query import TableCondition
from shared.errors import LakewrightError
from shared.prices import Prices, Usage
from shared.queue.model import JobState
from shared.queue.records import QueueDepth
from shared.table import TableRef

NO_DEPTH = QueueDepth(0, dict.fromkeys(JobState, 0), None)


@dataclass(frozen=True, slots=True)
class GroupHealth:
    """Jobs, and actors by state; `slots`: of the actors that take jobs."""

    depth: QueueDepth = NO_DEPTH
    actors: Mapping[str, int] = field(default_factory=dict)
    slots: int = 0


CLIENT_LEFT = 499
"""Status in the metric of requests of a client that left before it could be answered, as nginx counts them."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

STAGES = funnel_stages(ACTIONS)
"""Stages that are exported though nothing was counted yet; every other counter is exported once it is."""

ACTOR_STATES = ("working", "idle", "draining", "drained")
"""States of an actor."""

LATENCY_BUCKETS_S = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Around the goal of 100 ms from event to decision."""

OTHER = "other"
"""Label of unknown paths and methods, of which clients may send any number."""

METHODS = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})
"""Methods that have a label of their own."""


@dataclass(frozen=True, slots=True)
class MetricsSnapshot:
    """Values at a scrape; None where Redis did not respond.

    `registry`: None where it is not saved elsewhere; `tables_file`: None where there is none; `sample`: sums over all
    tables of the last minutes, None while they are read; `prices`: None where none are set.
    """

    release: str
    redis_up: bool
    redis_safe: bool
    tables: int | None
    refused: int | None
    groups: Mapping[str, GroupHealth]
    streams: int
    inbox_tables: int
    inbox_oldest_s: float
    object_reads: Mapping[str, int]
    funnel: Mapping[str, int]
    unserved: Mapping[str, int] = field(default_factory=dict)
    background: Mapping[str, TaskHealth] = field(default_factory=dict)
    registry: SaveStatus | None = None
    tables_file: TablesFileStatus | None = None
    refusing_partitions: int | None = None
    sample: FleetSample | None = None
    prices: Prices | None = None
    budgets: tuple[BudgetView, ...] = ()


class Metrics:
    """The counters of one process; `events_received`: events of all results."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self.events_received = 0
        self._hints = Counter("lakewright_events", "Events by result.", ["result"], registry=self._registry)
        self._refreshes = Counter(
            "lakewright_table_refreshes",
            "Table refreshes by result.",
            ["result"],
            registry=self._registry,
        )
        self._refresh_s = Histogram(
            "lakewright_table_refresh_seconds",
            "Duration of a table refresh.",
            buckets=LATENCY_BUCKETS_S,
            registry=self._registry,
        )
        self._calls = Counter(
            "lakewright_http_requests",
            "HTTP requests by route.",
            ["route", "method", "status"],
            registry=self._registry,
        )
        self._call_s = Histogram(
            "lakewright_http_request_seconds",
            "HTTP request duration.",
            ["route"],
            buckets=LATENCY_BUCKETS_S,
            registry=self._registry,
        )

    def count_hints(self, accepted: int, ignored: Mapping[str, int]) -> None:
        """Count the events of one delivery by result; reasons are never text of the sender."""
        self.events_received += accepted + sum(ignored.values())
        self._hints.labels("accepted").inc(accepted)
        for reason, count in ignored.items():
            self._hints.labels(reason).inc(count)

    def count_call(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._calls.labels(route, method, str(status)).inc()
        self._call_s.labels(route).observe(seconds)

    def measured(
        self, handle: Callable[[TableRef, int | None], Awaitable[None]]
    ) -> Callable[[TableRef, int | None], Awaitable[None]]:
        """Return the refresh handler with its count and duration recorded."""

        async def refresh(table: TableRef, version: int | None) -> None:
            started = time.perf_counter()
            result = "crashed"
            try:
                await handle(table, version)
                result = "done"
            except LakewrightError:
                result = "failed"
                raise
            finally:
                self._refreshes.labels(result).inc()
                self._refresh_s.observe(time.perf_counter() - started)

        return refresh

    def render(self, snapshot: MetricsSnapshot) -> bytes:
        """Return everything in Prometheus' text format."""
        shown = CollectorRegistry(auto_describe=False)
        shown.register(_SnapshotCollector(snapshot))
        return generate_latest(self._registry) + generate_latest(shown)


def _group_families(groups: Mapping[str, GroupHealth]) -> Iterable[Metric]:
    jobs = GaugeMetricFamily("lakewright_jobs", "Jobs by state.", labels=["state", "group"])
    waits = GaugeMetricFamily(
        "lakewright_queue_oldest_wait_seconds", "Wait of the oldest queued job.", labels=["group"]
    )
    actors = GaugeMetricFamily("lakewright_actors", "Actors by state.", labels=["state", "group"])
    slots = GaugeMetricFamily("lakewright_slots", "Slots of the actors that take jobs.", labels=["group"])
    for group, found in groups.items():
        for job_state, count in found.depth.depth.items():
            jobs.add_metric([str(job_state), group], count)
        waits.add_metric([group], found.depth.oldest_wait_ms / 1000)
        for state in ACTOR_STATES:
            actors.add_metric([state, group], found.actors.get(state, 0))
        slots.add_metric([group], found.slots)
    return jobs, waits, actors, slots


class _SnapshotCollector(Collector):
    """A snapshot as metric families."""

    def __init__(self, snapshot: MetricsSnapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterable[Metric]:
        """Yield one family per name."""
        now = self._snapshot
        build = GaugeMetricFamily("lakewright_build_info", "Release of this decider.", labels=["release"])
        build.add_metric([now.release], 1)
        yield build
        yield GaugeMetricFamily("lakewright_redis_up", "Whether Redis responds.", int(now.redis_up))
        yield GaugeMetricFamily(
            "lakewright_redis_durable", "Whether Redis is configured for durability.", int(now.redis_safe)
        )
        yield from _table_families(now)
        if now.registry is not None:
            yield from _registry_families(now.registry)
        if now.tables_file is not None:
            yield from _tables_file_families(now.tables_file)
        yield from _group_families(now.groups)
        unserved = GaugeMetricFamily(
            "lakewright_jobs_without_actor", "Jobs that no actor can run, by what they need.", labels=["ability"]
        )
        for ability, count in now.unserved.items():
            unserved.add_metric([ability], count)
        yield unserved
        yield GaugeMetricFamily(
            "lakewright_stream_readers", "Readers of the event stream of this decider.", now.streams
        )
        yield GaugeMetricFamily(
            "lakewright_refresh_queue_tables", "Tables queued for a refresh or being refreshed.", now.inbox_tables
        )
        yield GaugeMetricFamily(
            "lakewright_refresh_queue_oldest_seconds", "Wait of the oldest queued table.", now.inbox_oldest_s
        )
        reads = CounterMetricFamily(
            "lakewright_object_store_requests", "Object store requests by kind.", labels=["kind"]
        )
        for kind, count in now.object_reads.items():
            reads.add_metric([kind], count)
        yield reads
        yield from _background_families(now.background)
        funnel = CounterMetricFamily(
            "lakewright_funnel", "Counts from commits to rewrites, over all deciders.", labels=["stage"]
        )
        for stage in dict.fromkeys((*STAGES, *sorted(now.funnel))):
            funnel.add_metric([stage], now.funnel.get(stage, 0))
        yield funnel
        yield from _usage_families(Usage.of_counters(now.funnel), now.prices)
        used = GaugeMetricFamily(
            "lakewright_budget_used_ratio",
            "Share of a budget of a tenant or of the queue that is used.",
            labels=["scope", "name", "budget"],
        )
        for one in now.budgets:
            if one.used_ratio is not None:
                used.add_metric([one.scope, one.name, one.budget], one.used_ratio)
        yield used


def _usage_families(used: Usage, prices: Prices | None) -> Iterable[Metric]:
    yield CounterMetricFamily("lakewright_core_seconds", "Core-seconds of all runs.", used.core_ms / 1000)
    cost = CounterMetricFamily("lakewright_cost", "Cost of all runs at the prices that are set.", labels=["currency"])
    if prices is not None:
        cost.add_metric([prices.currency], float(prices.cost(used)))
    yield cost


def _background_families(tasks: Mapping[str, TaskHealth]) -> Iterable[Metric]:
    failures = CounterMetricFamily(
        "lakewright_background_failures", "Failed passes of background tasks.", labels=["task"]
    )
    failing = GaugeMetricFamily(
        "lakewright_background_failing", "Failed passes in a row; 0 after one that succeeded.", labels=["task"]
    )
    for name, health in tasks.items():
        failures.add_metric([name], health.failures)
        failing.add_metric([name], health.in_a_row)
    yield failures
    yield failing


def _table_families(now: MetricsSnapshot) -> Iterable[Metric]:
    gauges = (
        ("lakewright_tables", "Registered tables.", now.tables),
        ("lakewright_tables_refused", "Tables that are refused, unreadable or missing.", now.refused),
        (
            "lakewright_partitions_with_refused_files",
            "Partitions with files that actors refused.",
            now.refusing_partitions,
        ),
    )
    yield from (GaugeMetricFamily(name, text, value) for name, text, value in gauges if value is not None)
    left = now.funnel.get(CommitCounter.BACKLOG_BYTES_FOUND, 0) - now.funnel.get(CommitCounter.BACKLOG_BYTES_DONE, 0)
    yield GaugeMetricFamily("lakewright_backlog_bytes", "Bytes of existing files that are still to be rewritten.", left)
    states = GaugeMetricFamily("lakewright_tables_by_state", "Tables by state.", labels=["state"])
    for state in TableCondition:
        if now.sample is not None:
            states.add_metric([state], now.sample.states.get(state, 0))
    yield states
    if now.sample is not None:
        yield GaugeMetricFamily("lakewright_files", "Live files of all tables.", now.sample.files)
        yield GaugeMetricFamily(
            "lakewright_files_needed", "Files that would do for the same bytes.", now.sample.files_needed
        )


def _tables_file_families(file: TablesFileStatus) -> Iterable[Metric]:
    is_accepted = not file.error and not file.problems
    yield GaugeMetricFamily(
        "lakewright_tables_file_accepted", "Whether the tables file is in force, all entries.", int(is_accepted)
    )
    yield GaugeMetricFamily("lakewright_tables_file_tables", "Tables that the file in force declares.", file.tables)


def _registry_families(saved: SaveStatus) -> Iterable[Metric]:
    yield GaugeMetricFamily(
        "lakewright_registry_saved", "Whether the last attempt to save the registry succeeded.", int(not saved.error)
    )
    yield GaugeMetricFamily(
        "lakewright_registry_saved_timestamp_seconds",
        "When the registry was last known to be saved; 0 if never.",
        saved.saved_ms / 1000,
    )
    yield GaugeMetricFamily(
        "lakewright_registry_generation", "Newest generation of the saved registry.", saved.generation
    )


class RequestCounter:
    """Counts requests by route; the path itself would be an unbounded label."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), CLIENT_LEFT

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            status = 500
            raise
        finally:
            route = getattr(scope.get("route"), "path", OTHER)
            method = scope["method"] if scope["method"] in METHODS else OTHER
            self._metrics.count_call(route, method, status, time.perf_counter() - started)
