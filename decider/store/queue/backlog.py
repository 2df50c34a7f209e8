"""How much work waits: the seconds that the jobs of the queue are predicted to take one slot.

A scaler starts and stops actors by this figure. So it counts what actors could run now, including jobs whose delay is
over (a claim makes them ready, and without actors none claims), and what runs. It counts no jobs that are paused, or
wait for a window or a budget. Jobs of Lakewright's own archives count only beside others: its commits alone must not
wake actors.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from decider.store.queue.queue_admin import pausing_scope, read_config
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from shared.policy.work_windows import QueueWindow
from shared.queue import keys, queries
from shared.queue.decode import text
from shared.queue.model import JobId
from shared.queue.records import RunRecord

MAX_JOBS_READ = 5_000
"""Jobs per state that one call reads; the others count as the average of these."""

PAGE = 500
"""Jobs read per round trip."""

DEFAULT_JOB_S = 3.0
DEFAULT_S_PER_BYTE = 1 / 50_000_000
"""Duration of a run while too few were measured: its commit, and 50 MB per second."""

MIN_RUNS = 5
"""Runs below which a measured duration says little."""


@dataclass(frozen=True, slots=True)
class RunDuration:
    """Predicted duration of a run: seconds for each, and for each byte."""

    job_s: float = DEFAULT_JOB_S
    s_per_byte: float = DEFAULT_S_PER_BYTE
    runs: int = 0

    def predict_s(self, cost_bytes: float) -> float:
        """Return the seconds that a job of so many bytes takes one slot."""
        return self.job_s + self.s_per_byte * cost_bytes


@dataclass(frozen=True, slots=True)
class PredictedWork:
    """Jobs that wait or run, their predicted seconds of work, and how many run; `duration` is what predicts them."""

    jobs: int
    work_s: int
    running: int
    duration: RunDuration


def fit_duration(runs: Sequence[tuple[int, float]]) -> RunDuration:
    """Fit seconds to bytes of measured runs by least squares, neither part negative; the default for too few runs."""
    if len(runs) < MIN_RUNS:
        return RunDuration(runs=len(runs))
    mean_bytes = sum(size for size, _ in runs) / len(runs)
    mean_s = sum(took_s for _, took_s in runs) / len(runs)
    variance = sum((size - mean_bytes) ** 2 for size, _ in runs)
    slope = sum((size - mean_bytes) * (took_s - mean_s) for size, took_s in runs) / variance if variance else 0.0
    slope = min(max(0.0, slope), mean_s / mean_bytes if mean_bytes else 0.0)
    return RunDuration(mean_s - slope * mean_bytes, slope, len(runs))


def measured_runs(runs: Sequence[RunRecord]) -> list[tuple[int, float]]:
    """Return bytes and seconds of the runs that rewrote something.

    Jobs that were claimed together took one slot together, so each counts for its part of the time until the last of
    them ended: with the whole time for each, eight small jobs would be predicted to take eight times as long.
    """
    together: defaultdict[tuple[str, int], list[RunRecord]] = defaultdict(list)
    for run in runs:
        together[run.worker, run.started_ms].append(run)
    return [
        (run.cost_bytes, max(0, max(one.finished_ms for one in claim) - run.started_ms) / 1000 / len(claim))
        for claim in together.values()
        for run in claim
        if run.cost_bytes and run.run_result == "done"
    ]


@translate_redis_errors
async def read_backlog(queue: AsyncQueueExecutor, own_tables: Collection[str] = ()) -> PredictedWork:
    """Predict the work that waits or runs; a queue of many thousand jobs is extrapolated.

    own_tables: ids of the archives, whose waiting jobs do not count where nothing else waits or runs.
    """
    now_ms = (await queue.run(queries.depth(queue.name))).now_ms
    history = await queue.run(queries.history(queue.name))
    duration = fit_duration(measured_runs(history.runs))
    configured = await read_config(queue)
    windows = {
        text(table): QueueWindow.decode(text(window))
        for table, window in (await queue.redis.hgetall(keys.work_windows(queue.name))).items()
    }
    paused_or_closed = _Held(configured, windows, now_ms)
    jobs = work_s = 0.0
    is_wanted = False
    for key, upto in (
        (keys.queued(queue.name), "+inf"),
        (keys.delayed(queue.name), str(now_ms)),
        (keys.quarantined(queue.name), str(now_ms)),
        (keys.leases(queue.name), "+inf"),
    ):
        is_running = key == keys.leases(queue.name)
        ids = await queue.redis.zrangebyscore(key, "-inf", upto, start=0, num=MAX_JOBS_READ)
        total = await queue.redis.zcount(key, "-inf", upto)
        scale = total / len(ids) if ids else 1.0
        for table, cost_bytes in await _read_jobs(queue, ids, NOTHING_HELD if is_running else paused_or_closed):
            is_wanted = is_wanted or is_running or table not in own_tables
            jobs += scale
            work_s += scale * duration.predict_s(cost_bytes)
    running = int(await queue.redis.zcard(keys.leases(queue.name)))
    return PredictedWork(ceil(jobs), ceil(work_s), running, duration) if is_wanted else PredictedWork(0, 0, 0, duration)


_HELD_BY = ("band", "tenant", "table", "kind", "extent", "any_time", "why", "opens")
"""Fields of a job by which it may be held."""


@dataclass(frozen=True, slots=True)
class _Held:
    """Reasons that keep jobs from starting: pauses in the queue's configuration, windows and budgets at a time."""

    configured: Mapping[str, str]
    windows: Mapping[str, QueueWindow]
    now_ms: int

    def holds(self, job: Sequence[str]) -> bool:
        """Return whether a job cannot start: its fields of `_HELD_BY`."""
        band, tenant, table, kind, extent, any_time, why, opens = job
        if pausing_scope(self.configured, band, tenant, table) is not None:
            return True
        if why == "budget" and any_time != "1" and int(opens or 0) > self.now_ms:
            return True
        window = self.windows.get(table)
        return window is not None and any_time != "1" and window.holds(kind, int(extent or 0), self.now_ms)


NOTHING_HELD = _Held({}, {}, 0)


async def _read_jobs(queue: AsyncQueueExecutor, ids: Sequence[Any], held: _Held) -> list[tuple[str, int]]:
    """Return table and estimated bytes of the jobs that may start."""
    found: list[tuple[str, int]] = []
    for first in range(0, len(ids), PAGE):
        pipeline = queue.redis.pipeline(transaction=False)
        for job in ids[first : first + PAGE]:
            pipeline.hmget(keys.job(queue.name, JobId(text(job))), "cost", *_HELD_BY)
        read = [[text(one or b"") for one in fields] for fields in await pipeline.execute()]
        found += [(job[2], int(cost_bytes)) for cost_bytes, *job in read if cost_bytes and not held.holds(job)]
    return found
