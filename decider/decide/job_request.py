"""A decision becomes a job here and nowhere else: key, priority, band, debounce and payload.

A job names a partition and never a file: the actor plans on the live snapshot.
"""

from fractions import Fraction

from decider.decide.company import wait_of
from decider.decide.context import DecisionContext
from decider.decide.decision import Decision, DecisionKind, Prediction, Trigger, TriggerSource
from shared.jobs.payload import JobPayload, PredictedCost, RewriteKind
from shared.partition_refusals import TableFingerprint
from shared.policy.partition_filter import is_relative
from shared.policy.policy import MIB, JobOrder, Policy
from shared.policy.properties import is_switched_off, policy_digest
from shared.policy.work_windows import LIGHT_KINDS
from shared.queue.limits import MAX_PRIORITY
from shared.queue.model import Band, Debounce, JobKey, JobRequest
from shared.queue.settings import SETTINGS

FIXED_COST_BYTES = 8 * MIB
"""Cost of a job before it reads anything, in bytes: about what is rewritten in the second that an empty job takes."""

REFERENCE_BYTES = 512 * MIB
"""Cost to which benefits are compared; the same for all tables, because their jobs compete for the same slots."""

FIRST_STEP = 24
"""Step 0 is for jobs that save readers 2^24 files or more per `REFERENCE_BYTES`, step 31 for those that save less than
2^-6: 16 GiB without a single small file, or a few large files of a table that is hardly read."""

UNREPORTED_READS = Fraction(1)
"""Reads per hour of a table of which none were reported."""

CONTENTION_DEBOUNCE = Debounce(quiet_ms=600_000, max_delay_ms=2 * 3_600_000)
"""A job for a contended partition waits for ten minutes without another such commit, and two hours at most: a partition
that writers change all day is rewritten, too."""


def job_request(context: DecisionContext, decision: Decision) -> JobRequest:
    """Return the job that a decision leads to. Raises ValueError for a decision that leads to none."""
    prediction, trigger, policy = decision.prediction, decision.trigger, context.policy
    if decision.verdict is DecisionKind.SKIP or prediction is None:
        raise ValueError(f"no job follows from the verdict {decision.verdict}")
    configuration = context.metadata.configuration
    payload = JobPayload(
        location=context.table.location,
        name=context.table.name,
        policy=policy,
        reason=decision.reason,
        predicted=PredictedCost(
            prediction.files_replaced,
            prediction.files_removed,
            prediction.bytes,
            prediction.state_removed,
            prediction.state_bytes,
        ),
        policy_digest=policy_digest(configuration),
        rewrite_kind=trigger.rewrite_kind,
        is_contended=decision.busy_ratio > policy.max_write_contention,
        even_if_disabled=trigger.is_forced or is_switched_off(configuration),
        ended_by_ms=trigger.closed_ms,
        table_uuid=context.metadata.table_uuid,
        format=context.metadata.format,
        options=decision.options,
        fingerprint=TableFingerprint.of(context.metadata, policy).parts,
        decided_ms=context.at_ms if is_relative(policy.filter) else 0,
    )
    return JobRequest(
        key=JobKey(context.table.id, decision.partition, decision.action),
        tenant=context.table.tenant,
        band=Band[policy.priority.name] if trigger.band is None else trigger.band,
        priority=_step(context, prediction),
        cost_bytes=prediction.bytes,
        version=decision.version,
        payload=payload.encode(),
        debounce=CONTENTION_DEBOUNCE if decision.verdict is DecisionKind.DEFER else wait_of(context, decision),
        precedence=_precedence(trigger),
        extent=trigger.rewrite_kind.extent,
        any_time=_is_for_any_time(trigger),
        gives_way=_gives_way(trigger, decision.action),
    )


def _is_for_any_time(trigger: Trigger) -> bool:
    """Return whether a job may start outside of its table's work window: a request that names no other band."""
    is_urgent = trigger.band in (None, Band.URGENT) or trigger.is_forced
    return trigger.source is TriggerSource.REQUEST and is_urgent


def _gives_way(trigger: Trigger, kind: str) -> bool:
    """Return whether a job is background work: a merge of an idle partition, or a kind that takes long; no request."""
    is_idle_work = trigger.rewrite_kind is RewriteKind.IDLE or kind not in LIGHT_KINDS
    return is_idle_work and trigger.source is not TriggerSource.REQUEST


def _precedence(trigger: Trigger) -> int:
    """Return the rank among requests of one version: a mode or values, then force, then what an event leads to."""
    return 2 if trigger.is_custom else int(trigger.is_forced)


def _step(context: DecisionContext, prediction: Prediction) -> int:
    if context.policy.job_order is JobOrder.BALANCED:
        return rested_step(context.at_ms - context.last_rewrite_ms)
    return priority(prediction, context.policy)


def rested_step(rested_ms: int) -> int:
    """Return the step of a table that was rewritten so long ago: of two, the one that rested longer goes first.

    The queue's order is arrival + step x aging, so at the default aging tables go in the order of their last
    rewrites, up to 62 hours back.
    """
    return MAX_PRIORITY - min(MAX_PRIORITY, max(0, rested_ms) // SETTINGS["aging_ms"].default)


def priority(prediction: Prediction, policy: Policy) -> int:
    """Return the priority step, 0 first; each step is a factor of two in benefit per cost.

    Benefit is counted in files, as often as the table is read and as much as its owner says that it weighs.
    """
    benefit = prediction.benefit * read_weight(policy) * policy.weight
    gain = benefit * REFERENCE_BYTES / (prediction.bytes + FIXED_COST_BYTES)
    return MAX_PRIORITY if gain <= 0 else min(MAX_PRIORITY, max(0, FIRST_STEP - _log2(gain)))


def read_weight(policy: Policy) -> Fraction:
    """Return how much a table's reads weigh under a (calibrated) policy: as its owner says, or as they are reported."""
    return policy.read_weight or policy.learned.read_weight or UNREPORTED_READS


def _log2(value: Fraction) -> int:
    """Return the logarithm to base 2, rounded down, exactly."""
    about = value.numerator.bit_length() - value.denominator.bit_length()
    return about if value >= Fraction(2) ** about else about - 1
