"""Payload of a job: written by the decider, read by the actor, opaque to the queue.

A job names a partition and never a file: the actor plans on the live snapshot, so a plan is never stale. The decision's
prediction is part of it, to be compared with the measured values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from shared.policy.policy import Policy
from shared.typed_json import from_json, to_json

COMPACT = "compact"
"""The kind of job that merges small files of one partition."""

SORT = "sort"
"""The kind of job that sorts full files of one partition again, whose ranges overlap."""

VACUUM = "vacuum"
"""The kind of job that deletes files of a table that no version inside the retention needs."""

DEDUPLICATE = "deduplicate"
"""The kind of job that removes rows of a table for which a newer row of the same key exists."""

EXPIRE = "expire"
"""The kind of job that deletes rows of a table that are older than its owner lets them become."""

CHECKPOINT = "checkpoint"
"""The kind of job that writes a table's checkpoint and cleans up its log, by the format's own rules."""

CLUSTER = "cluster"
"""The kind of job that has a clustered table's own format cluster its files."""

INDEX = "index"
"""The kind of job that merges blocks of a table's index on several columns."""

SET_PROPERTIES = "set_properties"
"""The kind of job that sets properties of a table by one ALTER TABLE; only a person requests it."""

CALIBRATED_KINDS = frozenset({COMPACT})
"""Kinds whose runs are measured for the calibration of the next prediction: those whose action `is_calibrated`."""


class RewriteKind(StrEnum):
    """Extent of a job: what the levels permit, that and the last merge of an idle partition, or a full rewrite."""

    LEVELS = "levels"
    IDLE = "idle"
    FULL = "full"

    @property
    def extent(self) -> int:
        """How much is requested, as the queue merges it: a full rewrite includes whatever a newer commit requests.

        Idle compaction has no greater extent than levels: a partition that a commit changed is not idle, and its timer
        fires again.
        """
        return int(self is RewriteKind.FULL)


@dataclass(frozen=True, slots=True)
class PredictedCost:
    """Predicted cost and effect of a rewrite, calibrated by earlier runs on the table.

    `uncalibrated_files_removed` and `uncalibrated_bytes` are computed from the partition's state without the
    correction, which is learned from them.
    """

    files_replaced: int
    files_removed: int
    bytes: int
    uncalibrated_files_removed: int = 0
    uncalibrated_bytes: int = 0


class RunMeasure(StrEnum):
    """Measures that a run adds to its table's sums, from which the decider learns: runs, and their bytes and files.

    Predicted ones were computed from the state; merged and filled ones cover groups without deleted rows, whose outputs
    are smaller than their inputs only by compression: merged ones those that total less than a full file, filled ones
    the others.
    """

    RUNS = "runs"
    PREDICTED_BYTES = "predicted_bytes"
    MEASURED_BYTES = "measured_bytes"
    PREDICTED_REMOVED = "predicted_removed"
    MEASURED_REMOVED = "measured_removed"
    MERGED_BYTES = "merged_bytes"
    MERGED_INTO_BYTES = "merged_into_bytes"
    FILLED_BYTES = "filled_bytes"
    FILLED_INTO_BYTES = "filled_into_bytes"


@dataclass(frozen=True, slots=True)
class JobPayload:
    """Location and name of the table, the policy to plan with, and the reason for the job.

    `policy_digest` is the digest of the properties that the policy was read from (`policy.policy_digest`); an actor
    that finds another digest on the table has not satisfied requests under the new properties. `is_contended`: other
    commands change the partition's rows so often that each file group is committed by itself, so that a conflict costs
    one group. `even_if_disabled`: the job was requested although the table is disabled; any other job is abandoned if
    the table is disabled when it runs. `ended_by_ms`: with time windows, those that ended by then are idle-compacted;
    None: all. `table_uuid` is the `id` of the table's `metaData` at the decision: another id at the same location is
    another table. Empty: written by a release without this field. `format` names the table's format, whose engine runs
    the job; empty: the actor's only one. `options`: what a kind of job needs beyond the policy, read by its runner.
    `fingerprint`: the table's at the decision (`TableFingerprint`), for an actor that cannot read the table.
    `decided_ms`: as of when a filter with moving moments was evaluated, in ms since 1970; 0 for any other filter.
    """

    location: str
    name: str
    policy: Policy
    reason: str
    predicted: PredictedCost
    policy_digest: str = ""
    rewrite_kind: RewriteKind = RewriteKind.LEVELS
    is_contended: bool = False
    even_if_disabled: bool = False
    ended_by_ms: int | None = None
    table_uuid: str = ""
    format: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    fingerprint: tuple[str, ...] = ()
    decided_ms: int = 0

    def with_extent(self, extent: int) -> "JobPayload":
        """Return the payload of a job of this extent, although its newest request may have a smaller one."""
        return replace(self, rewrite_kind=RewriteKind.FULL) if extent >= RewriteKind.FULL.extent else self

    def encode(self) -> str:
        """Write the payload as JSON text."""
        return to_json(self)

    @staticmethod
    def decode(text: str) -> "JobPayload":
        """Read what `encode` wrote."""
        return from_json(JobPayload, text)
