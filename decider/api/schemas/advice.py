"""Schemas of advice: the change, its proof, what became of it, and how it turned out."""

from typing import Literal

from pydantic import AwareDatetime, ConfigDict, Field
from pydantic.config import JsonDict

from decider.web.base_model import RequestModel, ResponseModel

StatusName = Literal["open", "applying", "dismissed", "applied", "judged"]


class ApplyRequest(RequestModel):
    """Request to apply an advice."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"dry_run": True}, {"override": True}]},
    )

    dry_run: bool = Field(
        default=False, description="Check the request and show `statement` without changing anything."
    )
    override: bool = Field(
        default=False, description="Set overrides of the registration instead of the table's own properties."
    )


class ReplayedCostView(ResponseModel):
    """Cost of the replayed commits under one policy, in core-seconds."""

    cost_s: float = Field(description="Total cost in core-seconds.")
    write_cost_s: float = Field(description="Core-seconds of rewriting.")
    read_cost_s: float = Field(description="Core-seconds of opening files.")
    files_mean: float = Field(description="Mean number of live files.")
    bytes_rewritten: int = Field(description="Bytes rewritten.")


class ProofView(ResponseModel):
    """Replays that the advice rests on."""

    versions: tuple[int, int] = Field(description="First and last version replayed.")
    commits: int = Field(description="Number of commits replayed.")
    hours: float = Field(description="Hours from the first commit to the analysis.")
    queries_per_hour: float = Field(description="Assumed queries per hour that read the table.")
    before: ReplayedCostView = Field(description="Replay under the policy in effect.")
    after: ReplayedCostView = Field(description="Replay under the advised policy.")
    newer_half_share: float = Field(description="Saved share of the cost over the newer half of the commits alone.")


class JudgementView(ResponseModel):
    """What happened since the advice was applied, over the commits since."""

    at: AwareDatetime | None = Field(description="Time of the judgement.")
    commits: int = Field(description="Number of commits since the change.")
    hours: float = Field(description="Hours between the first and the last of them.")
    predicted_share: float = Field(description="Share of the cost that the advice promised to save.")
    saved_share: float = Field(description="Share of the cost that was saved; negative if the table costs more.")
    former_cost_s: float = Field(description="Cost under the former policy in core-seconds, by replay.")
    advised_cost_s: float = Field(description="Cost under the advised policy in core-seconds, by replay.")
    actual_cost_s: float = Field(description="Cost in core-seconds by the table's log, rewrites included.")


_PROOF: JsonDict = {
    "versions": [1200, 1700],
    "commits": 500,
    "hours": 41.7,
    "queries_per_hour": 10.0,
    "before": {
        "cost_s": 224.4,
        "write_cost_s": 31.2,
        "read_cost_s": 193.2,
        "files_mean": 19.3,
        "bytes_rewritten": 1675037245,
    },
    "after": {
        "cost_s": 121.6,
        "write_cost_s": 60.1,
        "read_cost_s": 61.5,
        "files_mean": 6.1,
        "bytes_rewritten": 3226568294,
    },
    "newer_half_share": 0.35,
}
_EXAMPLE: JsonDict = {
    "id": "5f0c9a1be2d4",
    "table": "sales.orders",
    "at": "2026-01-02T02:10:00Z",
    "status": "open",
    "changed_at": None,
    "by_owner": False,
    "job": "",
    "problem": "",
    "change": {"lakewright.target-file-size": "256MiB", "lakewright.fan-in": "4"},
    "former": {"lakewright.target-file-size": "134217728", "lakewright.fan-in": ""},
    "statement": "ALTER TABLE delta.`s3://lake/sales/orders` SET TBLPROPERTIES "
    "('lakewright.target-file-size' = '256MiB', 'lakewright.fan-in' = '4')",
    "saved_s_per_day": 45.2,
    "saved_share": 0.35,
    "message": "Set lakewright.target-file-size=256MiB, lakewright.fan-in=4.",
    "proof": _PROOF,
    "judgement": None,
}


class AdviceView(ResponseModel):
    """A change of a table's policy that would have served it better."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_EXAMPLE]})

    id: str = Field(description="Id of the change; the same change of the same table has the same id.")
    table: str = Field(description="Table name.")
    at: AwareDatetime | None = Field(description="Time of the analysis.")
    status: StatusName = Field(
        description="`open`, `applying` while a job is to alter the table, `dismissed`, `applied`, or `judged` once "
        "enough was committed since it was applied."
    )
    changed_at: AwareDatetime | None = Field(description="Time at which it was applied or dismissed; null if open.")
    by_owner: bool = Field(description="Whether the owner changed the table's own properties, without Lakewright.")
    job: str = Field(description="Job that alters the table; empty if there is none.")
    problem: str = Field(description="Why the last attempt to alter the table failed; empty if none did.")
    change: dict[str, str] = Field(description="Properties to set.")
    former: dict[str, str] = Field(description="Values of these properties before; empty for a fan-in that is fitted.")
    statement: str = Field(
        description="SQL statement that makes the change in the table's own properties; empty if Spark's SQL has no "
        "name for the table, as for one of Iceberg without a catalog."
    )
    saved_s_per_day: float = Field(description="Core-seconds per day that the change promises to save.")
    saved_share: float = Field(
        description="Promised share of the cost: the smaller one of all commits and of the newer half."
    )
    message: str = Field(description="Human-readable advice.")
    proof: ProofView = Field(description="Figures of the replays.")
    judgement: JudgementView | None = Field(description="What happened since it was applied; null until then.")


class AdviceList(ResponseModel):
    """Advice for all tables, largest saving first."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "advice": [_EXAMPLE],
                    "tables_analyzed": 412,
                    "tables_failed": 2,
                    "judged": 3,
                    "predicted_share": 0.42,
                    "saved_share": 0.39,
                }
            ]
        },
    )

    advice: tuple[AdviceView, ...] = Field(description="Advice, largest saving per day first.")
    tables_analyzed: int = Field(description="Number of tables whose history was analyzed.")
    tables_failed: int = Field(description="Number of them whose log could not be read at the last analysis.")
    judged: int = Field(description="Number of applied changes that were judged.")
    predicted_share: float | None = Field(description="Mean share of the cost that these promised to save.")
    saved_share: float | None = Field(description="Mean share of the cost that these saved.")


class TableAdvice(ResponseModel):
    """Advice for one table, and its last analysis."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {"advice": _EXAMPLE, "analyzed_at": "2026-01-02T02:10:00Z", "analyzed_version": 1700, "problem": ""}
            ]
        },
    )

    advice: AdviceView | None = Field(description="Advice; null if no change would have saved enough.")
    analyzed_at: AwareDatetime | None = Field(description="Time of the last analysis; null if there was none.")
    analyzed_version: int | None = Field(description="Version at the last analysis.")
    problem: str = Field(description="Why the last analysis failed; empty if it did not.")
