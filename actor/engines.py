"""The engines of one actor by table format, and what the actor can therefore do."""

from collections.abc import Iterable

from actor.ports import EngineDeath, TableEngine
from shared.errors import InvalidInput, RetryableError
from shared.formats.registry import support_of
from shared.jobs.payload import COMPACT, SORT

RUNNABLE_KINDS = (COMPACT, SORT)
"""Kinds of jobs on partitions that an actor of this release runs, on every format, as in the decider's registry.

Which kinds of jobs on whole tables it runs is its engine's answer (`TableEngine.table_kinds`)."""


class EngineSet:
    """One engine per format; they live and die together, as they share a process."""

    def __init__(self, engines: Iterable[TableEngine]) -> None:
        found = tuple(engines)
        self._engines = {engine.format: engine for engine in found}
        if not found or len(self._engines) < len(found):
            names = [engine.format for engine in found]
            raise InvalidInput(f"engines for the formats {names}: expected at least one, each with a format of its own")

    @property
    def abilities(self) -> tuple[str, ...]:
        """Abilities of the actor, each as `format/action`: what the decider plans for the format, and no more."""
        return tuple(
            f"{name}/{kind}"
            for name, engine in sorted(self._engines.items())
            for kind in (*RUNNABLE_KINDS, *engine.table_kinds)
            if support_of(name).runs(kind)
        )

    @property
    def table_kinds(self) -> frozenset[str]:
        """Kinds of jobs on whole tables that any of the engines runs."""
        return frozenset(kind for engine in self._engines.values() for kind in engine.table_kinds)

    def of(self, name: str) -> TableEngine:
        """Return the engine of a format (empty: the only one); raises RetryableError for a format without one."""
        if not name and len(self._engines) == 1:
            return next(iter(self._engines.values()))
        if name not in self._engines:
            raise RetryableError(f"no engine for tables of the format {name!r}; here are: {', '.join(self._engines)}")
        return self._engines[name]

    def is_alive(self) -> bool:
        """Return whether every engine can work."""
        return all(engine.is_alive() for engine in self._engines.values())

    def bury(self) -> EngineDeath | None:
        """End what is left of the engines that are not alive; None if one of them cannot be ended."""
        deaths = [engine.terminate() for engine in self._engines.values() if not engine.is_alive()]
        # One that is alive again after the first check is ended all the same, because the caller has given it up.
        deaths = deaths or [engine.terminate() for engine in self._engines.values()]
        return None if None in deaths else deaths[0]

    def cancel(self, job: str) -> None:
        """End the rewrite of this job, whichever engine runs it."""
        for engine in self._engines.values():
            engine.cancel(job)
