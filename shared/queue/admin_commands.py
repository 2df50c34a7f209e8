"""Steering a queue while it runs: weights, limits, pauses, promotion and preemption; each call may be repeated.

None of it is a job's state: a table that is paused or at its limit is only absent from the tree of ready tables.
"""

from dataclasses import dataclass

from shared.errors import InvalidInput
from shared.policy.budgets import AMPLIFICATION_SCOPE, EXEMPTION_SCOPE, PRICES_FIELD
from shared.queue import decode, keys
from shared.queue.command import Command
from shared.queue.limits import MAX_WINDOW_BYTES, require_bytes, require_name, require_range
from shared.queue.lua_library import ScriptName
from shared.queue.model import Band, JobId, MoveOutcome, Scope

WEIGHT_RANGE = (0.01, 100.0)
"""A share 10,000 times another's is as good as a strict order, which bands are for."""

MAX_LIMIT = 100_000
"""Slots; more than any queue has."""


@dataclass(frozen=True, slots=True)
class SlotLimit:
    """A limit: at most so many jobs run at once."""

    count: int

    def __post_init__(self) -> None:
        require_range(self.count, "limit", 1, MAX_LIMIT)


@dataclass(frozen=True, slots=True)
class SlotQuota:
    """A limit: at most this share of all slots (`QueueSettings.slots`), in percent, but at least one slot."""

    percent: int

    def __post_init__(self) -> None:
        require_range(self.percent, "quota", 1, 100)


@dataclass(frozen=True, slots=True)
class Preemption:
    """When a job of a strict band may preempt a running job.

    max_wait_ms: how long it waits for a slot that frees itself. min_run_ms: what a run is given before it may be
    revoked. max_preemptions: how often one job is revoked at most, so that preemption cannot starve it.
    """

    max_wait_ms: int = 3_000
    min_run_ms: int = 60_000
    max_preemptions: int = 2


@dataclass(frozen=True, slots=True)
class Preempted:
    """`victim` was asked to yield for `waiting`."""

    waiting: JobId
    victim: JobId


def set_weight(queue: str, scope: Scope, name: str, weight: float | None) -> Command[None]:
    """Set what a band, tenant or table gets relative to its siblings; None is the default, 1."""
    _require_name(scope, name)
    if scope is Scope.QUEUE:
        raise InvalidInput("a queue has no siblings and so no weight", field="level", allowed="band, tenant, table")
    if weight is not None and not WEIGHT_RANGE[0] <= weight <= WEIGHT_RANGE[1]:
        raise InvalidInput(
            f"weight is {weight}; use a value from {WEIGHT_RANGE[0]} to {WEIGHT_RANGE[1]}",
            field="weight",
            allowed=f"{WEIGHT_RANGE[0]}..{WEIGHT_RANGE[1]}",
        )
    text = "" if weight is None else f"{weight:.6g}"
    return Command(ScriptName.WEIGHT, _keys(queue), (scope.value, name, text), decode.nothing)


def set_limit(queue: str, scope: Scope, name: str, limit: SlotLimit | SlotQuota | None) -> Command[None]:
    """Set how many jobs of a tenant or table run at once at most; None lifts the limit. What runs goes on."""
    _require_name(scope, name)
    if scope not in (Scope.TENANT, Scope.TABLE):
        raise InvalidInput(f"a {scope} has no limit", field="level", allowed="tenant, table")
    match limit:
        case None:
            text = ""
        case SlotLimit(count):
            text = str(count)
        case SlotQuota(percent):  # pragma: no branch - mypy proves that there is no other limit
            text = f"{percent}%"
    return Command(ScriptName.LIMIT, _keys(queue), (scope.value, name, text), decode.nothing)


def set_window(queue: str, table: str, window: str, *, expected: str = "") -> Command[bool]:
    """Set the work window of a table, as `HeldWork.in_queue` writes it; empty for none.

    expected: window that the table must have for a change; empty for any. Returns whether it was set.
    """
    require_name(table, "table")
    require_bytes(window, "window", MAX_WINDOW_BYTES)
    return Command(ScriptName.WINDOW, _keys(queue), (table, window, expected), decode.flag)


def set_budget(queue: str, scope: Scope, name: str, budget: str) -> Command[None]:
    """Set what the jobs of a table, tenant or queue may use, as `encode_budgets` writes it; empty for no limit."""
    _require_name(scope, name)
    if scope is Scope.BAND:
        raise InvalidInput("a band has no budget", field="level", allowed="queue, tenant, table")
    require_bytes(budget, "budget", MAX_WINDOW_BYTES)
    return Command(ScriptName.BUDGET, _keys(queue), (f"{scope}|{name}", budget), decode.nothing)


def set_amplification(queue: str, table: str, limit: str) -> Command[None]:
    """Set how many bytes jobs may rewrite for each byte added to a table, a decimal number; empty for no limit."""
    return _set_of_table(queue, AMPLIFICATION_SCOPE, table, limit)


def set_exemption(queue: str, table: str, small_files: str) -> Command[None]:
    """Exempt jobs of partitions with more small files from the limits of their table alone; empty: none."""
    return _set_of_table(queue, EXEMPTION_SCOPE, table, small_files)


def _set_of_table(queue: str, scope: str, table: str, value: str) -> Command[None]:
    require_name(table, "table")
    return Command(ScriptName.BUDGET, _keys(queue), (f"{scope}|{table}", value), decode.nothing)


def set_prices(queue: str, prices: str) -> Command[None]:
    """Set the prices of budgets of money, as `encode_prices` writes them; empty for none."""
    return Command(ScriptName.BUDGET, _keys(queue), (PRICES_FIELD, prices), decode.nothing)


def pause(queue: str, scope: Scope, name: str = "", *, paused: bool = True) -> Command[None]:
    """Hand out nothing of a queue, band, tenant or table until it is resumed (`paused=False`); what runs goes on."""
    _require_name(scope, name)
    return Command(ScriptName.PAUSE, _keys(queue), (scope.value, name, int(paused)), decode.nothing)


def expedite(queue: str, job: JobId, band: Band = Band.URGENT) -> Command[MoveOutcome]:
    """Make a waiting job ready now, at the best priority of this band, or of its own if that is better."""
    return Command(ScriptName.EXPEDITE, _keys(queue), (job, int(band)), decode.move)


def requeue(queue: str, job: JobId) -> Command[MoveOutcome]:
    """Make a delayed or quarantined job ready now, and forget its failures."""
    return Command(ScriptName.REQUEUE, _keys(queue), (job,), decode.move)


def preempt(queue: str, rules: Preemption) -> Command[tuple[Preempted, ...]]:
    """Ask running jobs to yield to jobs of better bands that have waited for too long; see the script."""
    args = (rules.max_wait_ms, rules.min_run_ms, rules.max_preemptions)
    return Command(ScriptName.PREEMPT, _keys(queue), args, _preempted)


def _preempted(raw: list[list[bytes | str]]) -> tuple[Preempted, ...]:
    return tuple(Preempted(JobId(decode.text(waiting)), JobId(decode.text(victim))) for waiting, victim in raw)


def _keys(queue: str) -> tuple[str, ...]:
    return (keys.prefix(queue),)


def _require_name(scope: Scope, name: str) -> None:
    match scope:
        case Scope.QUEUE:
            if name:
                raise InvalidInput("the whole queue takes no name", field="name")
        case Scope.BAND:
            if name not in {str(int(band)) for band in Band}:
                raise InvalidInput(f"{name!r} is no band", field="name", allowed="0, 1, 2, 3, 4")
        case _:
            require_name(name, scope.value)
