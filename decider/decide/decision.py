"""A verdict: what was decided for a cell, why, from which numbers, and what a rewrite is predicted to gain and cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from decider.decide.calibration import UNCALIBRATED, Calibration
from shared.job_payload import RewriteKind
from shared.layout.eligibility import Evaluation, Reason, evaluate, evaluate_full, evaluate_idle, promotable
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats
from shared.partition_filter import permits
from shared.policy import MIB, DmlPolicy, Policy
from shared.table import Commit, PartitionColumn, PartitionKey

FIXED_COST_BYTES = 8 * MIB
"""What a job costs before it reads anything, in bytes: about what is rewritten in the second an empty job takes."""

PRIORITIES = 10
"""Steps of priority, 0 first. Each step is a factor of two in benefit per byte."""


class DecisionKind(StrEnum):
    """What was decided: leave the cell alone, ask for a rewrite, or ask for one that waits for others first."""

    SKIP = "skip"
    ENQUEUE = "enqueue"
    DEFER = "defer"


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a rewrite of a cell in this state would do: files taken and removed, bytes read, benefit in files.

    `state_removed` and `state_bytes` are what the state says alone; `files_removed`, `bytes` and `benefit` may be
    corrected by what was measured on the table before, see `corrected`.
    """

    files_replaced: int
    files_removed: int
    bytes: int
    benefit: Fraction
    state_removed: int
    state_bytes: int


@dataclass(frozen=True, slots=True)
class Decision:
    """One entry of the ledger before it is stored.

    `purgeable` counts files known to have too many deleted rows; `ask` is what was decided about, see `decide_rung`;
    `calibration` is what the prediction was corrected by, `heat` the share of time in which MERGE, UPDATE and DELETE
    were at work in the cell, `columns` what the policy's filter was asked with, where it has one.
    """

    version: int
    cell: PartitionKey
    verdict: DecisionKind
    reason: Reason
    state: PartitionStats
    prediction: Prediction | None
    purgeable: int = 0
    ask: RewriteKind = RewriteKind.LEVELS
    calibration: Calibration = UNCALIBRATED
    heat: Fraction = Fraction(0)
    columns: tuple[PartitionColumn, ...] = ()


def decide(
    cell: PartitionKey,
    state: PartitionStats,
    policy: Policy,
    commit: Commit,
    purgeable: int = 0,
    columns: Sequence[PartitionColumn] = (),
) -> Decision:
    """Decide about a cell after a commit was folded into it, with the files to purge that the commit added."""
    if not commit.data_change:
        reason = Reason.NO_DATA_CHANGE if commit.origin is None else Reason.OWN_COMMIT
        return Decision(commit.version, cell, DecisionKind.SKIP, reason, state, None)
    return decide_state(cell, state, policy, commit.version, purgeable, columns)


def decide_state(
    cell: PartitionKey,
    state: PartitionStats,
    policy: Policy,
    version: int,
    purgeable: int = 0,
    columns: Sequence[PartitionColumn] = (),
) -> Decision:
    """Decide about a cell on its state and its place, as after a recount.

    `columns` tell the names that the filter uses; without them the names in the log are taken for them.
    """
    if policy.refused or not policy.enabled or policy.filter is None:
        return decide_numbers(cell, state, policy, version, purgeable)
    asked_with = tuple(columns)
    if not permits(policy.filter, cell, asked_with):
        return Decision(version, cell, DecisionKind.SKIP, Reason.FILTERED, state, None, columns=asked_with)
    return replace(decide_numbers(cell, state, policy, version, purgeable), columns=asked_with)


def decide_numbers(
    cell: PartitionKey, state: PartitionStats, policy: Policy, version: int, purgeable: int = 0
) -> Decision:
    """Decide about a cell that may be touched, on its numbers alone."""
    if policy.refused:
        return Decision(version, cell, DecisionKind.SKIP, Reason.REFUSED, state, None)
    if not policy.enabled:
        return Decision(version, cell, DecisionKind.SKIP, Reason.DISABLED, state, None)
    worth = evaluate(state, policy, purgeable)
    if not worth.is_work:
        return Decision(version, cell, DecisionKind.SKIP, worth.reason, state, None)
    return Decision(version, cell, DecisionKind.ENQUEUE, worth.reason, state, predict(state, worth, policy), purgeable)


def decide_rung(ask: RewriteKind, cell: PartitionKey, state: PartitionStats, policy: Policy, version: int) -> Decision:
    """Decide about a cell that may be touched and whose timer rang: the last merge, or a full rewrite."""
    if policy.refused:
        return Decision(version, cell, DecisionKind.SKIP, Reason.REFUSED, state, None, ask=ask)
    if not policy.enabled:
        return Decision(version, cell, DecisionKind.SKIP, Reason.DISABLED, state, None, ask=ask)
    worth = evaluate_full(state) if ask is RewriteKind.FULL else evaluate_idle(state, policy)
    if not worth.is_work:
        return Decision(version, cell, DecisionKind.SKIP, worth.reason, state, None, ask=ask)
    prediction = predict(state, worth, policy)
    return Decision(version, cell, DecisionKind.ENQUEUE, worth.reason, state, prediction, ask=ask)


def predict(state: PartitionStats, worth: Evaluation, policy: Policy) -> Prediction:
    """Predict gain and cost from the rolling state, without a file list.

    Benefit is files removed plus shortfall removed in units of T^2, of which the excess is the upper bound, plus one
    for each file to purge that is not merged anyway. Where such files lie and how large they are is not in the state:
    deleted rows are taken to be where the bytes are, and files outside of the merge to have their mean size.
    """
    merging = _merging(state, worth, policy)
    levels = 0 if worth.through_level is None else worth.through_level + 1
    inputs, merged_bytes = sum(merging.counts[:levels]), sum(merging.sizes[:levels])
    rest, rest_bytes = state.files - inputs, state.bytes - merged_bytes
    purged = min(rest, -(-worth.purges * rest_bytes // max(1, state.bytes)))
    total = merged_bytes + purged * rest_bytes // max(1, rest)
    removed = inputs - max(1, merged_bytes // policy.target_bytes) if inputs else 0
    shortfall = Fraction(merging.excess(policy.target_bytes), policy.target_bytes**2) if inputs else Fraction(0)
    return Prediction(inputs + purged, removed, total, removed + shortfall + purged, removed, total)


def _merging(state: PartitionStats, worth: Evaluation, policy: Policy) -> PartitionStats:
    """Return the part of a cell that a merge is predicted to concern: with time windows, those that ask for it.

    Which window is to be settled is known to its timer and not to the state; the oldest one known stands for it.
    """
    if policy.time_window_s is None or worth.reason is Reason.FULL_DUE or not state.windows:
        return state
    windows = [one for _, one in state.windows]
    if worth.reason is Reason.QUIET:
        return windows[0]
    return sum((one for one in windows if promotable(one, policy) is not None), EMPTY_STATS)


def heed(decision: Decision, heat: Fraction, policy: Policy) -> Decision:
    """Let the table's own commands go first: above the policy's heat a job waits, or there is none at all."""
    if decision.prediction is None or policy.dml_policy is DmlPolicy.ALWAYS or not heat:
        return decision
    if policy.dml_policy is DmlPolicy.NEVER:
        return replace(decision, verdict=DecisionKind.SKIP, reason=Reason.WRITERS_FIRST, prediction=None, heat=heat)
    verdict = DecisionKind.DEFER if heat > policy.max_heat else decision.verdict
    return replace(decision, verdict=verdict, heat=heat)


def corrected(decision: Decision, calibration: Calibration) -> Decision:
    """Correct a prediction by the ratios that were measured on the table; the verdict does not depend on it."""
    said = decision.prediction
    if said is None:
        return decision
    prediction = replace(
        said,
        files_removed=round(said.state_removed * calibration.removed_ratio),
        bytes=round(said.state_bytes * calibration.bytes_ratio),
        benefit=said.benefit * calibration.removed_ratio,
    )
    return replace(decision, prediction=prediction, calibration=calibration)


def priority(prediction: Prediction, policy: Policy) -> int:
    """Return the priority step, 0 first: the logarithm of benefit per target's worth of bytes rewritten."""
    gain = prediction.benefit * policy.target_bytes / (prediction.bytes + FIXED_COST_BYTES)
    return max(0, PRIORITIES - 1 - int(gain).bit_length())
