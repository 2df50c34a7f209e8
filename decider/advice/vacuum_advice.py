"""Advises a vacuum where nothing deletes files that no version inside the retention needs; judges it by what is left.

Which files these are is planned as a vacuum plans it, on the table's store. Commits have to remove files in both halves
of the history: for files of a single load, one request is enough. Pure: time comes from the caller and from the
commits.
"""

from dataclasses import replace

from decider.advice.analysis import MIN_JUDGED_HOURS, MIN_SAVED_S_PER_DAY, is_long_enough, is_worth, proof_of, until_now
from decider.formats.table_format import VacuumPreview
from decider.store.tables.advice_records import Advice, HeldEvidence, Judgement, ReplayedCost
from decider.whatif.comparison import CostModel, size_text
from decider.whatif.trace_reader import TableTrace
from shared.policy.policy import GIB, Policy
from shared.table import TableId

HELD_S_PER_GIB_DAY = 68.0
"""Core-seconds that a GiB in the store costs a day: 0.023 USD a month, where an hour of a core costs 0.04 USD."""

HELD_DAYS = 30
"""Days of removals that would have to be worth an advice before the store is asked what it holds."""

CHANGE = {"lakewright.vacuum": "on"}


def may_be_vacuumed(trace: TableTrace, policy: Policy, prices: CostModel, now_ms: int) -> bool:
    """Return whether to ask the store: nothing vacuums by policy, and commits remove enough, again and again."""
    _, hours = until_now(trace.history, prices, now_ms)
    is_known = is_long_enough(trace.history, hours)
    if not is_known or policy.vacuum or not policy.enabled or trace.refusal is not None:
        return False
    per_day = 2 * min(_removed(trace)) / hours * 24
    return _held_s(per_day * HELD_DAYS, 24) >= MIN_SAVED_S_PER_DAY


def analyze_vacuum(
    table: TableId, trace: TableTrace, policy: Policy, preview: VacuumPreview, prices: CostModel, now_ms: int
) -> Advice | None:
    """Return the advice to vacuum a table, None where too little would be deleted."""
    _, hours = until_now(trace.history, prices, now_ms)
    held = HeldEvidence(
        len(preview.deletions), sum(one.size_bytes for one in preview.deletions), (now_ms - preview.cutoff_ms) // 1000
    )
    live = _live_bytes(trace)
    older, newer = _removed(trace)
    # What one half removed more than the other may have been done once.
    steady_share = 2 * min(older, newer) / (older + newer) if older + newer else 0.0
    current, advised = (
        ReplayedCost(0.0, 0.0, trace.files_now, 0, _held_s(size, hours)) for size in (live + held.bytes, live)
    )
    half_share = (1 - advised.cost_s / current.cost_s) * steady_share if current.cost_s else 0.0
    proof = replace(proof_of(trace, hours, 0.0, (current, advised), half_share), held=held)
    if not is_worth(proof):
        return None
    message = (
        f"Set lakewright.vacuum=on. The store holds {held.files:,} files with {size_text(held.bytes)} that no version "
        f"of the last {held.retention_s / 86_400:.3g} days needs, beside {size_text(live)} that are live, and commits "
        "remove more all the time. Older versions cannot be read once these files are deleted."
    )
    return Advice(table, now_ms, CHANGE, policy.encode(), message, proof, format=trace.metadata.format)


def judge_vacuum(
    advice: Advice, held: HeldEvidence, trace: TableTrace, preview: VacuumPreview, prices: CostModel, now_ms: int
) -> Judgement | None:
    """Compare what a table holds since it is vacuumed with what it would hold, were what was held before still there.

    `trace`: the commits since. None while there are too few of them.
    """
    _, hours = until_now(trace.history, prices, now_ms)
    if not is_long_enough(trace.history, hours, MIN_JUDGED_HOURS):
        return None
    live, left = _live_bytes(trace), sum(one.size_bytes for one in preview.deletions)
    return Judgement(
        at_ms=now_ms,
        commits=len(trace.history.commits),
        hours=hours,
        predicted_share=advice.proof.saved_share,
        former_s=_held_s(live + held.bytes, hours),
        advised_s=_held_s(live, hours),
        actual_s=_held_s(live + left, hours),
    )


def _held_s(size_bytes: float, hours: float) -> float:
    return size_bytes / GIB * HELD_S_PER_GIB_DAY * hours / 24


def _live_bytes(trace: TableTrace) -> int:
    return trace.initial_bytes + sum(step.added_bytes - step.removed_bytes for step in trace.storage)


def _removed(trace: TableTrace) -> tuple[int, int]:
    """Return the bytes that the older and the newer half of all commits removed, rewrites included."""
    middle = len(trace.storage) // 2
    older, newer = (
        sum(step.removed_bytes for step in part) for part in (trace.storage[:middle], trace.storage[middle:])
    )
    return older, newer
