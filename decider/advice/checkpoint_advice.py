"""Advises checkpoints where a table's writers write too few, so that each open of the table reads a long log.

The log has to be long in both halves of the history: a table that only waits for its next checkpoint needs no advice.
Pure: time comes from the caller and from the commits.
"""

from dataclasses import replace

from decider.advice.analysis import MIN_JUDGED_HOURS, is_long_enough, is_worth, proof_of, until_now
from decider.store.tables.advice_records import Advice, Judgement, LogEvidence, ReplayedCost
from decider.whatif.comparison import CostModel
from decider.whatif.trace_reader import TableTrace
from shared.policy.policy import Policy
from shared.table import TableId

EVERY = 100
"""Commits between two checkpoints: a log that Spark opens in a third of a second more."""

CHANGE = {"lakewright.checkpoint-every": str(EVERY)}

OPEN_S_PER_COMMIT = 0.003
"""Core-seconds that an open reads each commit after the checkpoint in: 5,000 took Spark 16.2 s (docs/benchmarks.md)."""

CHECKPOINT_S = 2.0
"""Core-seconds of a job that writes one, of at most as many files as are analyzed."""


def analyze_checkpoint(
    table: TableId, trace: TableTrace, policy: Policy, checkpoint: int | None, prices: CostModel, now_ms: int
) -> Advice | None:
    """Return the advice to write checkpoints, None where opening the table would cost little less.

    checkpoint: version of the newest one, -1 without any, None where the format has none.
    """
    prices, hours = until_now(trace.history, prices, now_ms)
    is_known = is_long_enough(trace.history, hours)
    if not is_known or checkpoint is None or policy.checkpoint_every or not policy.enabled or trace.refusal:
        return None
    first, last = trace.first_version, trace.last_version
    middle = (first + last) // 2
    halves = [
        _saved_share(*_costs(begin, end, checkpoint, hours / 2, prices))
        for begin, end in ((first, middle), (middle + 1, last))
    ]
    log = LogEvidence(last - checkpoint, checkpoint)
    costs = _costs(first, last, checkpoint, hours, prices)
    proof = proof_of(trace, hours, prices.queries_per_hour, costs, min(halves))
    proof = replace(proof, log=log)
    if not is_worth(proof):
        return None
    newest = f"The newest checkpoint is of version {checkpoint:,}" if checkpoint >= 0 else "There is no checkpoint"
    message = (
        f"Set lakewright.checkpoint-every={EVERY}. {newest}, so each open of the table reads {log.commits:,} commits "
        f"one by one; with checkpoints, {EVERY} at most."
    )
    return Advice(table, now_ms, CHANGE, policy.encode(), message, proof, format=trace.metadata.format)


def judge_checkpoint(
    advice: Advice, log: LogEvidence, trace: TableTrace, checkpoint: int | None, prices: CostModel, now_ms: int
) -> Judgement | None:
    """Compare what opening a table costs since it has checkpoints with what it would have cost without them.

    `trace`: the commits since. None while there are too few of them.
    """
    prices, hours = until_now(trace.history, prices, now_ms)
    if not is_long_enough(trace.history, hours, MIN_JUDGED_HOURS) or checkpoint is None:
        return None
    first, last = trace.first_version, trace.last_version
    written = last - first + 1 if checkpoint > log.checkpoint else 0
    former, advised = _costs(first, last, log.checkpoint, hours, prices)
    behind = min(last - checkpoint, _behind(first, last, log.checkpoint))
    return Judgement(
        at_ms=now_ms,
        commits=len(trace.history.commits),
        hours=hours,
        predicted_share=advice.proof.saved_share,
        former_s=former.cost_s,
        advised_s=advised.cost_s,
        actual_s=_cost(behind, written, hours, prices).cost_s,
    )


def _saved_share(current: ReplayedCost, advised: ReplayedCost) -> float:
    return 1 - advised.cost_s / current.cost_s if current.cost_s else 0.0


def _costs(
    first: int, last: int, checkpoint: int, hours: float, prices: CostModel
) -> tuple[ReplayedCost, ReplayedCost]:
    """Return what opening a table costs over these versions after a checkpoint, and with one at every `EVERY`."""
    return (
        _cost(_behind(first, last, checkpoint), 0, hours, prices),
        _cost(EVERY / 2, last - first + 1, hours, prices),
    )


def _cost(behind: float, checkpointed: int, hours: float, prices: CostModel) -> ReplayedCost:
    """Return what it costs to open a table with so many commits after its checkpoint; checkpointed: commits in all."""
    opens = prices.queries_per_hour * hours
    return ReplayedCost(checkpointed / EVERY * CHECKPOINT_S, opens * behind * OPEN_S_PER_COMMIT, 0.0, 0)


def _behind(first: int, last: int, checkpoint: int) -> float:
    """Return the mean number of commits after the checkpoint, over these versions."""
    since = max(first, checkpoint)
    if since >= last:
        return 0.0
    return (since + last - 2 * checkpoint) / 2 * (last - since + 1) / (last - first + 1)
