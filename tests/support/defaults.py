"""The defaults of a decider that no one shares a Redis with."""

from decider.state.effective_policy import PolicyDefaults


class Alone:
    """The defaults of a decider that shares its Redis with no other."""

    def __init__(self, defaults: PolicyDefaults) -> None:
        self.current = defaults

    async def refresh(self) -> bool:
        """Return False: there is no one to ask."""
        return False
