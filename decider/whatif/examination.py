"""Examines a real table: its history is replayed under its own policy, others' rules, and requested settings.

Nothing is changed. Effects that exist in production and not in a replay are listed in the answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from decider.decide.actions import ActionRegistry
from decider.decide.compaction import COMPACTION
from decider.decide.signals_text import size
from decider.state.effective_policy import EffectivePolicy, PolicySource
from decider.whatif.baselines import PEERS
from decider.whatif.comparison import (
    MIN_HOURS,
    MS_PER_HOUR,
    Candidate,
    Comparison,
    CostModel,
    Recommendation,
    Tick,
    compare,
    recommend,
    without_ground,
)
from decider.whatif.simulator import SimulationResult, replay_lakewright
from decider.whatif.spread_rows import describe_key
from decider.whatif.trace_reader import TableTrace
from shared.jobs.payload import INDEX
from shared.policy.partition_filter import describe_moving, is_relative
from shared.policy.policy import ClusterMode, Policy, apply
from shared.policy.properties import as_properties, read_settings

TITLES = {
    "no_compaction": "left alone",
    "lakewright": "Lakewright",
    "custom": "with your settings",
    **{rule.name: rule.title for rule in PEERS},
}


_AT_ONCE = "in a replay every job runs at once, and none waits for another"
_SIZES_ONLY = "a replay knows sizes and no deleted rows"
_NO_HEAT = "a replay does not distinguish MERGE, UPDATE and DELETE from other writes"
NOT_REPLAYED = {
    "delete_ratio_threshold": _SIZES_ONLY,
    "portable_paths": "a replay knows sizes and no paths",
    "dml_policy": _NO_HEAT,
    "max_write_contention": _NO_HEAT,
    "priority": _AT_ONCE,
    "weight": _AT_ONCE,
    "read_weight": _AT_ONCE,
    "job_order": _AT_ONCE,
    "max_concurrent_jobs": _AT_ONCE,
    "quota": _AT_ONCE,
    "work_window": _AT_ONCE,
    "window_work": _AT_ONCE,
    "budget": _AT_ONCE,
    "budget_work": _AT_ONCE,
    "max_write_amplification": _AT_ONCE,
}
"""Fields of a policy that change nothing in a replay, and why."""


@dataclass(frozen=True, slots=True)
class PolicyOverrides:
    """Settings to be replayed beside the table's policy: properties as they were given, and their policy."""

    properties: Mapping[str, str]
    policy: Policy
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WhatIfReport:
    """The whole result of a what-if; `custom` and `properties` are there if settings were requested.

    sort_keys: what ranges of columns read, if columns were requested.
    """

    table: TableTrace
    policy: Policy
    prices: CostModel
    comparison: Comparison
    recommendation: Recommendation
    custom: Candidate | None
    properties: Mapping[str, str]
    notes: tuple[str, ...]
    sort_keys: tuple[Mapping[str, Any], ...] = ()


def lay_over(policy: Policy, overrides: Mapping[str, str]) -> PolicyOverrides | None:
    """Lay settings, such as `fan-in`, over a policy that is switched on; None if there are none.

    Raises InvalidInput for a name that is not known and for a value that cannot be used.
    """
    if not overrides:
        return None
    layer = read_settings(overrides)
    notes = _not_replayed(layer.property_names)
    return PolicyOverrides(as_properties(overrides), apply(replace(policy, enabled=True), layer), notes)


def examine(
    table: TableTrace,
    in_force: EffectivePolicy,
    prices: CostModel,
    overrides: Mapping[str, str] | None = None,
    tick: Tick = lambda _: None,
) -> WhatIfReport:
    """Compare and recommend under the policy in effect, and replay `overrides` beside it; a refusal is ignored.

    A disabled table is compared as if it were enabled, with a note. Raises as `lay_over` does.
    """
    policy = in_force.policy
    asked = lay_over(policy, overrides or {})
    comparison = compare(table.history, policy, prices, tick)
    custom = None
    if asked is not None:
        tick(TITLES["custom"])
        done = replace(replay_lakewright(table.history, asked.policy, tail_ms=prices.tail_ms), name="custom")
        custom = prices.candidate(asked.policy, done)
    recommendation = recommend(table.history, policy, prices, comparison.nothing, tick)
    if recommendation.is_change and comparison.nothing.span_ms < MIN_HOURS * MS_PER_HOUR:
        recommendation = without_ground(recommendation)
    sort_keys = []
    for keyed in table.keyed:
        tick(f"sorted by {keyed.column.name}")
        sort_keys.append(describe_key(keyed, policy.target_bytes))
    notes = (
        *(*_refused(table, in_force), *_missing(table), *_notes(in_force)),
        *_moving_filter(table, asked.policy if asked else policy),
        *((table.contradiction,) if table.contradiction else ()),
        *_fitted(comparison.ours),
        *(asked.notes if asked else ()),
    )
    unique = tuple(dict.fromkeys(notes))
    properties = asked.properties if asked else {}
    return WhatIfReport(table, policy, prices, comparison, recommendation, custom, properties, unique, tuple(sort_keys))


def _refused(table: TableTrace, in_force: EffectivePolicy) -> tuple[str, ...]:
    if table.refusal is None:
        return ()
    if table.refusal.allows and in_force.policy.cluster is not ClusterMode.OFF:
        return ("The table is rewritten by its format's own OPTIMIZE alone, which is not replayed: compaction is.",)
    note = "The table is refused, so nothing is rewritten whatever its policy is; the replay ignores that: "
    notes = (note + table.refusal.message,)
    return (*notes, _OF_INDEX) if INDEX in table.refusal.allows else notes


_OF_INDEX = (
    "The library of the table's index alone rewrites it, and no compaction. Its iterations are estimated by: "
    "lakewright tables index TABLE --what-if."
)


def _fitted(ours: SimulationResult) -> tuple[str, ...]:
    if not ours.level_fits:
        return ()
    times = "once" if ours.level_fits == 1 else f"{ours.level_fits} times"
    fitted = f"The replay of Lakewright fitted the size levels {times}, in the end to new files of "
    return (f"{fitted}{size(ours.typical_file_bytes)}.",)


def _moving_filter(table: TableTrace, policy: Policy) -> tuple[str, ...]:
    if not is_relative(policy.filter) or not table.history.commits:
        return ()
    (note,) = describe_moving(policy.filter, table.history.commits[-1].timestamp_ms)
    return (f"The filter moves with the time of the commits; at the last of them, {note}.",)


def _missing(table: TableTrace) -> tuple[str, ...]:
    if table.missing is None:
        return ()
    first, last = table.missing
    which = f"Version {first} is" if first == last else f"Versions {first} to {last} are"
    return (f"{which} missing from the log: the replay begins behind that, at version {table.first_version}.",)


def _notes(in_force: EffectivePolicy) -> tuple[str, ...]:
    notes = [
        f"The property {issue.property} = {issue.value} cannot be used: {issue.reason}."
        + (" Until it is fixed, the last valid properties apply, or the defaults." if issue.is_blocking else "")
        for issue in in_force.issues
    ]
    notes += [f"{note[:1].upper()}{note[1:]}." for note in in_force.notes]
    if not in_force.policy.enabled:
        notes.append(
            "The table is switched off, so nothing is rewritten now; Lakewright is replayed as if it were switched on."
        )
    named = {
        name: one.name
        for name, one in in_force.origins.items()
        if one.source in (PolicySource.TABLE, PolicySource.REQUEST)
    }
    return (*notes, *_not_replayed(named))


def actions_left_out(actions: ActionRegistry, policy: Policy) -> tuple[str, ...]:
    """Name the actions that a table wants and a replay leaves out: it knows sizes of files, and nothing else."""
    left_out = [action.kind for action in actions if action.kind != COMPACTION.kind and action.is_on(policy)]
    return (f"Only compaction is replayed, and not: {', '.join(left_out)}.",) if left_out else ()


def _not_replayed(named: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{named[name]} is not replayed: {why}." for name, why in NOT_REPLAYED.items() if name in named)
