"""A decision becomes a job here and nowhere else: key, priority, band, debounce and payload.

A job names a partition and never a file: the actor plans on the live snapshot.
"""

from decider.decide.context import DecisionContext
from decider.decide.decision import Decision, DecisionKind, Prediction, Trigger
from shared.job_payload import JobPayload, PredictedCost
from shared.policy import MIB, Policy
from shared.properties import is_switched_off, policy_digest
from shared.queue.model import IMMEDIATE, Band, Debounce, JobKey, JobRequest

FIXED_COST_BYTES = 8 * MIB
"""Cost of a job before it reads anything, in bytes: about what is rewritten in the second that an empty job takes."""

PRIORITIES = 10
"""Steps of priority, 0 first. Each step is a factor of two in benefit per byte."""

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
    )
    return JobRequest(
        key=JobKey(context.table.id, decision.partition, decision.action),
        tenant=context.table.tenant,
        band=Band[policy.priority.name] if trigger.band is None else trigger.band,
        priority=priority(prediction, policy),
        cost_bytes=prediction.bytes,
        version=decision.version,
        payload=payload.encode(),
        debounce=CONTENTION_DEBOUNCE if decision.verdict is DecisionKind.DEFER else IMMEDIATE,
        precedence=_precedence(trigger),
        extent=trigger.rewrite_kind.extent,
    )


def _precedence(trigger: Trigger) -> int:
    """Return the rank among requests of one version: a mode or values, then force, then what an event leads to."""
    return 2 if trigger.is_custom else int(trigger.is_forced)


def priority(prediction: Prediction, policy: Policy) -> int:
    """Return the priority step, 0 first: the logarithm of benefit per target's worth of bytes rewritten."""
    gain = prediction.benefit * policy.target_bytes / (prediction.bytes + FIXED_COST_BYTES)
    return max(0, PRIORITIES - 1 - int(gain).bit_length())
