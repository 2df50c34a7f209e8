"""Content of one commit: the groups of one job, or of several that were claimed together.

Each job plans for itself. Jobs share a commit if their rewrites differ in nothing but the partition: same table, same
policy. The commit names all of them, so that each finds it again by its own token.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from actor.job_run import JobRun
from actor.ports import GroupStatus, RewriteOutcome, RewriteRequest
from shared.layout.commit_metadata import CommitMetadata
from shared.layout.planner import FileGroup, Plan
from shared.policy.policy import RowGroupCopy
from shared.table import CommitOrigin, FileKey


@dataclass(frozen=True, slots=True)
class Portion:
    """Part of one job in a commit: some of the groups that it planned."""

    run: JobRun
    planned: Plan
    groups: tuple[FileGroup, ...]


def choose_portions(planned: Sequence[tuple[JobRun, Plan]], groups_per_commit: int) -> tuple[Portion, ...]:
    """Return the first job's next groups, with groups of later jobs that fit into the same commit as a whole.

    A file that two jobs plan, whatever their partitions are called, is replaced once: twice would double its rows.
    """
    first, plan = planned[0]
    groups = plan.groups[: 1 if first.commits_single_groups else groups_per_commit]
    chosen = [Portion(first, plan, groups)]
    free = 0 if first.commits_alone else groups_per_commit - len(groups)
    replaced = _inputs(groups)
    for run, its_plan in planned[1:]:
        inputs = _inputs(its_plan.groups)
        fits = len(its_plan.groups) <= free and replaced.isdisjoint(inputs)
        if fits and not run.commits_alone and _is_alike(first, run):
            chosen.append(Portion(run, its_plan, its_plan.groups))
            free -= len(its_plan.groups)
            replaced |= inputs
    return tuple(chosen)


def _inputs(groups: Sequence[FileGroup]) -> set[FileKey]:
    return {file.key for group in groups for file in group.files}


def request_of(portions: Sequence[Portion], trace: str = "") -> RewriteRequest:
    """Return the rewrite of all portions, signed with every job and token, and with the context of its span."""
    payload = portions[0].run.payload
    groups = tuple(group for portion in portions for group in portion.groups)
    return RewriteRequest(
        payload.location,
        groups,
        replace(_metadata(portions), traceparent=trace or None).encode(),
        payload.table_uuid,
        may_copy=payload.policy.row_group_copy is RowGroupCopy.AUTO,
        full_bytes=payload.policy.size_levels.full_bytes,
        proofread=payload.policy.proofread,
        carry_below=payload.policy.delete_ratio_threshold,
    )


def outcome_of(portion: Portion, outcome: RewriteOutcome, *, shared_by: int) -> RewriteOutcome:
    """Return what became of one job's portion, and its part of the times."""
    own = set(portion.groups)
    ends = tuple(end for end in outcome.groups if end.group in own)
    has_landed = any(end.status is GroupStatus.COMMITTED for end in ends)
    met_conflict = shared_by == 1 or any(end.status is GroupStatus.CONFLICTED for end in ends)
    return replace(
        outcome,
        version=outcome.version if has_landed else None,
        groups=ends,
        prepare_ms=round(outcome.prepare_ms / shared_by),
        commit_ms=round(outcome.commit_ms / shared_by),
        conflicts=outcome.conflicts if met_conflict else 0,
    )


def _is_alike(one: JobRun, other: JobRun) -> bool:
    a, b = one.payload, other.payload
    return (a.location, a.table_uuid, a.format, a.policy) == (b.location, b.table_uuid, b.format, b.policy)


def _metadata(portions: Sequence[Portion]) -> CommitMetadata:
    """Name jobs and tokens in the commit, with what its actions do not contain: the table's own log is the history."""
    first, is_shared = portions[0], len(portions) > 1
    origin, *others = (CommitOrigin(portion.run.claim.id, portion.run.claim.token) for portion in portions)
    return CommitMetadata(
        origin=origin,
        others=tuple(others),
        partition=None if is_shared else first.planned.partition,
        round=first.run.rounds,
        mode=max(group.mode for portion in portions for group in portion.groups),
        started_ms=time.time_ns() // 1_000_000,
        size_levels=first.run.payload.policy.size_levels,
        partition_files=None if is_shared else first.planned.before.files,
        partition_small_files=None if is_shared else first.planned.before.small_files,
    )
