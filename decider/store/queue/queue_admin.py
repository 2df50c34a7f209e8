"""Administers and repairs a queue while it runs, and predicts its next claims."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from decider.store.queue.occupancy import QueuedFigures, SlotOccupancy, occupancy, oldest_waits
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors, translating_redis_errors
from decider.store.redis.redis_health import AppendOnlyUpkeep
from decider.store.registry.operator_settings import OperatorSettings
from decider.store.stored_values import milliseconds
from decider.store.urgent_jobs import UrgentJobs
from shared.policy.budgets import (
    AMPLIFICATION_SCOPE,
    PRICES_FIELD,
    BudgetUse,
    amplification_use,
    budget_uses,
    encode_budgets,
)
from shared.policy.work_windows import QueueWindow
from shared.queue import admin_commands, audit, commands, keys, queries
from shared.queue.admin_commands import Preempted, Preemption, SlotLimit, SlotQuota
from shared.queue.audit import AuditedKey
from shared.queue.command import Command
from shared.queue.decode import text
from shared.queue.lua_library import LIBRARY
from shared.queue.model import Band, JobId, MoveOutcome, Scope
from shared.queue.queries import NextJob
from shared.queue.records import QueueDepth, sum_of_depths
from shared.queue.settings import SETTINGS, QueueSettings
from shared.table import TableId, TableRef

SCAN_COUNT = 4_000
"""Keys that one SCAN reads: below a millisecond of the server, and few round trips beside many tables' states."""

MAX_FLOWS = 20_000
"""Flows that one call counts; beyond, the depth by tenant and table is incomplete."""

LIMIT_PREFIX = "limit:"
"""Prefixes of the names of limits; scope and name follow."""

SHOWN_PREFIXES = ("weight:", LIMIT_PREFIX)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Number of keys that an audit read, and of inconsistencies that it repaired."""

    keys: int
    repaired: int


def limits_among(held: Mapping[str, str]) -> dict[str, str]:
    """Return the limits and quotas among settings, by `<level>|<name>`; `!` marks what is paused."""
    return {name.removeprefix(LIMIT_PREFIX): value for name, value in held.items() if name.startswith(LIMIT_PREFIX)}


def paused_tables(config: Mapping[str, str]) -> frozenset[TableId]:
    """Return the ids of the tables that the settings of a queue hold as paused."""
    prefix = f"{LIMIT_PREFIX}{Scope.TABLE}|"
    found = (name for name, limit in config.items() if name.startswith(prefix) and limit.startswith("!"))
    return frozenset(TableId(name.removeprefix(prefix)) for name in found)


def pausing_scope(config: Mapping[str, str], band: str, tenant: str, table: str) -> Scope | None:
    """Return what is paused, by the settings of a queue, so that such jobs wait; None: nothing."""
    paused = config.get("paused", "")
    found = (
        (Scope.QUEUE, paused.startswith("all")),
        (Scope.BAND, band in paused),
        *(
            (scope, config.get(f"{LIMIT_PREFIX}{scope}|{name}", "").startswith("!"))
            for scope, name in ((Scope.TENANT, tenant), (Scope.TABLE, table))
        ),
    )
    return next((scope for scope, is_paused in found if is_paused), None)


@translate_redis_errors
async def read_config(queue: AsyncQueueExecutor) -> dict[str, str]:
    """Return the settings of a queue or a group: weights and limits of tables are the whole queue's."""
    raw = await queue.redis.hgetall(keys.config(queue.name))
    found = {text(name): text(value) for name, value in raw.items()}
    if not keys.group_of(queue.name):
        return found
    raw = await queue.redis.hgetall(keys.tables_config(queue.name))
    of_tables = {text(name): text(value) for name, value in raw.items()}
    mark = f":{Scope.TABLE}|"
    return found | {name: value for name, value in of_tables.items() if mark in name}


class QueueAdmin:
    """Administration of one queue; every call may be repeated. `operator`: where what operators set is saved."""

    def __init__(self, queue: AsyncQueueExecutor, operator: OperatorSettings) -> None:
        self._queue = queue
        self.operator = operator
        self._name = queue.name
        self._append_only = AppendOnlyUpkeep()
        self._urgent = UrgentJobs(queue.redis)

    async def has_jobs(self) -> bool:
        """Return whether jobs wait or run, in any group."""
        async with self._queue.redis.pipeline(transaction=False) as pipe:
            for name in self._queue.names:
                pipe.zcard(keys.queued(name))
                pipe.zcard(keys.leases(name))
            return any(await pipe.execute())

    async def depth(self) -> QueueDepth:
        """Count the jobs per state."""
        return await self._queue.run(queries.depth(self._name))

    async def depth_of_all(self) -> QueueDepth:
        """Count the jobs per state in the queue and its groups."""
        return sum_of_depths([await self._queue.run(queries.depth(name)) for name in self._queue.names])

    @translate_redis_errors
    async def pauses(self) -> tuple[str, ...]:
        """Return what is paused in the queue and in each of its groups, as they hold it; empty: nothing."""
        pipeline = self._queue.redis.pipeline(transaction=False)
        for name in self._queue.names:
            pipeline.hget(keys.config(name), "paused")
        return tuple(text(paused or "") for paused in await pipeline.execute())

    async def order(self, claims: int) -> tuple[NextJob, ...]:
        """Predict the next claims without claiming."""
        return await self._queue.run(queries.order(self._name, claims=claims))

    @translate_redis_errors
    async def partitions(self, jobs: Sequence[JobId]) -> Mapping[JobId, str]:
        """Return the partition of each job that waits or runs."""
        pipeline = self._queue.redis.pipeline(transaction=False)
        for job in jobs:
            pipeline.hget(keys.job(self._name, job), "partition")
        found = zip(jobs, await pipeline.execute(), strict=True)
        return {job: text(partition) for job, partition in found if partition is not None}

    @translate_redis_errors
    async def waiting_counts(self) -> QueuedFigures:
        """Count the queued jobs by band, tenant and table, flow by flow; they move while they are counted."""
        bands: Counter[str] = Counter()
        tenants: Counter[str] = Counter()
        tables: Counter[str] = Counter()
        scan = self._queue.redis.scan_iter(match=keys.all_flows(self._name), count=SCAN_COUNT)
        flows = [key async for key in scan][:MAX_FLOWS]
        for first in range(0, len(flows), SCAN_COUNT):
            page = flows[first : first + SCAN_COUNT]
            pipeline = self._queue.redis.pipeline(transaction=False)
            for key in page:
                pipeline.zcard(key)
            for key, count in zip(page, await pipeline.execute(), strict=True):
                band, tenant, table = keys.flow_parts(self._name, text(key))
                bands[band.name.lower()] += count
                tenants[tenant] += count
                tables[table] += count
        return QueuedFigures(bands, tenants, tables)

    async def oldest_waits(self) -> QueuedFigures:
        """Find how long the oldest job of each band, tenant and table has been waiting."""
        return await oldest_waits(self._queue)

    async def occupancy(self) -> SlotOccupancy:
        """Return the slot use of the last hour."""
        return await occupancy(self._queue)

    async def configure(self, settings: Mapping[str, int]) -> None:
        """Write the settings that are given, by name; the others stay."""
        await self.operator.begin()
        await self._queue.run(commands.configure(self._name, settings))
        if by_operator := {name: value for name, value in settings.items() if not SETTINGS[name].is_set_by_decider}:
            await self.operator.record_settings(by_operator)

    @translate_redis_errors
    async def settings(self) -> QueueSettings:
        """Return the queue's own settings; what is absent, or no number, is at its default, as in the scripts."""
        found = await self._queue.redis.hmget(keys.config(self._name), list(SETTINGS))
        given = zip(SETTINGS, (text(value or "") for value in found), strict=True)
        return QueueSettings(**{name: int(value) for name, value in given if value.isdecimal()})

    @translate_redis_errors
    async def recheck_throttled(self) -> int:
        """Readmit members that a share of the slots throttled, after the number of slots changed; returns them."""
        limits = limits_among(await self.weights_and_limits()).items()
        shares = [name for name, value in limits if _is_share(value)]
        parked = [
            audit.throttled(self._name, Scope(level), name) for level, _, name in (one.partition("|") for one in shares)
        ]
        return sum([await self._queue.run(one) for one in parked])

    @translate_redis_errors
    async def delete_old_libraries(self) -> int:
        """Delete the libraries of other releases; one that still runs loads its own again. Returns their number."""
        mine = self._queue.library_name
        found = await self._queue.redis.function_list(library=LIBRARY + "*")
        names = {text(one[one.index(b"library_name") + 1]) for one in found}
        for name in names - {mine}:
            await self._queue.redis.function_delete(name)
        return len(names - {mine})

    async def rewrite_aof(self) -> bool:
        """Have the server rewrite its log where that is due; returns whether that was requested."""
        return await self._append_only.rewrite(self._queue.redis)

    async def weights_and_limits(self) -> Mapping[str, str]:
        """Return weights, limits and pauses as the queue holds them: `weight:<level>|<name>` and so on."""
        found = await read_config(self._queue)
        return {name: value for name, value in found.items() if name == "paused" or name.startswith(SHOWN_PREFIXES)}

    async def paused_by(self, band: Band, table: TableRef) -> Scope | None:
        """Return what is paused so that jobs of a table wait in a band; None: nothing."""
        return pausing_scope(await self.weights_and_limits(), str(int(band)), table.tenant, table.id)

    async def paused_tables(self) -> frozenset[TableId]:
        """Return the ids of the tables that are paused."""
        return paused_tables(await self.weights_and_limits())

    @translate_redis_errors
    async def is_paused(self, scope: Scope, name: str) -> bool:
        """Return whether jobs of a tenant or table are not dispatched."""
        config = keys.tables_config if scope is Scope.TABLE else keys.config
        limit = await self._queue.redis.hget(config(self._name), f"{LIMIT_PREFIX}{scope}|{name}")
        return text(limit or "").startswith("!")

    async def work_window(self, table: TableId) -> QueueWindow | None:
        """Return the work window of a table, None if it has none."""
        found = await self._queue.redis.hget(keys.work_windows(self._name), table)
        return None if found is None else QueueWindow.decode(text(found))

    async def set_weight(self, scope: Scope, name: str, weight: float | None) -> None:
        """Set a weight; None is the default."""
        await self.operator.begin()
        await self._queue.run(admin_commands.set_weight(self._name, scope, name, weight))
        await self.operator.record_weight(scope, name, weight)

    async def set_limit(self, scope: Scope, name: str, limit: SlotLimit | SlotQuota | None) -> None:
        """Set how many jobs of a tenant or table run at once; None lifts the limit."""
        await self.operator.begin()
        await self._queue.run(admin_commands.set_limit(self._name, scope, name, limit))
        await self.operator.record_limit(scope, name, limit)

    @translate_redis_errors
    async def budgets(self, table: TableRef | None = None) -> dict[str, tuple[BudgetUse, ...]]:
        """Return budgets and their use by `<scope>|<name>`: of a table, its tenant and the queue, or of all tenants."""
        redis, held = self._queue.redis, keys.budgets(self._name)
        amplification: dict[str, tuple[BudgetUse, ...]] = {}
        if table is None:
            shown = (f"{Scope.TENANT}|", f"{Scope.QUEUE}|")
            names = [name for one in await redis.hkeys(held) if (name := text(one)).startswith(shown)]
        else:
            names = [f"{Scope.TABLE}|{table.id}", f"{Scope.TENANT}|{table.tenant}", f"{Scope.QUEUE}|"]
            amplification = await self._amplification(table.id)
        async with redis.pipeline(transaction=False) as pipe:
            pipe.hmget(held, PRICES_FIELD, *names)
            pipe.hmget(keys.spent(self._name), PRICES_FIELD, *names)
            pipe.time()
            (prices, *found), (_, *spent), clock = await pipe.execute()
        return amplification | {
            name: budget_uses(text(budget), text(used or b""), text(prices or b""), milliseconds(clock))
            for name, budget, used in zip(names, found, spent, strict=True)
            if budget
        }

    async def _amplification(self, table: TableId) -> dict[str, tuple[BudgetUse, ...]]:
        name = f"{AMPLIFICATION_SCOPE}|{table}"
        async with self._queue.redis.pipeline(transaction=False) as pipe:
            pipe.hget(keys.budgets(self._name), name)
            pipe.hget(keys.rates(self._name, table), "rewritten")
            pipe.hget(keys.table_state(self._name, table), "ingested")
            pipe.time()
            limit, *days, clock = await pipe.execute()
        rewritten, ingested = (text(one or b"") for one in days)
        found = amplification_use(text(limit or b"0"), rewritten, ingested, milliseconds(clock))
        return {name: (found,)} if limit else {}

    async def set_budget(self, scope: Scope, name: str, budget: str) -> None:
        """Set what the jobs of a queue, tenant or table may use; empty lifts it. Raises ValueError for another text."""
        encoded = encode_budgets(budget)
        await self.operator.begin()
        await self._queue.run(admin_commands.set_budget(self._name, scope, name, encoded))
        await self.operator.record_budget(scope, name, budget)

    async def pause(self, scope: Scope, name: str, *, paused: bool) -> None:
        """Stop dispatching jobs of a scope, or start again."""
        await self.operator.begin()
        await self._queue.run(admin_commands.pause(self._name, scope, name, paused=paused))
        await self.operator.record_pause(scope, name, paused=paused)

    async def hold(self, table: TableId) -> None:
        """Pause a table that is about to be registered unasked; as its registration, it is saved with the next pass."""
        await self._queue.run(admin_commands.pause(self._name, Scope.TABLE, table))
        await self.operator.record_pause(Scope.TABLE, table, paused=True, is_saved=False)

    async def expedite(self, job: JobId, now_ms: int) -> MoveOutcome:
        """Make a waiting job the next one of its tenant: an urgent one as long as the tenant may have more of those."""
        found = await self._queue.run(queries.job(self._name, job))
        if found is None:
            return MoveOutcome.UNKNOWN
        band = found.band
        if band is not Band.URGENT and await self._urgent.take(found.tenant, 1, now_ms):
            band = Band.URGENT
        return await self._queue.run(admin_commands.expedite(self._name, job, band))

    async def requeue(self, job: JobId) -> MoveOutcome:
        """Make a failed job ready now, and reset its failed attempts."""
        return await self._queue.run(admin_commands.requeue(self._name, job))

    async def preempt(self, rules: Preemption) -> tuple[Preempted, ...]:
        """Ask running jobs to yield to strict ones that wait for too long."""
        return await self._queue.run(admin_commands.preempt(self._name, rules))

    async def audit(self) -> AuditResult:
        """Compute every index again and repair what differs; a page per call, so that the queue stays available."""
        seen = repaired = 0
        page: list[AuditedKey] = []
        parked: list[AuditedKey] = []
        async for found in self._audited_keys():
            seen += 1
            (parked if found.is_throttled else page).append(found)
            if len(page) == audit.PAGE:
                repaired += await self._repair(page)
                page = []
        repaired += await self._repair(page)
        for asked in audit.final_steps(self._name, parked):
            repaired += await self._follow(asked)
        if not keys.group_of(self._name):
            await self._retire_groups()
        if repaired:
            log.warning("queue_repaired", queue=self._name, keys=seen, repaired=repaired)
        return AuditResult(seen, repaired)

    @translate_redis_errors
    async def _retire_groups(self) -> None:
        """Have jobs in groups that are not served any more follow their tables, and forget those groups once empty.

        Each claim looks at all groups that are known.
        """
        redis: Any = self._queue.redis
        for group in await redis.zrange(keys.groups(self._name), 0, -1):
            name = keys.in_group(self._name, text(group))
            if name in self._queue.names:
                continue
            waiting = (keys.queued(name), keys.delayed(name), keys.quarantined(name))
            jobs = [text(job) for index in waiting for job in await redis.zrange(index, 0, audit.PAGE // 4)]
            if jobs:
                await self._queue.run(audit.jobs(name, jobs))
            elif not await redis.exists(keys.leases(name)):
                await redis.zrem(keys.groups(self._name), group)

    async def _repair(self, page: list[AuditedKey]) -> int:
        return sum([await self._follow(asked) for asked in audit.steps(self._name, page)])

    async def _follow(self, asked: Command[Any]) -> int:
        repaired = 0
        call: Command[Any] | None = asked
        while call is not None:
            reply = await self._queue.run(call)
            if isinstance(reply, int):
                return repaired + max(0, reply)
            repaired += reply.repaired
            call = audit.next_page(call, reply)
        return repaired

    async def _audited_keys(self) -> AsyncIterator[AuditedKey]:
        with translating_redis_errors():
            async for key in self._queue.redis.scan_iter(match=keys.all_keys(self._name), count=SCAN_COUNT):
                if one := audit.parse_key(self._name, key):
                    yield one


def _is_share(limit: str) -> bool:
    """Return whether a limit is a share of the slots; a paused one is left alone."""
    return limit.endswith("%") and not limit.startswith("!")
