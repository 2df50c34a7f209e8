"""Status of an index in a response, which the command line shows, too."""

from dataclasses import asdict

from decider.api.schemas.table_index import (
    ForecastStepView,
    IndexForecastView,
    IndexRevisionView,
    NextRewriteView,
    SampleView,
    TableIndexResponse,
)
from decider.web.base_model import moment
from shared.index_status import IndexForecast, IndexRevision, IndexStatus


def index_view(found: IndexStatus) -> TableIndexResponse:
    """Show the status of an index."""
    oldest_ms, following, sample = found.unindexed.oldest_ms, found.rewrites.next, found.rewrites.sample
    return TableIndexResponse(
        kind=found.kind,
        version=found.version,
        last_revision=found.last_revision,
        revisions=tuple(map(_revision_view, found.revisions)),
        files_by_class=dict(found.files_by_class),
        unindexed_bytes=found.unindexed.bytes,
        oldest_unindexed_at=None if oldest_ms is None else moment(oldest_ms),
        first_problem=found.first_problem,
        refusal="" if found.refusal is None else found.refusal.message,
        ignored_properties=tuple(f"{one.property} = {one.value}: {one.reason}" for one in found.issues),
        next=None
        if following is None
        else NextRewriteView(strategy=following.strategy, bytes=following.bytes, files=following.paths),
        sample=None if sample is None else SampleView(**asdict(sample)),
        forecasts=tuple(map(_forecast_view, found.rewrites.forecasts)),
    )


def _forecast_view(forecast: IndexForecast) -> IndexForecastView:
    steps = tuple(
        ForecastStepView(**asdict(step) | {"fragmentation": round(step.fragmentation, 2)}) for step in forecast.steps
    )
    return IndexForecastView(
        selection=forecast.selection,
        budget_bytes=forecast.budget_bytes,
        bytes=sum(step.bytes for step in steps),
        complete=forecast.is_complete,
        steps=steps,
    )


def _revision_view(revision: IndexRevision) -> IndexRevisionView:
    metrics = revision.metrics
    return IndexRevisionView(
        **asdict(metrics)
        | {
            "id": revision.id,
            "desired_cube_size": revision.desired_cube_size,
            "columns": revision.columns,
            "fanout": round(metrics.fanout, 2),
            "fragmentation": round(metrics.fragmentation, 2),
            "blocks_per_file": round(metrics.blocks_per_file, 2),
            "eligible_groups": revision.eligible_groups,
            "eligible_bytes": revision.eligible_bytes,
        }
    )
