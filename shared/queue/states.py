"""Job states: every legal transition, with the scripts that make it and when; what is absent here must not happen.

The scripts in `lua/` implement this table. A test drives them and compares what they do with it, in both directions;
docs/queue.md shows the table and its diagram.
"""

from collections.abc import Mapping
from types import MappingProxyType

from shared.queue.lua_library import ScriptName
from shared.queue.model import JobState

CONSISTS_OF: Mapping[ScriptName, tuple[ScriptName, ...]] = MappingProxyType(
    {ScriptName.FINISH_AND_CLAIM: (ScriptName.FINISH, ScriptName.CLAIM)}
)
"""Scripts that do what others do, one after the other, in one call; they make the transitions of these and no other."""

Transition = tuple[JobState | None, JobState | None]
"""State before and after; None: the job does not exist."""

_REQUESTED = dict.fromkeys((ScriptName.ENQUEUE, ScriptName.INGEST, ScriptName.DECIDE), "requested")
_DEBOUNCED = dict.fromkeys(_REQUESTED, "requested with a debounce")
_SOONER = dict.fromkeys(_REQUESTED, "a further request has a shorter delay, or finds that the delay is over")
_READY = "the delay is over, or the claiming actor can run what was set aside, or the work window or a budget allows it"
_HELD = "set aside: the claiming actor cannot run it, or its table's work window or a budget holds it"
_BY_HAND = dict.fromkeys((ScriptName.EXPEDITE, ScriptName.REQUEUE), "on demand")

TRANSITIONS: Mapping[Transition, Mapping[ScriptName, str]] = MappingProxyType(
    {
        (None, JobState.QUEUED): _REQUESTED,
        (None, JobState.DELAYED): _DEBOUNCED,
        (JobState.QUEUED, JobState.LEASED): {ScriptName.CLAIM: "handed to a worker"},
        (JobState.QUEUED, JobState.DELAYED): {ScriptName.CLAIM: _HELD},
        (JobState.QUEUED, None): {ScriptName.CANCEL: "cancelled"},
        (JobState.DELAYED, JobState.QUEUED): {**_SOONER, ScriptName.CLAIM: _READY, **_BY_HAND},
        (JobState.DELAYED, None): {ScriptName.CANCEL: "cancelled"},
        (JobState.QUARANTINED, JobState.QUEUED): {ScriptName.CLAIM: "half-open: one more attempt", **_BY_HAND},
        (JobState.QUARANTINED, None): {ScriptName.CANCEL: "cancelled"},
        (JobState.LEASED, None): {
            ScriptName.FINISH: "done or cancelled, and nothing was requested meanwhile",
            ScriptName.CLAIM: "the lease of a cancelled run expired, and nothing was requested since",
        },
        (JobState.LEASED, JobState.QUEUED): {
            ScriptName.FINISH: "yielded, or a request arrived meanwhile",
            ScriptName.CLAIM: "the lease expired",
        },
        (JobState.LEASED, JobState.DELAYED): {
            ScriptName.FINISH: "failed: back-off; or a request with a debounce arrived meanwhile",
            ScriptName.CLAIM: "the lease of a cancelled run expired, and a request with a debounce arrived since",
        },
        (JobState.LEASED, JobState.QUARANTINED): {
            ScriptName.FINISH: "a permanent failure, or the last attempt failed",
            ScriptName.CLAIM: "the lease expired at the last attempt",
        },
    }
)


def is_legal(transition: Transition, script: ScriptName) -> bool:
    """Return whether one call of a script may make this transition; a claim may release a job and serve it, too."""
    return any(_is_legal(transition, part) for part in CONSISTS_OF.get(script, (script,)))


def _is_legal(transition: Transition, script: ScriptName) -> bool:
    before, after = transition
    if before == after or script in TRANSITIONS.get(transition, {}):
        return True
    released = TRANSITIONS.get((before, JobState.QUEUED), {})
    return script is ScriptName.CLAIM and after in (JobState.LEASED, JobState.DELAYED) and script in released
