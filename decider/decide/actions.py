"""The registry of actions: every kind of work that this release decides about, in the order of evaluation."""

from collections.abc import Iterator
from dataclasses import dataclass

from decider.decide.action import Action, ActionKind, TimerTarget
from decider.decide.checkpoint import CHECKPOINT_ACTION
from decider.decide.cluster import CLUSTER_ACTION
from decider.decide.compaction import COMPACTION
from decider.decide.index import INDEX_ACTION
from decider.decide.metadata_upkeep import UPKEEP_ACTIONS
from decider.decide.row_removal import DEDUPLICATE_ACTION, EXPIRE_ACTION
from decider.decide.set_properties import SET_PROPERTIES_ACTION
from decider.decide.sorting import SORTING
from decider.decide.table_action import TableAction, timer_name
from decider.decide.vacuum import VACUUM_ACTION
from shared.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class ActionRegistry:
    """Actions by kind; each kind once. Iterating yields those on partitions."""

    actions: tuple[Action, ...]
    table_actions: tuple[TableAction, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.kinds)) < len(self.kinds) or not self.actions:
            raise InvalidInput(f"expected one action or more, each of a kind of its own: {', '.join(self.kinds)}")

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions)

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of jobs that the actions lead to, those on partitions first."""
        return (*self.partition_kinds, *self.table_kinds)

    @property
    def partition_kinds(self) -> tuple[str, ...]:
        """Kinds of jobs on partitions."""
        return tuple(action.kind for action in self.actions)

    @property
    def table_kinds(self) -> tuple[str, ...]:
        """Kinds of jobs on whole tables."""
        return tuple(action.kind for action in self.table_actions)

    def of(self, kind: str) -> Action:
        """Return the action on partitions of a kind. Raises InvalidInput for one that this release does not know."""
        for action in self.actions:
            if action.kind == kind:
                return action
        raise self._unknown(kind)

    def table_action(self, kind: str) -> TableAction | None:
        """Return the action on whole tables of a kind; None if the kind is none of them."""
        return next((action for action in self.table_actions if action.kind == kind), None)

    def any_of(self, kind: str) -> ActionKind:
        """Return the action of a kind, of either sort. Raises InvalidInput for one that this release does not know."""
        return self.table_action(kind) or self.of(kind)

    def _unknown(self, kind: str) -> InvalidInput:
        return InvalidInput(
            f"this release knows no action of the kind {kind!r}", field="action", allowed=", ".join(self.kinds)
        )

    def parse_timer(self, name: str) -> tuple[Action, TimerTarget] | None:
        """Return the action that set a timer and what it evaluates; None for a timer that another release set."""
        for action in self.actions:
            target = action.timers.parse(name) if action.timers is not None else None
            if target is not None:
                return action, target
        return None

    def parse_table_timer(self, name: str) -> TableAction | None:
        """Return the action on whole tables that set a timer; None for any other timer."""
        return next((action for action in self.table_actions if timer_name(action) == name), None)


ACTIONS = ActionRegistry(
    (COMPACTION, SORTING),
    (
        VACUUM_ACTION,
        CHECKPOINT_ACTION,
        DEDUPLICATE_ACTION,
        EXPIRE_ACTION,
        CLUSTER_ACTION,
        INDEX_ACTION,
        *UPKEEP_ACTIONS,
        SET_PROPERTIES_ACTION,
    ),
)
