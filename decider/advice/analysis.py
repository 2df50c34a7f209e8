"""Finds the change of a table's policy that its own history argues for, and judges it by the history that follows.

An advice has to save a tenth of the cost over the whole history, and over each half of it alone: a change that only one
day would have paid for is not advised. Pure: time comes from the caller and from the commits.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from decider.state.effective_policy import EffectivePolicy
from decider.store.tables.advice_records import Advice, Evidence, Judgement, ReplayedCost
from decider.whatif.comparison import MIN_HOURS, MS_PER_HOUR, CostModel, Tick, recommend
from decider.whatif.simulator import SimulationResult, replay_lakewright, replay_untouched
from decider.whatif.trace import CommitTrace
from decider.whatif.trace_reader import TableTrace
from shared.policy.policy import GIB, Policy, apply
from shared.policy.properties import read_settings
from shared.table import TableId

MIN_COMMITS = 50
"""Fewest commits that an advice, and a judgement, can rest on."""

MIN_JUDGED_HOURS = 1.0
"""Shortest time after which an applied advice is judged."""

MIN_SAVED_SHARE = 0.10
"""Smallest share of the cost that is worth a person's attention; above what-if's, which someone asked for."""

MIN_SAVED_S_PER_DAY = 60.0
"""Core-seconds a day that an advice has to save: a minute of one core."""

MAX_TAIL_HOURS = 7 * 24.0
"""Time without commits after the last one that a replay continues for: a table that is at rest is read, too."""


def analyze(
    table: TableId, trace: TableTrace, in_force: EffectivePolicy, prices: CostModel, now_ms: int, tick: Tick
) -> Advice | None:
    """Return the advice for a table's history under the policy in effect, None where no change would pay.

    `prices.tail_hours` is replaced by the time that has passed since the last commit. `tick` is called before each
    replay, and may raise to stop the analysis.
    """
    history, policy = trace.history, in_force.policy
    prices, hours = until_now(history, prices, now_ms)
    if trace.refusal is not None or not is_long_enough(history, hours):
        return None
    tick("left alone")
    nothing = replay_untouched(history, policy, tail_ms=prices.tail_ms)
    current_s = prices.cost_s(nothing)
    if policy.enabled:
        tick("policy in effect")
        current_s = prices.cost_s(replay_lakewright(history, policy, tail_ms=prices.tail_ms))
    # No change can save more than everything.
    if current_s / hours * 24 < MIN_SAVED_S_PER_DAY:
        return None
    found = recommend(history, policy, prices, nothing, tick)
    if not found.is_change:
        return None
    share = _half_share(history, found.current.policy, found.best.policy, prices, tick)
    costs = _replayed(found.current.replayed, prices), _replayed(found.best.replayed, prices)
    proof = proof_of(trace, hours, prices.queries_per_hour, costs, share)
    if not is_worth(proof):
        return None
    return Advice(table, now_ms, found.properties, policy.encode(), found.message, proof, format=trace.metadata.format)


def is_long_enough(history: CommitTrace, hours: float, least_hours: float = MIN_HOURS) -> bool:
    """Return whether a history of so many hours is enough for an advice, or for a judgement by MIN_JUDGED_HOURS."""
    return len(history.commits) >= MIN_COMMITS and hours >= least_hours


def is_in_force(change: Mapping[str, str], policy: Policy) -> bool:
    """Return whether a policy has all the values of a change."""
    layer = read_settings(change)
    return all(getattr(policy, name) == value for name, value in layer.values.items())


def former_values(advice: Advice) -> dict[str, str]:
    """Return what the properties of a change were before, as text; empty for a fan-in or others that no one had set."""
    if advice.proof.bounds is not None:
        return dict(advice.proof.bounds.former)
    former = Policy.decode(advice.former)
    layer = read_settings(advice.change)
    found = {name: _text(getattr(former, field)) for field, name in layer.property_names.items()}
    return found | ({layer.property_names["fan_in"]: ""} if "fan_in" in layer.values and former.fits_levels else {})


def judge(advice: Advice, trace: TableTrace, prices: CostModel, now_ms: int, tick: Tick) -> Judgement | None:
    """Compare what happened since an advice was applied with what would have happened under the former policy.

    `trace`: the commits since. None while there are too few of them. The time after the last commit is left out.
    """
    history = trace.history
    _, hours = until_now(history, prices, now_ms)
    first_ms, last_ms = _span(history)
    if not is_long_enough(history, hours, MIN_JUDGED_HOURS):
        return None
    prices = replace(prices, tail_hours=0.0)
    former = Policy.decode(advice.former)
    advised = apply(former, read_settings(advice.change))
    tick("former policy")
    former_s = cost_s(history, former, prices)
    tick("advised policy")
    return Judgement(
        at_ms=now_ms,
        commits=len(history.commits),
        hours=(last_ms - first_ms) / MS_PER_HOUR,
        predicted_share=advice.proof.saved_share,
        former_s=former_s,
        advised_s=cost_s(history, advised, prices),
        actual_s=actual_cost_s(trace, prices),
    )


def actual_cost_s(trace: TableTrace, prices: CostModel) -> float:
    """Return what a table cost between its first and its last commit of data, by its log, in core-seconds."""
    first_ms, last_ms = _span(trace.history)
    files, at_ms, file_ms, rewritten = len(trace.history.initial), first_ms, 0, 0
    for step in trace.storage:
        now_ms = min(max(step.at_ms, at_ms), last_ms)
        file_ms += files * (now_ms - at_ms)
        at_ms, files = now_ms, files + step.files
        rewritten += step.rewritten_bytes if step.at_ms <= last_ms else 0
    file_ms += files * max(0, last_ms - at_ms)
    return rewritten / GIB * prices.write_s_per_gib + file_ms / MS_PER_HOUR * prices.queries_per_hour * prices.open_s


def _span(history: CommitTrace) -> tuple[int, int]:
    times = [commit.timestamp_ms for commit in history.commits]
    return (times[0], max(times)) if times else (0, 0)


def until_now(history: CommitTrace, prices: CostModel, now_ms: int) -> tuple[CostModel, float]:
    """Return the prices with the time since the last commit as their tail, and the hours since the first commit."""
    first_ms, last_ms = _span(history)
    tail_hours = min(max(0, now_ms - last_ms) / MS_PER_HOUR, MAX_TAIL_HOURS)
    return replace(prices, tail_hours=tail_hours), (last_ms - first_ms) / MS_PER_HOUR + tail_hours


def _half_share(history: CommitTrace, current: Policy, advised: Policy, prices: CostModel, tick: Tick) -> float:
    """Return the share of the cost that a change saves over the half of the commits in which it saves less.

    Each half is replayed as if the table began there: older files cost the same under both policies, as no commit
    touches them, and would only hide the difference.
    """
    middle = len(history.commits) // 2
    shares = []
    for commits in (history.commits[:middle], history.commits[middle:]):
        half = replace(history, initial=(), commits=commits)
        costs = []
        for policy in (current, advised):
            tick("half of the history")
            costs.append(cost_s(half, policy, prices))
        shares.append(1 - costs[1] / costs[0] if costs[0] else 0.0)
    return min(shares)


def cost_s(history: CommitTrace, policy: Policy, prices: CostModel) -> float:
    """Return what a history costs under a policy in core-seconds; under one that is off, nothing is rewritten."""
    replayed = replay_lakewright if policy.enabled else replay_untouched
    return prices.cost_s(replayed(history, policy, tail_ms=prices.tail_ms))


def proof_of(
    trace: TableTrace,
    hours: float,
    queries_per_hour: float,
    costs: tuple[ReplayedCost, ReplayedCost],
    half_share: float,
) -> Evidence:
    """Return the evidence of a history for a change; costs: without it, and with it."""
    current, advised = costs
    return Evidence(
        first_version=trace.first_version,
        last_version=trace.last_version,
        commits=len(trace.history.commits),
        hours=hours,
        queries_per_hour=queries_per_hour,
        current=current,
        advised=advised,
        half_share=half_share,
    )


def is_worth(proof: Evidence) -> bool:
    """Return whether a change saves enough to be advised."""
    return proof.saved_share >= MIN_SAVED_SHARE and proof.saved_s_per_day >= MIN_SAVED_S_PER_DAY


def _replayed(done: SimulationResult, prices: CostModel) -> ReplayedCost:
    return ReplayedCost(prices.write_s(done), prices.read_s(done), done.mean_files, done.bytes_rewritten)


def _text(value: bool | float | Fraction | str | None) -> str:  # noqa: FBT001 - a value of a policy
    if value is None or isinstance(value, str):
        return value or "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else f"{float(value):g}"
