"""Defaults refresh: publishes this decider's policy defaults once, then adopts those that are in force."""

from decider.background.runner import Schedule
from decider.tracking.shared_defaults import SharedDefaults

EVERY_S = 30.0
"""Seconds between two reads of the defaults, for what is shown; a table decided under others is noticed at once."""

RETRY_S = 2.0
"""Pause before another try while Redis is unavailable."""


class DefaultsRefresh:
    """Keeps the shared defaults current."""

    def __init__(self, defaults: SharedDefaults) -> None:
        self.schedule = Schedule(EVERY_S, "defaults_refresh_failed", retry_s=RETRY_S)
        self._defaults = defaults

    async def run_once(self) -> None:
        """Publish at the first pass, adopt at the others."""
        await self._defaults.refresh()
