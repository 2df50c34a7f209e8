"""Jobs on whole tables on demand, from a vacuum to the rewrite of manifests, or a dry run.

A request runs although the table's properties do not switch the action on, and never although the table is refused. A
retention below the table's own has to be forced, and a purge to be confirmed with the table's name. What no actor can
run on tables of a format raises Unsupported, and nothing is queued.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from decider.decide import ledger
from decider.decide.context import DecisionContext
from decider.decide.decision import Trigger, TriggerSource
from decider.decide.job_request import job_request
from decider.decide.table_action import evaluate_table
from decider.formats.table_format import TableReader, VacuumPreview
from decider.store.queue_executor import AsyncQueueExecutor
from decider.store.table_state import TableState, TableStateStore
from decider.store.traced_jobs import enqueue
from decider.tracking.tracker import TableTracker
from shared.cluster_options import ClusterOptions
from shared.deduplicate_options import DeduplicateOptions
from shared.errors import InvalidInput, Unsupported
from shared.formats.registry import support_of
from shared.index_options import IndexJobOptions
from shared.job_payload import CHECKPOINT, CLUSTER, DEDUPLICATE, INDEX, REWRITE_MANIFESTS, SET_PROPERTIES, VACUUM
from shared.layout.clustered_files import ClusteredFiles, ClusterReason
from shared.layout.manifest_files import ManifestFiles, ManifestReason, manifests_need
from shared.layout.partition_stats import CUBE_TAG
from shared.policy import Policy
from shared.property_options import PropertyOptions
from shared.queue.model import Band, EnqueueOutcome, JobId
from shared.refusals import Refusal
from shared.table import TableRef
from shared.vacuum_options import VacuumOptions

_Options = VacuumOptions | DeduplicateOptions | ClusterOptions | IndexJobOptions | PropertyOptions

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RequestedTableJob:
    """A job that a request led to; `outcome`: it is new, merged into a waiting one, or follows a running one."""

    id: JobId
    action: str
    outcome: EnqueueOutcome


@dataclass(frozen=True, slots=True)
class TableRequestResult:
    """Result of a request: its jobs; none where the table is refused."""

    version: int
    jobs: tuple[RequestedTableJob, ...] = ()
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class ClusterPreview:
    """What clustering would do at a version: files in and outside of Z-cubes, and whether a run is due."""

    version: int
    files: ClusteredFiles
    need: ClusterReason
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class ManifestPreview:
    """What a rewrite of manifests would do at a version, and whether one is due; `files` is None without a snapshot."""

    version: int
    files: ManifestFiles | None
    need: ManifestReason
    refusal: Refusal | None = None


class TableRequests:
    """Turns requests about whole tables into jobs, or into the preview of a vacuum."""

    def __init__(
        self,
        queue: AsyncQueueExecutor,
        tracker: TableTracker,
        open_table: Callable[[str], TableReader],
        now_ms: Callable[[], int],
    ) -> None:
        self._queue = queue
        self._states = TableStateStore(queue)
        self._tracker = tracker
        self._open_table = open_table
        self._now_ms = now_ms

    async def vacuum(self, table: TableRef, options: VacuumOptions) -> TableRequestResult:
        """Queue a vacuum. Raises InvalidInput for a retention below the table's own that is not forced."""
        cursor = await self._tracker.followed(table)
        policy = self._tracker.effective(table, cursor).policy
        _require_runnable(table, cursor.metadata.format, policy, VACUUM)
        _check_retention(policy, options)
        return await self._request(table, cursor, policy, [(VACUUM, replace(options, requested_ms=self._now_ms()))])

    async def checkpoint(self, table: TableRef) -> TableRequestResult:
        """Queue a checkpoint of the newest version and the cleanup of the log."""
        cursor = await self._tracker.followed(table)
        policy = self._tracker.effective(table, cursor).policy
        _require_runnable(table, cursor.metadata.format, policy, CHECKPOINT)
        return await self._request(table, cursor, policy, [(CHECKPOINT, None)])

    async def reclaim(self, table: TableRef, *, confirm: str, retain_s: int | None) -> TableRequestResult:
        """Queue a vacuum with orphans, and a log cleanup.

        retain_s: how much history stays, even below the table's retention; None: the retention that the actor computes
        by the newest properties. Raises InvalidInput unless `confirm` is the table's name.
        """
        if confirm != table.name:
            raise InvalidInput(
                f"history of the table {table.name} is deleted permanently: confirm with its name", field="confirm"
            )
        cursor = await self._tracker.followed(table)
        policy = self._tracker.effective(table, cursor).policy
        _require_runnable(table, cursor.metadata.format, policy, VACUUM)
        options = VacuumOptions(
            with_orphans=True,
            force=retain_s is not None,
            retain_s=retain_s,
            requested_ms=self._now_ms(),
        )
        wanted: list[tuple[str, VacuumOptions | None]] = [(VACUUM, options), (CHECKPOINT, None)]
        return await self._request(table, cursor, policy, [one for one in wanted if policy.runs(one[0])])

    async def deduplicate(self, table: TableRef, *, dry_run: bool) -> TableRequestResult:
        """Queue a removal of older rows from all partitions, or a count of them.

        Raises InvalidInput if the table has no primary key.
        """
        cursor = await self._tracker.followed(table)
        policy = self._tracker.effective(table, cursor).policy
        _require_runnable(table, cursor.metadata.format, policy, DEDUPLICATE)
        if not policy.has_key:
            raise InvalidInput(
                f"the table {table.name} has no key: set lakewright.primary-key and lakewright.sequence-by",
                field="primary-key",
            )
        return await self._request(table, cursor, policy, [(DEDUPLICATE, DeduplicateOptions(dry_run=dry_run))])

    async def cluster(self, table: TableRef) -> TableRequestResult:
        """Queue a run of the format's own OPTIMIZE, whatever share of the bytes is not clustered.

        Raises InvalidInput for a table without `CLUSTER BY`.
        """
        cursor = await self._tracker.followed(table)
        in_force = self._tracker.effective(table, cursor)
        if in_force.refusal is not None:
            return TableRequestResult(cursor.version, refusal=in_force.refusal)
        _require_clustered(table, in_force.policy)
        return await self._request(table, cursor, in_force.policy, [(CLUSTER, ClusterOptions(force=True))])

    async def index(self, table: TableRef, options: IndexJobOptions) -> TableRequestResult:
        """Queue an optimization of the table's index, until nothing in it is eligible.

        Raises InvalidInput for a table without an index, or whose owner did not switch the action on.
        """
        cursor = await self._tracker.followed(table)
        in_force = self._tracker.effective(table, cursor)
        if in_force.refusal is not None:
            return TableRequestResult(cursor.version, refusal=in_force.refusal)
        if not in_force.policy.is_indexed:
            raise InvalidInput(f"the table {table.name} has no Qbeast index", field="table")
        return await self._request(table, cursor, in_force.policy, [(INDEX, options)])

    async def preview_cluster(self, table: TableRef) -> ClusterPreview:
        """Count what a run would rewrite now, and change nothing; raises what `cluster` raises."""
        snapshot = await self._open_table(table.location).snapshot()
        in_force = self._tracker.effective_at(table, snapshot, await self._states.state(table.id))
        files = ClusteredFiles.of((file.size_bytes, CUBE_TAG in file.tags) for file in snapshot.files)
        if in_force.refusal is None:
            _require_clustered(table, in_force.policy)
        return ClusterPreview(snapshot.version, files, files.need(in_force.policy), in_force.refusal)

    async def rewrite_manifests(self, table: TableRef) -> TableRequestResult:
        """Queue a rewrite of the manifests, however many there are; raises Unsupported where a format has none."""
        cursor = await self._tracker.followed(table)
        policy = self._tracker.effective(table, cursor).policy
        _require_manifests(table, cursor.metadata.format, policy)
        return await self._request(table, cursor, policy, [(REWRITE_MANIFESTS, None)])

    async def preview_manifests(self, table: TableRef) -> ManifestPreview:
        """Count the manifests, and change nothing; raises what `rewrite_manifests` raises."""
        cursor = await self._tracker.followed(table)
        in_force = self._tracker.effective(table, cursor)
        _require_manifests(table, cursor.metadata.format, in_force.policy)
        files = await self._open_table(table.location).manifests()
        need = manifests_need(files, in_force.policy.rewrite_manifests_at)
        return ManifestPreview(cursor.version, files, need, in_force.refusal)

    async def set_properties(self, table: TableRef, values: Mapping[str, str]) -> JobId:
        """Queue one `ALTER TABLE` that sets the table's own properties; raises what `require_properties` raises."""
        cursor, policy = await self.require_properties(table)
        made = await self._request(table, cursor, policy, [(SET_PROPERTIES, PropertyOptions(values))])
        return made.jobs[0].id

    async def require_properties(self, table: TableRef) -> tuple[TableState, Policy]:
        """Return the state and the policy of a table; raises Unsupported where its properties must not be set by us."""
        cursor = await self._tracker.followed(table)
        in_force = self._tracker.effective(table, cursor)
        if in_force.refusal is not None:
            raise Unsupported(f"{table.name} is refused: {in_force.refusal.message}", field=in_force.refusal.subject)
        _require_runnable(table, cursor.metadata.format, in_force.policy, SET_PROPERTIES)
        return cursor, in_force.policy

    async def preview_vacuum(self, table: TableRef, options: VacuumOptions) -> VacuumPreview:
        """Return what a vacuum would delete now, and change nothing; raises what `vacuum` raises."""
        reader = self._open_table(table.location)
        snapshot = await reader.snapshot()
        cursor = await self._states.state(table.id)
        in_force = self._tracker.effective_at(table, snapshot, cursor)
        policy = in_force.policy
        _require_runnable(table, snapshot.metadata.format, policy, VACUUM)
        _check_retention(policy, options)
        if in_force.refusal is not None:
            return VacuumPreview(snapshot.version, 0, (), in_force.refusal)
        found = await reader.plan_vacuum(policy, options, self._now_ms())
        is_allowed = found.refusal is not None and VACUUM in found.refusal.allows
        return replace(found, refusal=None) if is_allowed else found

    async def _request(
        self,
        table: TableRef,
        cursor: TableState,
        policy: Policy,
        wanted: Sequence[tuple[str, _Options | None]],
    ) -> TableRequestResult:
        """Decide about each kind as requested, and queue its job with the record of the decision."""
        calibration = await self._states.calibration(table.id)
        context = DecisionContext.resolve(
            *(table, cursor.metadata, policy, calibration),
            contention=cursor.contention,
            at_ms=self._now_ms(),
            last_rewrite_ms=cursor.last_rewrite_ms,
        )
        signals = await self._tracker.signals(table, cursor, {kind for kind, _ in wanted})
        jobs: list[RequestedTableJob] = []
        for kind, options in wanted:
            action = self._tracker.actions.table_action(kind)
            if action is None:
                raise InvalidInput(f"this decider has no action of the kind {kind!r}", field="action")
            trigger = Trigger(cursor.version, TriggerSource.REQUEST, band=Band.NORMAL, is_forced=True)
            made = evaluate_table(context, signals, trigger, action)
            if made.prediction is None:
                return TableRequestResult(cursor.version, refusal=self._tracker.effective(table, cursor).refusal)
            made = replace(made, options=made.options if options is None else options.encode())
            job = job_request(context, made)
            record = ledger.encode(made, context)
            outcome = await enqueue(self._queue, job, record, ledger_kept=self._tracker.ledger_kept)
            jobs.append(RequestedTableJob(job.id, kind, outcome))
        log.info("table_job_requested", table=table.name, jobs=[job.id for job in jobs])
        return TableRequestResult(cursor.version, tuple(jobs))


def _require_runnable(table: TableRef, table_format: str, policy: Policy, kind: str) -> None:
    """Raise Unsupported if no actor can run jobs of this kind on tables of this format."""
    if policy.runs(kind):
        return
    support = support_of(table_format)
    advice = support.instead.get(kind, "see the documentation of the format")
    raise Unsupported(
        f"Lakewright runs no {kind} of {support.title} tables, and {table.name} is one: nothing was queued; {advice}",
        field="format",
    )


def _require_manifests(table: TableRef, table_format: str, policy: Policy) -> None:
    """Raise Unsupported for a table without manifests."""
    support = support_of(table_format)
    if not support.has_manifests:
        raise Unsupported(
            f"{support.title} tables have no manifests, and {table.name} is one: nothing was queued", field="format"
        )
    _require_runnable(table, table_format, policy, REWRITE_MANIFESTS)


def _require_clustered(table: TableRef, policy: Policy) -> None:
    """Raise InvalidInput for a table that its format's own OPTIMIZE does not cluster."""
    if not policy.clusters:
        raise InvalidInput(
            f"the table {table.name} is not clustered: there is no CLUSTER BY; compaction and sort-by are for tables "
            "without it",
            field="table",
        )


def _check_retention(policy: Policy, options: VacuumOptions) -> None:
    """Raise InvalidInput for a retention below that of the table, unless it is forced."""
    least_s = policy.retention_s
    if options.retain_s is not None and options.retain_s < least_s and not options.force:
        raise InvalidInput(
            f"a retention of {options.retain_s / 3600:g} hours is below the table's retention of "
            f"{least_s / 3600:g} hours: readers and writers that still use older files would fail; repeat "
            "with force to delete them anyway",
            field="retain_hours",
            allowed=f"{least_s / 3600:g} hours or more",
        )
