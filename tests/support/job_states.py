"""What state each job of a queue is in, read past the scripts."""

import redis

from shared.queue import keys
from shared.queue.lua_library import ScriptName
from shared.queue.model import JobState
from shared.queue.states import Transition, is_legal
from tests.support.queue_state import State

States = dict[str, JobState]


def job_states(client: redis.Redis, queue: str) -> States:
    """Return the state of each job by its id."""
    start = keys.prefix(queue) + "j:"
    found = [key.decode() for key in client.scan_iter(match=start + "*")]
    states = [client.hget(key, "state") for key in found]
    return {
        key.removeprefix(start): JobState(state.decode())
        for key, state in zip(found, states, strict=True)
        if state is not None
    }


def states_in(state: State) -> States:
    """Return the state of each job in a reading of the whole queue."""
    return {job: JobState(stored["state"]) for job, stored in state.jobs.items()}


def transitions(before: States, after: States) -> set[Transition]:
    """Return the changes of state between two readings."""
    pairs = {(before.get(job), after.get(job)) for job in before.keys() | after.keys()}
    return {(old, new) for old, new in pairs if old is not new}


def illegal(before: States, after: States, script: ScriptName) -> set[Transition]:
    """Return the changes of state that this script must not have made."""
    return {one for one in transitions(before, after) if not is_legal(one, script)}
