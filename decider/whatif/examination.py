"""Examines a real table: its history is replayed under its own policy, others' rules, and requested settings.

Nothing is changed. Effects that exist in production and not in a replay are listed in the answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from decider.decide.actions import ACTIONS, ActionRegistry
from decider.decide.compaction import COMPACTION
from decider.state.effective_policy import EffectivePolicy, PolicySource
from decider.whatif.baselines import PEERS
from decider.whatif.comparison import Candidate, Comparison, CostModel, Recommendation, Tick, compare, recommend
from decider.whatif.simulator import CurvePoint, SimulationResult, replay_lakewright
from decider.whatif.spread_rows import describe_key
from decider.whatif.storage import RETENTIONS_S, held_storage
from decider.whatif.trace_reader import TableTrace
from shared.jobs.payload import INDEX
from shared.policy.policy import MIB, Policy, apply
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
}
"""Fields of a policy that change nothing in a replay, and why."""


@dataclass(frozen=True, slots=True)
class PolicyOverrides:
    """Settings to be replayed beside the table's policy: properties as they were given, and their policy."""

    properties: Mapping[str, str]
    policy: Policy
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CustomPolicy:
    """The requested properties and the policy that they lead to."""

    asked: PolicyOverrides
    option: Candidate


@dataclass(frozen=True, slots=True)
class WhatIfReport:
    """The whole result of a what-if; `yours` is there if settings were requested, `sort_keys` if columns were."""

    table: TableTrace
    policy: Policy
    prices: CostModel
    comparison: Comparison
    recommendation: Recommendation
    yours: CustomPolicy | None
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
    yours = None
    if asked is not None:
        tick(TITLES["custom"])
        done = replace(replay_lakewright(table.history, asked.policy, tail_ms=prices.tail_ms), name="custom")
        yours = CustomPolicy(asked, Candidate(asked.policy, done, prices.cost_s(done)))
    recommendation = recommend(table.history, policy, prices, comparison.nothing, tick)
    sort_keys = []
    for keyed in table.keyed:
        tick(f"sorted by {keyed.column.name}")
        sort_keys.append(describe_key(keyed, policy.target_bytes))
    notes = (
        *(*_refused(table, in_force), *_missing(table), *_notes(in_force)),
        *((table.contradiction,) if table.contradiction else ()),
        *_fitted(comparison.ours),
        *(asked.notes if asked else ()),
    )
    unique = tuple(dict.fromkeys(notes))
    return WhatIfReport(table, policy, prices, comparison, recommendation, yours, unique, tuple(sort_keys))


def _refused(table: TableTrace, in_force: EffectivePolicy) -> tuple[str, ...]:
    if table.refusal is None:
        return ()
    if table.refusal.allows and in_force.policy.cluster:
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
    size = f"{ours.typical_file_bytes / MIB:.3g} MiB"
    return (f"The replay of Lakewright fitted the size levels {times}, in the end to new files of {size}.",)


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


def _actions_left_out(actions: ActionRegistry, policy: Policy) -> tuple[str, ...]:
    """Name the actions that a table wants and a replay leaves out: it knows sizes of files, and nothing else."""
    left_out = [action.kind for action in actions if action.kind != COMPACTION.kind and action.is_on(policy)]
    return (f"Only compaction is replayed, and not: {', '.join(left_out)}.",) if left_out else ()


def _not_replayed(named: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{named[name]} is not replayed: {why}." for name, why in NOT_REPLAYED.items() if name in named)


def describe(report: WhatIfReport, actions: ActionRegistry = ACTIONS) -> dict[str, Any]:
    """Return a report as plain values: the answer of the API, and what the command line shows.

    actions: all that the decider decides about; those that a replay leaves out are noted.
    """
    table, prices, advice = report.table, report.prices, report.recommendation
    compared, yours = report.comparison, report.yours
    replayed = [compared.nothing, compared.ours, *compared.peers, *([yours.option.replayed] if yours else [])]
    return {
        "location": table.location,
        "versions": [table.first_version, table.last_version],
        "commits": len(table.history.commits),
        "files_added": table.history.files_added,
        "bytes_added": table.history.bytes_added,
        "span_s": compared.nothing.span_ms // 1000,
        "actual": {
            "rewrites": table.rewrites,
            "bytes_rewritten": table.bytes_rewritten,
            "files_now": table.files_now,
        },
        "cost_model": {
            "write_s_per_gib": prices.write_s_per_gib,
            "open_s": prices.open_s,
            "queries_per_hour": prices.queries_per_hour,
            "tail_hours": prices.tail_hours,
        },
        "policy": _policy(report.policy),
        "storage": [_held(table, retention_s) for retention_s in sorted({*RETENTIONS_S, report.policy.retention_s})],
        "sort_keys": list(report.sort_keys),
        "rules": [_rule(done, prices) for done in replayed],
        "custom": _yours(yours, prices) if yours else None,
        "notes": [*report.notes, *_actions_left_out(actions, report.policy)],
        "recommendation": {
            "is_change": advice.is_change,
            "message": advice.message,
            "properties": advice.properties,
            "policy": _policy(advice.best.policy),
            "cost_s": round(advice.best.cost_s, 3),
            "current_cost_s": round(advice.current.cost_s, 3),
            "no_compaction_cost_s": round(advice.nothing_cost_s, 3),
            "curve": [_option(option, prices) for option in advice.curve],
        },
    }


def _held(table: TableTrace, retention_s: int) -> dict[str, int]:
    held = held_storage(table.initial_bytes, table.storage, retention_s)
    return {
        "retention_s": retention_s,
        "mean_bytes": held.mean_bytes,
        "peak_bytes": held.peak_bytes,
        "end_bytes": held.end_bytes,
    }


def _yours(yours: CustomPolicy, prices: CostModel) -> dict[str, Any]:
    return {"properties": dict(yours.asked.properties), **_option(yours.option, prices)}


def _policy(policy: Policy) -> dict[str, Any]:
    return {
        "enabled": policy.enabled,
        "target_bytes": policy.target_bytes,
        "fan_in": policy.fan_in,
        "tolerance": float(policy.tolerance),
        "min_input_files": policy.min_input_files,
    }


def _rule(done: SimulationResult, prices: CostModel) -> dict[str, Any]:
    return {
        "name": done.name,
        "title": TITLES[done.name],
        "files_mean": round(done.mean_files, 2),
        "files_at_end": done.files_at_end,
        "max_small_files_per_partition": done.small_max,
        "jobs": done.jobs,
        "bytes_rewritten": done.bytes_rewritten,
        "write_amplification": round(done.wa, 4),
        "mean_time_small_s": round(done.stale_ms / 1000, 1),
        "write_cost_s": round(prices.write_s(done), 3),
        "read_cost_s": round(prices.read_s(done), 3),
        "cost_s": round(prices.cost_s(done), 3),
        "curve": [_point(point) for point in done.curve],
    }


def _point(point: CurvePoint) -> list[int]:
    return [point.at_ms, point.files, point.small_files, point.bytes_rewritten]


def _option(option: Candidate, prices: CostModel) -> dict[str, Any]:
    return {
        **_policy(option.policy),
        "files_mean": round(option.replayed.mean_files, 2),
        "bytes_rewritten": option.replayed.bytes_rewritten,
        "write_cost_s": round(prices.write_s(option.replayed), 3),
        "read_cost_s": round(prices.read_s(option.replayed), 3),
        "cost_s": round(option.cost_s, 3),
    }
