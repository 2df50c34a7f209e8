"""Counters that the end of a run adds to, named once: the actor counts by these names, the decider exports them."""

from enum import StrEnum


class RunCounter(StrEnum):
    """Counts of runs, and of what runs on partitions did; jobs on whole tables add figures of their own kind."""

    JOBS_RUN = "jobs_run"
    JOBS_FAILED = "jobs_failed"
    PLANS_EMPTY = "plans_empty"
    COMMITS_RECOVERED = "commits_recovered"
    REWRITES = "rewrites"
    FILES_REPLACED = "files_replaced"
    FILES_WRITTEN = "files_written"
    BYTES_REPLACED = "bytes_replaced"
    BYTES_WRITTEN = "bytes_written"
    CONFLICTS = "conflicts"
    GROUPS_COMMITTED = "groups_committed"
    GROUPS_CONFLICTED = "groups_conflicted"
    GROUPS_FAILED = "groups_failed"
    GROUPS_REFUSED = "groups_refused"
    LATE_ROWS_HIDDEN = "late_rows_hidden"
    GROUPS_COPIED = "groups_copied"
    BYTES_COPIED = "bytes_copied"
    GROUPS_ENCODED_BY_COLUMN = "groups_encoded_by_column"
    GROUPS_PROOFREAD_BY_ROWS = "groups_proofread_by_rows"
    GROUPS_PROOFREAD_BY_BYTES = "groups_proofread_by_bytes"
    GROUPS_UNVERIFIED = "groups_unverified"
    PROOFREAD_CPU_MS = "proofread_cpu_ms"
    GROUPS_PROMOTED = "groups_promoted"
    GROUPS_NOT_PROMOTED = "groups_not_promoted"
    LEVELS_NOT_REACHED = "levels_not_reached"


def runs_of_kind(kind: str) -> str:
    """Return the counter of the runs of a kind of job on whole tables; its figures begin with the kind, too."""
    return f"{kind}_runs"
