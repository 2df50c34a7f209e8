"""Ports of a worker to a table format, as small protocols: the worker never learns that Spark exists."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any, Protocol

from actor.proofread.model import Proof
from shared.errors import LakewrightError, PermanentError, RefusedFiles
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup
from shared.policy.policy import Policy, Proofread
from shared.table import CommitOrigin, DataFile, PartitionKey, TableMetadata, TableProtocol


@dataclass(frozen=True, slots=True)
class LivePartition:
    """The live files of one partition at the newest version of its table."""

    version: int
    metadata: TableMetadata
    protocol: TableProtocol
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """Replace exactly the files of these groups; `user_metadata` goes into the commit and names each job and token.

    `table_uuid` is the `metaData.id` that the table must have; empty: any. `may_copy`: row groups may be copied as
    bytes where that is exact. `full_bytes`: size from which an output is never merged again; 0: each may be the last.
    `proofread`: which groups are compared with their inputs before they are committed. `carry_below`: share of deleted
    rows in an output below which they may stay in it, hidden as they are in the inputs; None: they are left out.
    """

    location: str
    groups: tuple[FileGroup, ...]
    user_metadata: str
    table_uuid: str = ""
    may_copy: bool = True
    full_bytes: int = 0
    proofread: Proofread = Proofread.NEW
    carry_below: Fraction | None = None


class GroupStatus(StrEnum):
    """Outcome of a file group: committed, conflicted (another writer removed an input), not started, failed, refused.

    A rewrite returns failed groups only beside others that it could write; otherwise it raises. Refused groups, whose
    `error` is a `RefusedFiles`, it always returns: they are remembered, and not tried again as they are.
    """

    COMMITTED = "committed"
    CONFLICTED = "conflicted"
    SKIPPED = "skipped"
    FAILED = "failed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """Outcome of one group; `outputs` and `rows` are empty and None unless it was committed.

    `is_copied`: its row groups were copied as bytes; otherwise `encoded_because` says why not, if the engine can copy.
    `by_column`: it was encoded column by column, without putting rows together.
    `conflicted_because`: why it could not land beside what others did, if that is known.
    `error`: of a group that failed or was refused. `proof`: what proofreading found of a group that was committed.
    `late_rows`: rows of it that others deleted while it was rewritten.
    """

    group: FileGroup
    status: GroupStatus
    outputs: tuple[DataFile, ...] = ()
    rows: int | None = None
    is_copied: bool = False
    encoded_because: str = ""
    by_column: bool = False
    conflicted_because: str = ""
    error: LakewrightError | None = None
    proof: Proof | None = None
    late_rows: int = 0


@dataclass(frozen=True, slots=True)
class RewriteOutcome:
    """The committed version (None: nothing was committed), outcome of each group, wall times, and conflicts.

    follows: the version right before the committed one; None where that is not known.
    """

    version: int | None
    groups: tuple[GroupOutcome, ...]
    prepare_ms: int
    commit_ms: int
    conflicts: int = 0
    follows: int | None = None


class EngineDied(PermanentError):  # noqa: N818
    """The engine cannot work any more: every further job would fail, so the actor must end and be restarted."""


@dataclass(frozen=True, slots=True)
class EngineDeath:
    """Why an engine ended, as a sentence for people; `was_requested`: it was asked to, so no job is to blame."""

    cause: str
    was_requested: bool = False


class Control(Protocol):
    """How the worker controls a running rewrite; called from the rewriting threads."""

    def may_commit(self) -> None:
        """Raise LeaseLost unless a commit is still allowed; called immediately before every commit."""

    def should_stop(self) -> bool:
        """Return whether no further group shall be started; what is written by then is still committed."""

    def reached(self, point: str) -> None:
        """Report a labeled point (`files_written`, `committed`): progress for people, a barrier for tests."""


@dataclass(frozen=True, slots=True)
class TableJob:
    """Work on a table as a whole, such as vacuum: it plans and runs in one call, and replaces no data file.

    `origin` names job and token; `options` are the kind's. `table_uuid` is the id that the table must have;
    empty: any. `even_if_disabled`: run although the table's properties switch it off. `policy_digest`: digest of the
    properties that it was decided by; empty: not known. `trace`: context of its span, for its commits' metadata.
    `decided_ms`: as of when a filter that moves with the time was evaluated, in ms since 1970.
    """

    kind: str
    location: str
    policy: Policy
    origin: CommitOrigin
    table_uuid: str = ""
    even_if_disabled: bool = False
    policy_digest: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    trace: str = ""
    decided_ms: int = 0

    def mark(self) -> CommitMetadata:
        """Return the mark of a commit that begins now."""
        now_ms = time.time_ns() // 1_000_000
        return CommitMetadata(self.origin, mode=self.kind, started_ms=now_ms, traceparent=self.trace or None)


@dataclass(frozen=True, slots=True)
class TableJobOutcome:
    """Outcome of a table job: the version that it read, versions that it committed, and its figures by name.

    Not `is_complete`: it stopped because it was asked to, and the next run goes on where it stopped. `reason`: why
    nothing was to be done, or what was left out, as a sentence. `left`: what it refused beside what it did.
    """

    version: int
    metadata: TableMetadata
    commits: tuple[int, ...] = ()
    figures: Mapping[str, int] = field(default_factory=dict, hash=False)
    is_complete: bool = True
    reason: str = ""
    left: RefusedFiles | None = None


class TableJobControl(Protocol):
    """How the worker controls a running table job; called from the thread that runs it."""

    def may_change(self) -> None:
        """Raise LeaseLost unless the job may still change the table; called immediately before every change."""

    def should_stop(self) -> bool:
        """Return whether the job ends after the current step."""

    def reached(self, point: str, done: int = 0, total: int = 0) -> None:
        """Report progress: a labeled point, with the steps done of all (0: not known)."""

    def measured(self, figures: Mapping[str, int]) -> None:
        """Report the figures so far, which are the job's if it fails."""


class TableEngine(Protocol):
    """Reading and rewriting tables of one format.

    `table_kinds` are the kinds of jobs on whole tables that it runs, beside those on partitions.
    Versions grow by one or more with every commit. If our own commit follows the version that was read, its result is
    known; otherwise the partition is read again.
    """

    format: str
    table_kinds: tuple[str, ...]

    def read_partition(self, location: str, partition: PartitionKey, *, table_uuid: str = "") -> LivePartition:
        """Return the live files of a partition at the newest version; raises Unsupported for a refused table.

        Raises OtherTable, before anything else is read, where the table's `metaData.id` is not `table_uuid`; an empty
        one means whichever table is there.
        """

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        """Replace the groups' files without changing data; groups whose inputs are not live return CONFLICTED."""

    def is_alive(self) -> bool:
        """Return whether the engine can work at all; asked before a job is claimed, and after a failure."""

    def terminate(self) -> EngineDeath | None:
        """End what is left of an engine that is not alive, so that it commits nothing more, and return the cause.

        None if it cannot be ended. May be called again, from any thread.
        """

    def cancel(self, job: str) -> None:
        """End the rewrite of this job and of those that share it, from any thread.

        It then fails, unless its commit was made already.
        """

    def find_commit(self, location: str, *, job: str, token: int, since_version: int) -> int | None:
        """Return the version above `since_version` that this job and token committed, None if there is none."""

    def run_table_job(self, job: TableJob, control: TableJobControl) -> TableJobOutcome:
        """Run a job of one of `table_kinds`. Raises what `read_partition` raises, and LeaseLost."""
