"""Abilities of Lakewright's engine for Iceberg tables: add a kind of job here once the engine runs it."""

from shared.formats.iceberg.retention import own_retention_s
from shared.formats.support import FormatSupport
from shared.jobs.payload import CHECKPOINT, CLUSTER, COMPACT, DEDUPLICATE, EXPIRE, INDEX, SET_PROPERTIES, VACUUM
from shared.layout.upkeep import UPKEEP

JOB_KINDS = (COMPACT, VACUUM, EXPIRE, CLUSTER, *(one.kind for one in UPKEEP), SET_PROPERTIES)
"""Kinds of jobs that the engine runs."""

SUPPORT = FormatSupport(
    title="Iceberg",
    job_kinds=JOB_KINDS,
    orders_rows=False,
    has_entries=True,
    commit_step=60_000,
    names_cluster_columns=True,
    instead={
        INDEX: "tables with a Qbeast index are Delta tables",
        DEDUPLICATE: "use MERGE INTO in the table's own engine",
        CHECKPOINT: "there are no checkpoints in Iceberg; use rewrite-manifests",
    },
    own_retention_s=own_retention_s,
)
