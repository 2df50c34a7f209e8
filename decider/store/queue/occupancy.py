"""Slot use and longest waits by tenant and table, computed within bounds from the queue's history and indexes.

Nothing is counted while jobs run, because finishing a job must stay cheap.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from shared.queue import keys, queries
from shared.queue.decode import text
from shared.queue.limits import MAX_JOBS_READ
from shared.queue.model import Band, JobId, JobState, Scope
from shared.queue.records import JobView, RunRecord

HOUR_MS = 3_600_000

MAX_RUN_PAGES = 10
"""Pages of the history that one call reads: a thousand runs. If they cover less than an hour, the time is shorter."""

MAX_RUNNING_PAGES = 4
"""Pages of running jobs that one call reads: two hundred jobs."""

MAX_WAITING_READ = 2_000
"""Queued jobs, oldest first, among which one call finds the oldest of each band, tenant and table."""

_PAGE = 500


@dataclass(frozen=True, slots=True)
class SlotOccupancy:
    """Share of all slots' time by tenant and by table id over the last `window_ms`; empty while slots are not known."""

    slots: int
    window_ms: int
    tenants: Mapping[str, float]
    tables: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class QueuedFigures:
    """A figure of the queued jobs by band, tenant and table id."""

    bands: Mapping[str, int]
    tenants: Mapping[str, int]
    tables: Mapping[str, int]


def quota_occupation(held: SlotOccupancy, limits: Mapping[str, str]) -> dict[Scope, dict[str, float]]:
    """Return how much of its quota each tenant and table used, as a share of it; above 1 it is oversold.

    limits: quotas and limits as the queue holds them, by `<level>|<name>`. Empty while slots are not known. A quota
    below one slot is rounded up to one, and a quota that was lowered ends no run: both are oversold meanwhile.
    """
    found: dict[Scope, dict[str, float]] = {Scope.TENANT: {}, Scope.TABLE: {}}
    used = {Scope.TENANT: held.tenants, Scope.TABLE: held.tables}
    for entry, limit in limits.items():
        level, _, name = entry.partition("|")
        share = min(1.0, quota_share(limit, held.slots))
        if share and level in found:
            found[Scope(level)][name] = round(used[Scope(level)].get(name, 0.0) / share, 4)
    return found


def quota_share(limit: str, slots: int) -> float:
    """Return a limit, as the queue holds it, as a share of all slots; 0 for none, above 1 for more than there are."""
    limit = limit.removeprefix("!")
    if not (limit and slots):
        return 0.0
    return float(limit.removesuffix("%")) / 100 if limit.endswith("%") else int(limit) / slots


@translate_redis_errors
async def occupancy(queue: AsyncQueueExecutor) -> SlotOccupancy:
    """Add up the slot time of the runs of the last hour, running ones included."""
    slots = int(await queue.redis.hget(keys.config(queue.name), "slots") or 0)
    now_ms = (await queue.run(queries.depth(queue.name))).now_ms
    runs, since_ms = await _runs(queue, now_ms - HOUR_MS)
    window_ms = max(1, now_ms - since_ms)
    if not slots:
        return SlotOccupancy(0, window_ms, {}, {})
    tenants: Counter[str] = Counter()
    tables: Counter[str] = Counter()
    for (_, started_ms, tenant, table), ended_ms in _slot_ends(runs, now_ms).items():
        took_ms = max(0, ended_ms - max(started_ms, since_ms))
        tenants[tenant] += took_ms
        tables[table] += took_ms
    all_ms = slots * window_ms
    return SlotOccupancy(slots, window_ms, _shares(tenants, all_ms), _shares(tables, all_ms))


@translate_redis_errors
async def oldest_waits(queue: AsyncQueueExecutor) -> QueuedFigures:
    """Return the milliseconds that the oldest queued job of each waits, as far as one call finds it.

    The jobs are read oldest first, so the first of each band, tenant and table is its oldest.
    """
    now_ms = (await queue.run(queries.depth(queue.name))).now_ms
    bands: dict[str, int] = {}
    tenants: dict[str, int] = {}
    tables: dict[str, int] = {}
    for first in range(0, MAX_WAITING_READ, _PAGE):
        page: list[Any] = await queue.redis.zrange(keys.queued(queue.name), first, first + _PAGE - 1, withscores=True)
        pipeline = queue.redis.pipeline(transaction=False)
        for job, _ in page:
            pipeline.hmget(keys.job(queue.name, JobId(text(job))), "band", "tenant", "table")
        for (_, t0_ms), fields in zip(page, await pipeline.execute(), strict=True):
            if None in fields:
                continue
            band, tenant, table = map(text, fields)
            wait_ms = max(0, now_ms - int(t0_ms))
            bands.setdefault(Band(int(band)).name.lower(), wait_ms)
            tenants.setdefault(tenant, wait_ms)
            tables.setdefault(table, wait_ms)
        if len(page) < _PAGE:
            break
    return QueuedFigures(bands, tenants, tables)


async def _runs(queue: AsyncQueueExecutor, since_ms: int) -> tuple[list[JobView | RunRecord], int]:
    """Return the running jobs and the runs that ended since then, and the start of the time that the history covers."""
    found: list[JobView | RunRecord] = []
    group = keys.group_of(queue.name)
    for page_number in range(MAX_RUNNING_PAGES):
        jobs = await queue.run(queries.jobs(queue.name, JobState.LEASED, offset=page_number * MAX_JOBS_READ))
        found += jobs.jobs
        if jobs.next_offset is None:
            break
    before = ""
    for _ in range(MAX_RUN_PAGES):
        page = await queue.run(queries.history(queue.name, before=before))
        found += [run for run in page.runs if run.finished_ms > since_ms and run.group == group]
        if page.next_before is None or page.runs[-1].finished_ms <= since_ms:
            return found, since_ms
        before = page.next_before
    return found, page.runs[-1].finished_ms


def _slot_ends(runs: Iterable[JobView | RunRecord], now_ms: int) -> dict[tuple[str | None, int, str, str], int]:
    """Return until when each slot was held, by worker, start, tenant and table.

    Jobs that were claimed together hold one slot until the last of them ends; they have these four in common.
    """
    ends: dict[tuple[str | None, int, str, str], int] = {}
    for run in runs:
        if run.started_ms is not None:
            slot = (run.worker, run.started_ms, run.tenant, run.key.table)
            ended_ms = run.finished_ms if isinstance(run, RunRecord) else now_ms
            ends[slot] = max(ended_ms, ends.get(slot, 0))
    return ends


def _shares(took_ms: Mapping[str, int], all_ms: int) -> dict[str, float]:
    return {name: round(took / all_ms, 4) for name, took in took_ms.items() if took}
