"""Jobs on whole tables on demand: vacuum, checkpoint, reclaim, deduplicate, cluster, index and rewrite manifests."""

# ruff: noqa: FAST003 - the dependency behind KnownTable reads the name in the path

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from decider.api.dependencies import KnownTable, Requests
from decider.api.openapi import failures
from decider.api.schemas.table_jobs import (
    LISTED_FILES,
    ClusterDryRun,
    ClusterRequest,
    DeduplicateRequest,
    DeletionView,
    IndexRequest,
    ManifestsDryRun,
    ManifestsRequest,
    ReclaimRequest,
    TableJobResponse,
    TableJobView,
    VacuumDryRun,
    VacuumRequest,
)
from decider.formats.table_format import VacuumPreview
from decider.gateway.authentication import CALLER_ROLE
from decider.gateway.credentials import Role
from decider.optimize.table_requests import ClusterPreview, ManifestPreview, TableRequestResult
from decider.web.errors import ApiError
from shared.index_options import IndexJobOptions
from shared.layout.manifest_files import ManifestFiles, ManifestReason
from shared.vacuum_options import VacuumOptions

router = APIRouter(prefix="/v1/tables", tags=["tables"])

_FAILURES = failures(400, 404, 409, 413, 422, 502)


@router.post(
    "/{name}/vacuum",
    status_code=202,
    response_model=TableJobResponse,
    summary="Vacuum a table",
    responses=_FAILURES | {200: {"model": VacuumDryRun, "description": "Files of a dry run; nothing was changed."}},
)
async def vacuum_table(
    table: KnownTable, asked: VacuumRequest, requests: Requests, request: Request
) -> TableJobResponse | JSONResponse:
    """Queue a job that deletes files that no version inside the retention needs, or list them with `dry_run`.

    `force` needs the role admin, as purging history does.
    """
    role = request.scope.get(CALLER_ROLE, Role.ADMIN)
    if asked.force and not asked.dry_run and role is not Role.ADMIN:
        raise ApiError(
            403, f"force requires the role {Role.ADMIN}; the token has the role {role}", field="force", allowed="false"
        )
    retain_s = None if asked.retain_hours is None else asked.retain_hours * 3_600
    options = VacuumOptions(asked.orphans, asked.force, retain_s)
    if asked.dry_run:
        plan = _plan_view(await requests.table_requests.preview_vacuum(table, options))
        return JSONResponse(plan.model_dump(mode="json"))
    return _jobs_view(await requests.table_requests.vacuum(table, options))


@router.post(
    "/{name}/checkpoint",
    status_code=202,
    summary="Write a checkpoint of a table",
    responses=_FAILURES,
)
async def checkpoint_table(table: KnownTable, requests: Requests) -> TableJobResponse:
    """Queue a job that writes a checkpoint of the newest version and cleans up the log by the format's own rules."""
    return _jobs_view(await requests.table_requests.checkpoint(table))


@router.post(
    "/{name}/reclaim",
    status_code=202,
    summary="Purge the history of a table",
    responses=_FAILURES,
)
async def reclaim_table(table: KnownTable, asked: ReclaimRequest, requests: Requests) -> TableJobResponse:
    """Queue jobs that delete all files and commits outside the retention, for good; `confirm` is the table's name."""
    retain_s = None if asked.retain_hours is None else asked.retain_hours * 3_600
    return _jobs_view(await requests.table_requests.reclaim(table, confirm=asked.confirm, retain_s=retain_s))


@router.post(
    "/{name}/deduplicate",
    status_code=202,
    summary="Keep only the newest row of each key",
    responses=_FAILURES,
)
async def deduplicate_table(table: KnownTable, asked: DeduplicateRequest, requests: Requests) -> TableJobResponse:
    """Queue a job that removes rows for which a newer row of the same key exists, or that counts them (`dry_run`)."""
    return _jobs_view(await requests.table_requests.deduplicate(table, dry_run=asked.dry_run))


@router.post(
    "/{name}/cluster",
    status_code=202,
    response_model=TableJobResponse,
    summary="Cluster a table",
    responses=_FAILURES | {200: {"model": ClusterDryRun, "description": "Counts of a dry run; nothing was changed."}},
)
async def cluster_table(
    table: KnownTable, asked: ClusterRequest, requests: Requests
) -> TableJobResponse | JSONResponse:
    """Queue a run of the format's own OPTIMIZE on a table with `CLUSTER BY`, or count its bytes with `dry_run`."""
    if asked.dry_run:
        counted = _cluster_view(await requests.table_requests.preview_cluster(table))
        return JSONResponse(counted.model_dump(mode="json"))
    return _jobs_view(await requests.table_requests.cluster(table))


@router.post(
    "/{name}/index",
    status_code=202,
    summary="Optimize the index of a table",
    responses=_FAILURES,
)
async def optimize_table_index(table: KnownTable, asked: IndexRequest, requests: Requests) -> TableJobResponse:
    """Queue a job that has Qbeast's library rewrite the eligible files, in iterations, until nothing is eligible."""
    options = IndexJobOptions(asked.revision, asked.bytes_per_iter)
    return _jobs_view(await requests.table_requests.index(table, options))


@router.post(
    "/{name}/rewrite-manifests",
    status_code=202,
    response_model=TableJobResponse,
    summary="Rewrite the manifests of a table",
    responses=_FAILURES | {200: {"model": ManifestsDryRun, "description": "Counts of a dry run; nothing was changed."}},
)
async def rewrite_manifests_of_table(
    table: KnownTable, asked: ManifestsRequest, requests: Requests
) -> TableJobResponse | JSONResponse:
    """Queue a job that merges the manifests of an Iceberg table, or count them with `dry_run`."""
    if asked.dry_run:
        counted = _manifests_view(await requests.table_requests.preview_manifests(table))
        return JSONResponse(counted.model_dump(mode="json"))
    return _jobs_view(await requests.table_requests.rewrite_manifests(table))


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _manifests_view(preview: ManifestPreview) -> ManifestsDryRun:
    files = preview.files or ManifestFiles(0, 0, 0)
    number = _counted(files.count, "manifest")
    message = f"{number} with {files.bytes} bytes; {files.needed} would be enough."
    return ManifestsDryRun(
        version=preview.version,
        message=message if preview.refusal is None else preview.refusal.message,
        due=preview.need is ManifestReason.MANY and preview.refusal is None,
        reason=preview.need,
        manifests=files.count,
        bytes=files.bytes,
        needed=files.needed,
        mean_bytes=files.mean_bytes,
    )


def _cluster_view(preview: ClusterPreview) -> ClusterDryRun:
    files = preview.files
    number = _counted(files.unclustered_files, "file")
    message = (
        f"{number} with {files.unclustered_bytes} bytes are not clustered; a run would rewrite "
        f"{files.rewritten_bytes} bytes."
    )
    return ClusterDryRun(
        version=preview.version,
        message=message if preview.refusal is None else preview.refusal.message,
        due=preview.need.is_due and preview.refusal is None,
        reason=preview.need,
        unclustered_files=files.unclustered_files,
        unclustered_bytes=files.unclustered_bytes,
        clustered_bytes=files.clustered_bytes,
        rewritten_bytes=files.rewritten_bytes,
    )


def _jobs_view(result: TableRequestResult) -> TableJobResponse:
    jobs = tuple(TableJobView(id=job.id, action=job.action, outcome=job.outcome) for job in result.jobs)
    refused = "" if result.refusal is None else result.refusal.message
    message = refused or f"{_counted(len(jobs), 'job')}."
    return TableJobResponse(version=result.version, jobs=jobs, message=message)


def _plan_view(preview: VacuumPreview) -> VacuumDryRun:
    orphans = [one for one in preview.deletions if one.is_orphan]
    total = sum(one.size_bytes for one in preview.deletions)
    files = len(preview.deletions)
    message = f"{_counted(files, 'file')} with {total} bytes would be deleted."
    if preview.snapshots:
        message += f" {_counted(preview.snapshots, 'snapshot')} would expire."
    return VacuumDryRun(
        version=preview.version,
        message=f"{message} {preview.left_out}".strip() if preview.refusal is None else preview.refusal.message,
        removed_before_ms=preview.cutoff_ms,
        files=files,
        bytes=total,
        orphan_files=len(orphans),
        orphan_bytes=sum(one.size_bytes for one in orphans),
        deletions=tuple(
            DeletionView(name=one.name, bytes=one.size_bytes, orphan=one.is_orphan)
            for one in preview.deletions[:LISTED_FILES]
        ),
    )
