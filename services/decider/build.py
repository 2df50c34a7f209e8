"""The decider's parts are built here and nowhere else: clients, stores, follower, inbox, and the API over them.

Nothing connects while it is built, so the decider starts and answers its probes whether Redis is there yet or not.
"""

import time
from functools import partial
from importlib.metadata import PackageNotFoundError, version

from fastapi import FastAPI

from decider.adhoc import Adhoc
from decider.duties.queue_care import QueueCare
from decider.duties.sweep import Sweep
from decider.follow import Follower
from decider.http.app import create_app
from decider.http.auth import require_token_beyond_loopback
from decider.http.metrics import Metrics
from decider.http.services import HttpSettings, Services, Started
from decider.inbox import Inbox
from decider.intake import Intake, Watch
from decider.observe.delta_log import open_log
from decider.observe.locations import canonical_location
from decider.observe.object_reads import ReadMeter
from decider.observe.stores import Stores
from decider.store.counters import Counters
from decider.store.cursors import TableStates
from decider.store.ledgers import Ledgers
from decider.store.queue import AsyncQueue, connect
from decider.store.runs import Runs
from decider.store.steering import Steering
from decider.store.tables import TableRegistry
from services.settings import DeciderSettings


def now_ms() -> int:
    """Return milliseconds since 1970-01-01 UTC: the clock that the parts are given."""
    return time.time_ns() // 1_000_000


def release() -> str:
    """Return the installed release; a bare checkout has none."""
    try:
        return version("lakewright")
    except PackageNotFoundError:
        return "unreleased"


def build_services(settings: DeciderSettings) -> Services:
    """Build every part. Raises InvalidInput for roots, addresses and tokens that cannot be used together."""
    require_token_beyond_loopback(settings.address.host, settings.token)
    roots = tuple(canonical_location(root) for root in settings.roots)
    buckets = {bucket: canonical_location(uri) for bucket, uri in settings.buckets.items()}
    redis = connect(settings.redis_url)
    queue = AsyncQueue(redis, settings.queue)
    registry = TableRegistry(redis)
    levers = Steering(queue)
    meter, metrics = ReadMeter(), Metrics()
    opened = partial(open_log, meter=meter, stores=Stores(settings.store_options))
    follower = Follower(queue, opened, now_ms, settings.policy)
    inbox = Inbox(metrics.measured(Watch(follower, registry, queue, now_ms).look))
    return Services(
        redis=redis,
        queue=queue,
        registry=registry,
        states=TableStates(queue),
        ledgers=Ledgers(queue),
        counters=Counters(queue),
        runs=Runs(queue),
        steering=levers,
        queue_care=QueueCare(levers),
        intake=Intake(registry, inbox, roots=roots),
        inbox=inbox,
        sweep=Sweep(registry, inbox, interval_s=settings.sweep_s),
        adhoc=Adhoc(queue, follower, opened, now_ms, policy=settings.policy),
        open_log=opened,
        meter=meter,
        metrics=metrics,
        now_ms=now_ms,
        started=Started(now_ms(), time.monotonic()),
        settings=HttpSettings(release(), settings.max_body_bytes, settings.token, buckets, settings.policy),
    )


def build_app(settings: DeciderSettings) -> FastAPI:
    """Build the application; its lifespan runs the duties and closes the connections."""
    return create_app(build_services(settings))
