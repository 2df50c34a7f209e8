"""Sets weight, limit, work window and budget of a table in the queue as soon as its policy changes them.

What an operator set stays as it is while no property sets it: only what a property set is removed with it.

Moves a table to another group of the queue, with its jobs that wait; what runs ends where it runs.

The table's state names its group, and the scripts hand over each job that they meet in a group which its table left.
So a call that dies leaves nothing to repair: the rest follows with claims of the old group, and with its next audit.
"""

from fractions import Fraction

from decider.state.effective_policy import EffectivePolicy, PolicySource
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.stored_values import milliseconds
from decider.store.tables.table_state import replace_field
from shared.policy.budgets import encode_budgets
from shared.policy.policy import BudgetWork, Policy
from shared.policy.work_windows import HeldWork
from shared.queue import admin_commands, audit, keys
from shared.queue.admin_commands import SlotLimit, SlotQuota
from shared.queue.decode import text
from shared.queue.model import Scope
from shared.table import TableId

DEFAULT_POLICY = Policy()

_FIELD = "queue_limits"

_LIMITS = ("weight", "limit", "window", "budget", "amplification", "exempts")

MOVING = "?"
"""Begins the limits of a state that are announced and may be set in part: no policy has such ones."""

LEAST_WEIGHT, GREATEST_WEIGHT = Fraction(1, 100), Fraction(100)
"""Weights that the queue takes; a smaller or greater quota weighs as much."""


def queue_limits_of(in_force: EffectivePolicy) -> str:
    """Return the queue limits of a policy, as `weight|limit`, then what it has of `_LIMITS`; empty if none.

    A quota is a weight, too, unless a weight was set: where quotas promise more than there is, each table of a tenant
    gets the same part of its own.
    """
    policy = in_force.policy
    has_own_weight = in_force.origins["weight"].source is not PolicySource.DEFAULT
    weight = "" if policy.weight == DEFAULT_POLICY.weight else str(policy.weight)
    if policy.quota is not None and not has_own_weight:
        weight = str(min(max(policy.quota, LEAST_WEIGHT), GREATEST_WEIGHT))
    limit = "" if policy.quota is None else str(policy.quota)
    if policy.max_concurrent_jobs is not None:
        limit = str(policy.max_concurrent_jobs)
    window = HeldWork(policy.window_work, policy.work_window).as_limit if policy.work_window is not None else ""
    amplification = "" if policy.max_write_amplification is None else repr(float(policy.max_write_amplification))
    is_exempt = policy.budget_work is BudgetWork.UNCROWDED and (policy.budget or amplification)
    found = [
        weight,
        limit,
        window,
        policy.budget or "",
        amplification,
        str(policy.max_small_files) if is_exempt else "",
    ]
    while found and not found[-1]:
        found.pop()
    return "|".join(found) + "|" * (len(found) == 1)


@translate_redis_errors
async def apply_queue_limits(queue: AsyncQueueExecutor, table: TableId, limits: str) -> None:
    """Set a table's queue limits to a result of `queue_limits_of`; may be repeated, and interrupted anywhere.

    Which of them a property sets is stored before they are set, and deleted after they are removed.
    """
    values = dict(zip(_LIMITS, limits.split("|"), strict=False))
    asked = {name for name, value in values.items() if value}
    weight, limit, window = (values.get(name, "") for name in ("weight", "limit", "window"))
    ours = set(text(await queue.redis.hget(keys.owned_queue_limits(queue.name), table) or b"").split())
    if asked - ours:
        await _record_owned(queue, table, asked | ours)
    if "weight" in asked | ours:
        await queue.run(
            admin_commands.set_weight(queue.name, Scope.TABLE, table, float(Fraction(weight)) if weight else None)
        )
    if "limit" in asked | ours:
        await queue.run(admin_commands.set_limit(queue.name, Scope.TABLE, table, _limit(limit)))
    if "window" in asked | ours:
        now_ms = milliseconds(await queue.redis.time())
        held = HeldWork.of_limit(window).in_queue(now_ms) if window else ""
        await queue.run(admin_commands.set_window(queue.name, table, held))
    if "budget" in asked | ours:
        budget = encode_budgets(values.get("budget", ""))
        await queue.run(admin_commands.set_budget(queue.name, Scope.TABLE, table, budget))
    if "amplification" in asked | ours:
        await queue.run(admin_commands.set_amplification(queue.name, table, values.get("amplification", "")))
    if "exempts" in asked | ours:
        await queue.run(admin_commands.set_exemption(queue.name, table, values.get("exempts", "")))
    if ours - asked:
        await _record_owned(queue, table, asked)


async def move_queue_limits(queue: AsyncQueueExecutor, table: TableId, *, before: str, after: str) -> bool:
    """Set a table's queue limits, and note them in its state; False if that has others than `before` meanwhile.

    A state whose limits are announced and not yet set differs from any policy, so that after a crash the next call sets
    them. Of two callers each ends with the limits that the state has then.
    """
    if not await announce_queue_limits(queue, table, before=before, after=after):
        return False
    asked = after
    while True:
        await apply_queue_limits(queue, table, after)
        _, noted = await replace_field(queue, table, _FIELD, before=MOVING + after, after=after)
        found = noted.removeprefix(MOVING)
        if found == after:
            return after == asked
        after = found


async def announce_queue_limits(queue: AsyncQueueExecutor, table: TableId, *, before: str, after: str) -> bool:
    """Note in a table's state, before they are set, that its limits change; False if it has others than `before`."""
    _, noted = await replace_field(queue, table, _FIELD, before=before, after=MOVING + after)
    return noted == MOVING + after


async def _record_owned(queue: AsyncQueueExecutor, table: TableId, owned: set[str]) -> None:
    if owned:
        await queue.redis.hset(keys.owned_queue_limits(queue.name), table, " ".join(sorted(owned)))
    else:
        await queue.redis.hdel(keys.owned_queue_limits(queue.name), table)


def _limit(limit: str) -> SlotLimit | SlotQuota | None:
    if not limit:
        return None
    slots = Fraction(limit)
    return SlotQuota(int(slots * 100)) if slots < 1 else SlotLimit(int(slots))


SCAN_COUNT = 1_000
"""Jobs that one ZSCAN reads: below a millisecond of the server."""


async def move_table(queue: AsyncQueueExecutor, table: TableId, *, before: str, after: str) -> bool:
    """Note a table's group in its state and have its jobs follow; False if it has another than `before` meanwhile."""
    is_noted, _ = await replace_field(queue, table, "group", before=before, after=after)
    if not is_noted:
        return False
    await hand_over_jobs(queue, table, before=before, after=after)
    return True


@translate_redis_errors
async def hand_over_jobs(queue: AsyncQueueExecutor, table: TableId, *, before: str, after: str) -> int:
    """Have the jobs of a table that wait in the group `before` follow it; return how many did."""
    if before == after:
        return 0
    old, moved = keys.in_group(queue.name, before), 0
    for index in (keys.queued(old), keys.delayed(old), keys.quarantined(old)):
        scan = queue.redis.zscan_iter(index, match=f"{table}.*", count=SCAN_COUNT)
        jobs = [text(job) async for job, _ in scan]
        for first in range(0, len(jobs), audit.PAGE):
            moved += await queue.run(audit.jobs(old, jobs[first : first + audit.PAGE]))
    return moved
