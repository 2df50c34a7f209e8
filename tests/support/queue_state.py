"""A queue's whole state in one read, and a clock that tests turn by hand."""

import json
from dataclasses import dataclass
from typing import Any

import redis

from actor.queue_executor import SyncQueueExecutor
from shared.queue import keys
from shared.queue.lua_library import ScriptLibrary, ScriptName
from shared.queue.model import JobState
from shared.queue.states import Transition, is_legal

TEST_TIME = """
-- The clock of tests: microseconds in a key.
local function clock_us() return tonumber(redis.call('GET', S .. 'test:now_us')) end
"""

READ_ALL = """
local state = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local value
  if kind == 'hash' then value = redis.call('HGETALL', key)
  elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'string' then value = redis.call('GET', key)
  elseif kind == 'stream' then value = redis.call('XLEN', key) end
  state[#state + 1] = {key, kind, value, redis.call('PTTL', key) > 0}
end
return cjson.encode(state)
"""


def library_with_test_clock() -> ScriptLibrary:
    return ScriptLibrary({"time": TEST_TIME})


class TestClock:
    """The time that the scripts of `library_with_test_clock` see."""

    __test__ = False

    def __init__(self, client: redis.Redis, queue: str, now_ms: int = 1_700_000_000_000) -> None:
        self._client = client
        self._key = keys.of_tables(queue) + "test:now_us"
        self.now_ms = now_ms
        self.advance(0)

    def advance(self, by_ms: int) -> None:
        self.now_ms += by_ms
        self._client.set(self._key, self.now_ms * 1000)


def emptied(queue: SyncQueueExecutor) -> TestClock:
    """Delete all that the server holds, and return a clock for the queue."""
    queue.redis.flushdb()
    return TestClock(queue.redis, queue.name)


@dataclass(frozen=True, slots=True)
class State:
    """All keys but the test clock, without the queue's prefix."""

    hashes: dict[str, dict[str, str]]
    zsets: dict[str, dict[str, float]]
    replies: dict[str, str]
    streams: dict[str, int]
    without_ttl: frozenset[str]

    def hash(self, name: str) -> dict[str, str]:
        return self.hashes.get(name, {})

    def zset(self, name: str) -> dict[str, float]:
        return self.zsets.get(name, {})

    def named(self, start: str) -> dict[str, dict[str, float]]:
        """Zsets whose names begin with `start`, by the rest of the name."""
        return {name.removeprefix(start): value for name, value in self.zsets.items() if name.startswith(start)}

    @property
    def jobs(self) -> dict[str, dict[str, str]]:
        return {name[2:]: value for name, value in self.hashes.items() if name.startswith("j:")}


def read_state(client: redis.Redis, queue: str) -> State:
    start = keys.prefix(queue)
    state: dict[str, dict[str, Any]] = {"hash": {}, "zset": {}, "set": {}, "string": {}, "stream": {}}
    lasting = set()
    for key, kind, value, has_ttl in json.loads(client.eval(READ_ALL, 0)):
        assert key.startswith(start), f"{key} is outside of the queue's hash slot"
        name = key.removeprefix(start)
        if name == "test:now_us":
            continue
        if kind in ("hash", "zset"):
            pairs = zip(value[::2], value[1::2], strict=True)
            state[kind][name] = {k: float(v) if kind == "zset" else v for k, v in pairs}
        else:
            state[kind][name] = value
        if not has_ttl:
            lasting.add(name)
    return State(state["hash"], state["zset"], state["string"], state["stream"], frozenset(lasting))


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
