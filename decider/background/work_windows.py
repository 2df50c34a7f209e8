"""Renews in the queue, whose scripts know no zones, when work windows open and close, and the prices of budgets."""

from decider.background.runner import Schedule
from decider.store.redis.queue_executor import AsyncQueueExecutor
from decider.store.redis.redis_errors import translate_redis_errors
from decider.store.stored_values import milliseconds
from shared.policy.budgets import encode_prices
from shared.policy.work_windows import HeldWork
from shared.prices import Prices
from shared.queue import admin_commands, keys
from shared.queue.decode import text

EVERY_S = 6 * 3_600.0
"""The queue knows the times of two weeks; new ones are needed before the last of them."""


class WorkWindowTimes:
    """Renews the times of all tables; a window that changes meanwhile is left alone, so several deciders do no harm."""

    def __init__(self, queue: AsyncQueueExecutor, prices: Prices | None = None) -> None:
        self.schedule = Schedule(EVERY_S, "work_windows_failed")
        self._queue = queue
        self._prices = prices

    @translate_redis_errors
    async def run_once(self) -> int:
        """Set the prices of budgets, and renew the times of each table; return how many have a window."""
        queue, tables = self._queue, 0
        await queue.run(admin_commands.set_prices(queue.name, encode_prices(self._prices)))
        now_ms = milliseconds(await queue.redis.time())
        async for table, found in queue.redis.hscan_iter(keys.work_windows(queue.name)):
            tables += 1
            before = text(found)
            after = HeldWork.of_queue(before).in_queue(now_ms)
            if after != before:
                await queue.run(admin_commands.set_window(queue.name, text(table), after, expected=before))
        return tables
