"""What a table's policy asks of the queue, its weight and its limit, is set there in the moment the policy changes.

Levers that a person has set stay as they are while the policy says nothing: only what a property once set is taken
back with it.
"""

from fractions import Fraction

from decider.store.queue import AsyncQueue
from shared.policy import Policy
from shared.queue import steering
from shared.queue.model import Level
from shared.queue.steering import Quota, Slots
from shared.table import TableId

NOTHING = Policy()


def wanted(policy: Policy) -> str:
    """Return what a policy asks of the queue, as `weight|limit`; empty where it asks for nothing."""
    weight = "" if policy.weight == NOTHING.weight else str(policy.weight)
    limit = "" if policy.quota is None else str(policy.quota)
    if policy.max_concurrent_jobs is not None:
        limit = str(policy.max_concurrent_jobs)
    return f"{weight}|{limit}" if weight or limit else ""


async def steer(queue: AsyncQueue, table: TableId, *, before: str, now: str) -> None:
    """Set in the queue what has changed between two answers of `wanted`; may be repeated."""
    weight_before, _, limit_before = before.partition("|")
    weight, _, limit = now.partition("|")
    if weight != weight_before:
        share = float(Fraction(weight)) if weight else None
        await queue.run(steering.weigh(queue.name, Level.TABLE, table, share))
    if limit != limit_before:
        await queue.run(steering.limit(queue.name, Level.TABLE, table, _limit(limit)))


def _limit(text: str) -> Slots | Quota | None:
    if not text:
        return None
    slots = Fraction(text)
    return Quota(int(slots * 100)) if slots < 1 else Slots(int(slots))
