"""The registry of actions: every kind of work that this release decides about, in the order of evaluation."""

from collections.abc import Iterator
from dataclasses import dataclass

from decider.decide.action import Action, TimerTarget
from decider.decide.compaction import COMPACTION
from shared.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class ActionRegistry:
    """Actions by kind; each kind once."""

    actions: tuple[Action, ...]

    def __post_init__(self) -> None:
        if len(set(self.kinds)) < len(self.actions) or not self.actions:
            raise InvalidInput(f"expected one action or more, each of a kind of its own: {', '.join(self.kinds)}")

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions)

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of jobs that the actions lead to."""
        return tuple(action.kind for action in self.actions)

    def of(self, kind: str) -> Action:
        """Return the action of a kind. Raises InvalidInput for one that this release does not know."""
        for action in self.actions:
            if action.kind == kind:
                return action
        raise InvalidInput(
            f"this release knows no action of the kind {kind!r}", field="action", allowed=", ".join(self.kinds)
        )

    def parse_timer(self, name: str) -> tuple[Action, TimerTarget] | None:
        """Return the action that set a timer and what it evaluates; None for a timer that another release set."""
        for action in self.actions:
            target = action.timers.parse(name) if action.timers is not None else None
            if target is not None:
                return action, target
        return None


ACTIONS = ActionRegistry((COMPACTION,))
