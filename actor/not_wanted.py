"""Why a decided job on a table as a whole is not wanted any more: one rule for all kinds and formats."""

from actor.ports import TableJob
from shared.policy.properties import is_switched_off, policy_digest
from shared.table import TableMetadata

SWITCHED_OFF = "the table's properties switch it off"
"""Why a job that no client requested has nothing to do."""


def reason_not_wanted(job: TableJob, metadata: TableMetadata) -> str:
    """Return why the table's newest properties leave a decided job nothing to do, an empty string if they do not."""
    if is_switched_off(metadata.configuration) and not job.even_if_disabled:
        return SWITCHED_OFF
    if job.policy_digest and policy_digest(metadata.configuration) != job.policy_digest:
        return "the table's properties changed since the decision, which is made again"
    return ""
