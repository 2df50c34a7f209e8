"""Redis upkeep: the append-only file is rewritten after a start or a full disk, old script libraries are deleted."""

import structlog

from decider.background.runner import Schedule
from decider.store.queue.queue_admin import QueueAdmin
from decider.store.redis.redis_errors import CommandRefused

AOF_EVERY_S = 1.0
"""A full disk may have room again after seconds; a check costs one round trip."""

LIBRARIES_EVERY_S = 600.0
"""A library of another release costs some memory and no time."""

log = structlog.get_logger()


class AofRewrite:
    """Rewrites the append-only file of a server that restarted or had no room, so that it holds current data only."""

    def __init__(self, admin: QueueAdmin) -> None:
        self.schedule = Schedule(AOF_EVERY_S, "queue_maintenance_failed")
        self._admin = admin
        self._refused = ""

    async def run_once(self) -> None:
        """Rewrite the file if that is due; a server may not allow it."""
        try:
            if await self._admin.rewrite_aof():
                log.info("redis_aof_rewritten")
        except CommandRefused as problem:
            self._refused = _reported(self._refused, problem, "the file is left as it is")


class LibraryCleanup:
    """Deletes the script libraries of releases that do not run any more."""

    def __init__(self, admin: QueueAdmin) -> None:
        self.schedule = Schedule(LIBRARIES_EVERY_S, "queue_maintenance_failed")
        self._admin = admin
        self._refused = ""

    async def run_once(self) -> None:
        """Delete the libraries of other releases that are no longer used; a server may not allow it."""
        try:
            await self._admin.delete_old_libraries()
        except CommandRefused as problem:
            self._refused = _reported(self._refused, problem, "old libraries stay")


def _reported(before: str, problem: CommandRefused, effect: str) -> str:
    """Log a refusal once, with its effect; return it."""
    if str(problem) != before:
        log.warning("redis_command_refused", error=str(problem), effect=effect)
    return str(problem)
