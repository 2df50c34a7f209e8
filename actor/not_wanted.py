"""A decided job, the newest properties of its table and the time: whether they still want it, for all formats."""

from collections.abc import Sequence

from actor.ports import TableJob, TableJobOutcome
from shared.errors import InvalidInput
from shared.jobs.options import ALREADY_SET, PROPERTIES_SET, PropertyOptions
from shared.jobs.payload import JobPayload
from shared.policy.partition_filter import is_relative, permits
from shared.policy.policy import Policy, apply
from shared.policy.properties import is_switched_off, policy_digest, read_properties
from shared.policy.row_expiry import RowExpiry, parse_row_expiry
from shared.table import PartitionColumn, PartitionKey, TableMetadata

SWITCHED_OFF = "the table's properties switch it off"
"""Why a job that no client requested has nothing to do."""


def reason_not_wanted(job: TableJob, metadata: TableMetadata) -> str:
    """Return why the table's newest properties leave a decided job nothing to do, an empty string if they do not."""
    if is_switched_off(metadata.configuration) and not job.even_if_disabled:
        return SWITCHED_OFF
    if job.policy_digest and policy_digest(metadata.configuration) != job.policy_digest:
        return "the table's properties changed since the decision, which is made again"
    return ""


def has_left(payload: JobPayload, partition: PartitionKey, columns: Sequence[PartitionColumn], now_ms: int) -> bool:
    """Return whether a partition has left the filter since a rewrite of it was decided.

    A clock behind the decider's must not undo that it has entered.
    """
    text, now_ms = payload.policy.filter, max(now_ms, payload.decided_ms)
    return is_relative(text) and not permits(text, partition, columns, now_ms)


def may_lose_rows(job: TableJob, partition: PartitionKey, columns: Sequence[PartitionColumn], now_ms: int) -> bool:
    """Return whether the filter lets rows of a partition be removed: both as of the decision and now.

    So no clock that is ahead alone makes rows be removed, and none of a partition that has left.
    """
    return all(permits(job.policy.filter, partition, columns, at_ms) for at_ms in (job.decided_ms, now_ms))


def properties_to_set(job: TableJob, version: int, metadata: TableMetadata) -> dict[str, str] | TableJobOutcome:
    """Return the properties of a job that the table does not have yet; where none is to be set, the run's outcome."""
    missing = PropertyOptions.decode(job.options).missing(metadata.configuration)
    # First: after a run that died behind its commit, the properties are no longer the decision's.
    if not missing:
        return TableJobOutcome(version, metadata, figures={PROPERTIES_SET: 0}, reason=ALREADY_SET)
    reason = reason_not_wanted(job, metadata)
    return TableJobOutcome(version, metadata, reason=reason) if reason else missing


def own_expiry(job: TableJob, metadata: TableMetadata) -> RowExpiry | None:
    """Return by what age a table's own newest properties want rows deleted, None if they do not want what was decided.

    Whatever the job was decided by, no row is deleted that the table itself does not name.
    """
    layer = read_properties(metadata.configuration)
    text = layer.values.get("delete_rows_after")
    if text is None or text != job.policy.delete_rows_after or any(issue.is_blocking for issue in layer.issues):
        return None
    try:
        apply(Policy(), layer)
    except InvalidInput:
        return None
    return parse_row_expiry(text)
