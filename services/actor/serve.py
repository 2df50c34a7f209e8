"""Slots of one actor: threads that share a Spark application, a heartbeat, and the request to stop."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path

import structlog
from redis.exceptions import RedisError

from actor.engines import EngineSet
from actor.heartbeat import Heartbeat, LeaseTimes
from actor.outage_log import OutageLog
from actor.ports import EngineDied
from actor.presence import ActorInfo, Presence
from actor.queue_executor import SyncQueueExecutor, address, connect
from actor.worker import ActorContext, ProgressHook, Worker, WorkerSettings
from services.actor.settings import ActorSettings
from services.machine_load import MachineLoad
from shared.errors import LakewrightError, RetryableError
from shared.queue.model import JobId
from shared.retry import RetryPolicy

BEATS_KEPT = 6
"""Heartbeats that may be missed before an actor is no longer listed: half of its lease."""

NO_REDIS = RetryPolicy(max_attempts=None, first_s=1.0, longest_s=30.0)
"""Retries of a Redis that does not answer at the start: soon where it starts beside the actor, rarely in an outage."""

log = structlog.get_logger()

BEATS_PER_LEASE = 12
"""A lease survives eleven lost heartbeats, and a sixth of it is the margin before our own deadline."""


def serve(settings: ActorSettings, engines: EngineSet, about: ActorInfo, reached: ProgressHook) -> None:
    """Run the slots until SIGTERM or SIGINT; they stop at the next group boundary and finish what they hold.

    A slot that cannot continue ends the whole actor: it must not report more slots than it has. Raises what
    that slot raised, after the others have finished.
    """
    times, draining, outage = _times(settings.lease_s), threading.Event(), OutageLog()
    presence = Presence(_queue(settings), settings.name, about, ttl_ms=round(times.interval_s * BEATS_KEPT * 1000))

    def announce(jobs: Sequence[JobId], busy_slots: int) -> None:
        mark_alive(settings.ready_file)
        try:
            is_drained = presence.announce(jobs, busy_slots)
        except RetryableError as problem:
            outage.failed(worker=settings.name, error=str(problem))
            return
        if is_drained and not draining.is_set():
            log.info("actor_draining", actor=settings.name, jobs=len(jobs))
            draining.set()

    load = MachineLoad(settings.background_load)
    heartbeat = Heartbeat(
        _queue(settings), settings.name, times, cancel=engines.cancel, announce=announce, is_busy=load.is_busy
    )
    actor = ActorContext(settings.name, heartbeat, _stop_on_signals(), draining, outage=outage)
    heartbeat.start()
    of_slot = WorkerSettings(share=settings.share, cores=Fraction(settings.cores) / settings.slots)
    workers = [Worker(engines, _queue(settings), actor, of_slot, reached) for _ in range(settings.slots)]
    failures: list[Exception] = []
    slots = [
        threading.Thread(target=_run_slot, args=(worker, actor.stopping, failures), name=f"slot-{number}")
        for number, worker in enumerate(workers)
    ]
    for slot in slots:
        slot.start()
    with _ready(settings.ready_file):
        log.info("actor_ready", actor=settings.name, slots=settings.slots)
        for slot in slots:
            slot.join()
    heartbeat.close()
    died = next((str(failure) for failure in failures if isinstance(failure, EngineDied)), "")
    _leave(presence, died)
    log.info("actor_stopped", actor=settings.name, failed=bool(failures))
    if failures:
        raise failures[0]


def wait_for_redis(settings: ActorSettings) -> None:
    """Return once Redis answers: Spark takes a minute to start, and nothing can be done without a queue."""
    redis, failures = connect(settings.redis_url), 0
    while True:
        try:
            redis.ping()
        except RedisError as problem:
            failures += 1
            pause_s = NO_REDIS.pause_s(failures)
            log.warning("waiting_for_redis", address=address(redis), error=str(problem), next_try_s=pause_s)
            time.sleep(pause_s)
        else:
            redis.close()
            return


def _leave(presence: Presence, died: str) -> None:
    try:
        if died:
            presence.report_death(died)
        else:
            presence.deregister()
    except LakewrightError as problem:
        log.warning("deregister_failed", error=str(problem))  # It is forgotten by itself in half a minute.


def _run_slot(worker: Worker, stopping: threading.Event, failures: list[Exception]) -> None:
    try:
        worker.run()
    except Exception as failure:
        log.exception("slot_failed")
        failures.append(failure)
        stopping.set()


def _queue(settings: ActorSettings) -> SyncQueueExecutor:
    """A connection of its own for each thread."""
    return SyncQueueExecutor(connect(settings.redis_url), settings.queue)


def _times(lease_s: float) -> LeaseTimes:
    return LeaseTimes(lease_s=lease_s, interval_s=lease_s / BEATS_PER_LEASE, margin_s=lease_s / 6)


def _stop_on_signals() -> threading.Event:
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopping.set())
    return stopping


def mark_alive(ready_file: Path) -> None:
    """Set the time of the file, for a probe that this process still works; there is none before and after its work."""
    with suppress(FileNotFoundError):
        os.utime(ready_file)


@contextmanager
def _ready(file: Path) -> Iterator[None]:
    """Keep a file while jobs are taken, for probes of a process that answers no requests."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
