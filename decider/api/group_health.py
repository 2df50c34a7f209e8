"""Jobs and actors of one group of the queue, as probes and metrics show them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.queue.model import JobState
from shared.queue.records import QueueDepth

NO_DEPTH = QueueDepth(0, dict.fromkeys(JobState, 0), None)


@dataclass(frozen=True, slots=True)
class GroupHealth:
    """Jobs, and actors by state; `slots`: of the actors that take jobs."""

    depth: QueueDepth = NO_DEPTH
    actors: Mapping[str, int] = field(default_factory=dict)
    slots: int = 0
