"""Advice as the API shows it."""

from collections.abc import Sequence
from statistics import fmean

from decider.advice.analysis import former_values
from decider.api.schemas.advice import AdviceList, AdviceView, JudgementView, ProofView, ReplayedCostView
from decider.store.advice_records import Advice, Analysis, Judgement, Proof, ReplayedCost
from decider.web.base_model import moment
from shared.formats.registry import support_of
from shared.sql_text import set_properties
from shared.table import TableRef


def advice_view(advice: Advice, table: TableRef) -> AdviceView:
    """Return an advice for a table."""
    return AdviceView(
        id=advice.id,
        table=table.name,
        at=moment(advice.at_ms),
        status=advice.status.value,
        changed_at=moment(advice.changed_ms),
        by_owner=advice.by_owner,
        job=advice.job,
        problem=advice.problem,
        change=dict(advice.change),
        former=former_values(advice),
        statement=statement(advice, table),
        saved_s_per_day=round(advice.proof.saved_s_per_day, 1),
        saved_share=round(advice.proof.saved_share, 4),
        message=advice.message,
        proof=_proof(advice.proof),
        judgement=None if advice.judgement is None else _judgement(advice.judgement),
    )


def statement(advice: Advice, table: TableRef) -> str:
    """Return the SQL that makes a change in the table's own properties, as Spark reads it; empty if there is none."""
    return set_properties(table.location, advice.change, support_of(advice.format).sql_paths)


def advice_list(
    shown: Sequence[tuple[Advice, TableRef]], every: Sequence[Advice], done: Sequence[Analysis]
) -> AdviceList:
    """Return ranked advice; `every` advice there is, and the last analyses of all tables."""
    ranked = sorted(shown, key=lambda one: (-one[0].proof.saved_s_per_day, one[1].name))
    judged = [one.judgement for one in every if one.judgement is not None]
    return AdviceList(
        advice=tuple(advice_view(advice, table) for advice, table in ranked),
        tables_analyzed=len(done),
        tables_failed=sum(bool(one.problem) for one in done),
        judged=len(judged),
        predicted_share=round(fmean(one.predicted_share for one in judged), 4) if judged else None,
        saved_share=round(fmean(one.saved_share for one in judged), 4) if judged else None,
    )


def _proof(proof: Proof) -> ProofView:
    return ProofView(
        versions=(proof.first_version, proof.last_version),
        commits=proof.commits,
        hours=round(proof.hours, 2),
        queries_per_hour=proof.queries_per_hour,
        before=_cost(proof.current),
        after=_cost(proof.advised),
        newer_half_share=round(proof.newer_share, 4),
    )


def _cost(one: ReplayedCost) -> ReplayedCostView:
    return ReplayedCostView(
        cost_s=round(one.cost_s, 3),
        write_cost_s=round(one.write_s, 3),
        read_cost_s=round(one.read_s, 3),
        files_mean=round(one.files_mean, 2),
        bytes_rewritten=one.bytes_rewritten,
    )


def _judgement(one: Judgement) -> JudgementView:
    return JudgementView(
        at=moment(one.at_ms),
        commits=one.commits,
        hours=round(one.hours, 2),
        predicted_share=round(one.predicted_share, 4),
        saved_share=round(one.saved_share, 4),
        former_cost_s=round(one.former_s, 3),
        advised_cost_s=round(one.advised_s, 3),
        actual_cost_s=round(one.actual_s, 3),
    )
