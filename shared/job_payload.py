"""What a job says about its table: written by the decider, read by the actor, opaque to the queue.

A job names a partition and never a file: the actor plans on the live snapshot, so a plan is never stale. The decision's
numbers travel along to be compared with what is found.
"""

import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from shared.policy import Policy

COMPACT = "compact"
"""The kind of job that merges small files of one partition: the one kind that this release knows."""


class RewriteKind(StrEnum):
    """What a job asks for: what the levels permit, that and the last merge of a quiet partition, or a full rewrite."""

    LEVELS = "levels"
    IDLE = "idle"
    FULL = "full"

    @property
    def extent(self) -> int:
        """How much is asked for, as the queue merges it: a full rewrite includes whatever a newer commit asks for.

        Settling does not reach further than levels: what a commit changed is not quiet, and its timer rings again.
        """
        return int(self is RewriteKind.FULL)


@dataclass(frozen=True, slots=True)
class PredictedCost:
    """Predicted cost and effect of a rewrite, calibrated by earlier runs on the table.

    `uncalibrated_files_removed` and `uncalibrated_bytes` are what the partition's state said without the correction,
    which is learned from them.
    """

    files_replaced: int
    files_removed: int
    bytes: int
    uncalibrated_files_removed: int = 0
    uncalibrated_bytes: int = 0


class RunMeasure(StrEnum):
    """What a run adds to its table's sums, from which the decider learns: runs, and their bytes and files.

    Predicted ones are what the state said; merged ones are of groups without deleted rows, whose outputs are smaller
    than their inputs by nothing but compression.
    """

    RUNS = "runs"
    PREDICTED_BYTES = "predicted_bytes"
    MEASURED_BYTES = "measured_bytes"
    PREDICTED_REMOVED = "predicted_removed"
    MEASURED_REMOVED = "measured_removed"
    MERGED_BYTES = "merged_bytes"
    MERGED_INTO_BYTES = "merged_into_bytes"


@dataclass(frozen=True, slots=True)
class JobPayload:
    """Where the table is, what its owner calls it, the policy to plan with, and why the job exists.

    `policy_digest` is the digest of the properties that the policy was read from (`policy.policy_digest`); an actor
    that finds others on the table has not satisfied what may be asked for under them. `is_contended`: other commands
    change the partition's rows so often that each file group is committed by itself, and what a conflict costs is one
    group. `even_if_disabled`: the job was asked for although the table is switched off; any other is given up where the
    table says so when it runs. `ended_by_ms`: with time windows, those that ended by then are settled, None: all.
    `table_uuid` is the `id` of the table's `metaData` that was decided on: another one at the same place is another
    table. Empty: a release wrote the job that did not say it. `format` names the table's format, whose engine runs the
    job; empty: the actor's only one.
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

    def with_extent(self, extent: int) -> "JobPayload":
        """Return the facts of a job that was asked for this much, although its newest wish may have asked for less."""
        return replace(self, rewrite_kind=RewriteKind.FULL) if extent >= RewriteKind.FULL.extent else self

    def encode(self) -> str:
        """Write the facts as JSON text."""
        return json.dumps(
            {
                "location": self.location,
                "name": self.name,
                "policy": self.policy.encode(),
                "reason": self.reason,
                "predicted": asdict(self.predicted),
                "policy_digest": self.policy_digest,
                "rewrite_kind": self.rewrite_kind,
                "is_contended": self.is_contended,
                "even_if_disabled": self.even_if_disabled,
                **({} if self.ended_by_ms is None else {"ended_by_ms": self.ended_by_ms}),
                "table_uuid": self.table_uuid,
                "format": self.format,
            },
            separators=(",", ":"),
        )

    @staticmethod
    def decode(text: str) -> "JobPayload":
        """Read what `encode` wrote."""
        raw = json.loads(text)
        return JobPayload(
            raw["location"],
            raw["name"],
            Policy.decode(raw["policy"]),
            raw["reason"],
            PredictedCost(**raw["predicted"]),
            raw.get("policy_digest", ""),
            RewriteKind(raw.get("rewrite_kind", RewriteKind.LEVELS)),
            raw.get("is_contended", False),
            raw.get("even_if_disabled", False),
            raw.get("ended_by_ms"),
            raw.get("table_uuid", ""),
            raw.get("format", ""),
        )
