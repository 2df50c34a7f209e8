"""Schemas of what-if: request, results by rule, and the recommendation."""

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from decider.api.schemas.tables import PropertyName, PropertyText
from decider.web.base_model import RequestModel, ResponseModel

MAX_COMMITS = 2_000
"""Maximum commits per request: some seconds of one core; the command line replays more, on its own machine."""

MAX_SORT_KEYS = 4
"""Columns per request: the log is read once, and sorts are planned, for each."""


ColumnName = Annotated[str, Field(min_length=1, max_length=255)]
"""Name of a column at the top level, in any case."""


class WhatIfRequest(RequestModel):
    """Cost assumptions and the amount of history to replay."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"queries_per_hour": 30, "properties": {"lakewright.fan-in": "4"}}, {}]},
    )

    queries_per_hour: float = Field(
        10.0, ge=0, le=1_000_000, allow_inf_nan=False, description="Queries per hour that read the table."
    )
    open_s: float = Field(0.05, ge=0, le=3_600, allow_inf_nan=False, description="Core-seconds to open one file.")
    write_s_per_gib: float = Field(
        20.0, ge=0, le=1_000_000, allow_inf_nan=False, description="Core-seconds to rewrite 1 GiB."
    )
    tail_hours: float = Field(
        24.0, ge=0, le=8_760, allow_inf_nan=False, description="Hours of reads after the last commit."
    )
    max_commits: int = Field(
        MAX_COMMITS, ge=1, le=MAX_COMMITS, description="Maximum number of commits to replay, newest first."
    )
    properties: dict[PropertyName, PropertyText] = Field(
        {},
        max_length=100,
        description="Property overrides to replay beside the policy in effect; `fan-in` means `lakewright.fan-in`.",
    )
    sort_keys: tuple[ColumnName, ...] = Field(
        (),
        max_length=MAX_SORT_KEYS,
        description="Columns whose ranges are counted in the response's `sort_keys`; default: the table's sort key.",
    )


class PolicyTried(ResponseModel):
    """Values of a replayed policy."""

    enabled: bool = Field(description="Whether the policy rewrites files.")
    target_bytes: int = Field(description="Target file size in bytes.")
    fan_in: int = Field(description="Ratio between neighboring levels.")
    tolerance: float = Field(description="Tolerated shortfall as a share of the target.")
    min_input_files: int = Field(description="Fewest files of a rewrite below the target.")


class CandidateReplayed(PolicyTried):
    """A replayed policy."""

    files_mean: float = Field(description="Mean number of live files until `tail_hours` after the last commit.")
    bytes_rewritten: int = Field(description="Bytes rewritten.")
    write_cost_s: float = Field(description="Core-seconds of rewriting.")
    read_cost_s: float = Field(description="Core-seconds of opening files.")
    cost_s: float = Field(description="Total cost in core-seconds.")


class RuleReplayed(ResponseModel):
    """Replay of the history under one rule."""

    name: str = Field(description="Machine-readable name of the rule.")
    title: str = Field(description="Display name of the rule.")
    files_mean: float = Field(description="Mean number of live files until `tail_hours` after the last commit.")
    files_at_end: int = Field(description="Number of live files at the end.")
    max_small_files_per_partition: int = Field(description="Maximum number of small files in one partition.")
    jobs: int = Field(description="Number of rewrites.")
    bytes_rewritten: int = Field(description="Bytes rewritten.")
    write_amplification: float = Field(description="Bytes rewritten per byte added.")
    mean_time_small_s: float = Field(description="Mean time for which an added file stays small, in seconds.")
    write_cost_s: float = Field(description="Core-seconds of rewriting.")
    read_cost_s: float = Field(description="Core-seconds of opening files.")
    cost_s: float = Field(description="Total cost in core-seconds.")
    curve: tuple[tuple[int, int, int, int], ...] = Field(
        description="Time series: milliseconds since 1970, files, small files, cumulative bytes rewritten."
    )


class CustomPolicyReplayed(CandidateReplayed):
    """Replay under the property overrides of the request."""

    properties: dict[str, str] = Field(description="Property overrides with full names.")


class RewritesSoFar(ResponseModel):
    """Actual rewrites of the period, by any engine."""

    rewrites: int = Field(description="Number of commits that rewrote files without changing data.")
    bytes_rewritten: int = Field(description="Bytes replaced by them.")
    files_now: int = Field(description="Number of live files now.")


class CostModelUsed(ResponseModel):
    """Cost assumptions of the replay."""

    write_s_per_gib: float = Field(description="Core-seconds to rewrite 1 GiB.")
    open_s: float = Field(description="Core-seconds to open one file.")
    queries_per_hour: float = Field(description="Queries per hour that read the table.")
    tail_hours: float = Field(description="Hours of reads after the last commit.")


class StorageHeld(ResponseModel):
    """Bytes that the table would have held with a vacuum of this retention."""

    retention_s: int = Field(description="Retention of removed files in seconds.")
    mean_bytes: int = Field(description="Mean bytes held over the period.")
    peak_bytes: int = Field(description="Most bytes held at any moment.")
    end_bytes: int = Field(description="Bytes held at the last commit.")


class RangeRead(ResponseModel):
    """Files read by ranges of one size: the mean over 100 of them, from the least key to the greatest."""

    share: float = Field(description="Share of the rows that each range holds.")
    files_read_now: float = Field(description="Mean number of files read from the table as it is.")
    files_read_merged: float = Field(description="The same once small files are merged without an order.")
    files_read_sorted: float | None = Field(
        description="The same once they are merged and sorted by the column; null for more than 2,000 merged files."
    )


class SortKeyReads(ResponseModel):
    """What sorting by one column would save queries by ranges of it, counted on the live files' minima and maxima."""

    column: str = Field(description="Name of the column.")
    files_now: int = Field(description="Number of live files.")
    files_merged: int = Field(description="Number of files once small files are merged.")
    files_sorted: int | None = Field(
        description="Number of files once they are merged and sorted; null for more than 2,000 merged files."
    )
    files_without_range: int = Field(description="Live files without minimum and maximum; every range reads them.")
    bytes_sorted: int | None = Field(
        description="Bytes sorted again after the merges until `max-depth` holds; null as `files_sorted` is."
    )
    ranges: tuple[RangeRead, ...] = Field(description="Files read by size of the range; empty if no file has a range.")


class RecommendationView(ResponseModel):
    """Policy with the lowest cost."""

    is_change: bool = Field(description="Whether a change of the policy in effect is recommended.")
    message: str = Field(description="Human-readable recommendation.")
    properties: dict[str, str] = Field(description="Table properties to set; empty if no change is recommended.")
    policy: PolicyTried = Field(description="Recommended policy.")
    cost_s: float = Field(description="Cost of the recommended policy in core-seconds.")
    current_cost_s: float = Field(description="Cost of the policy in effect in core-seconds.")
    no_compaction_cost_s: float = Field(description="Cost without any rewrite in core-seconds.")
    curve: tuple[CandidateReplayed, ...] = Field(description="Cost by target size, other values as in effect.")


_COSTS: JsonDict = {"write_cost_s": 4.1, "read_cost_s": 9.9, "cost_s": 14.0}
_POLICY: JsonDict = {"enabled": True, "target_bytes": 134217728, "fan_in": 8, "tolerance": 0.15, "min_input_files": 8}
_EXAMPLE: JsonDict = {
    "location": "s3://lake/sales/orders",
    "versions": [120, 520],
    "commits": 400,
    "files_added": 1600,
    "bytes_added": 167772160,
    "span_s": 86400,
    "actual": {"rewrites": 2, "bytes_rewritten": 83886080, "files_now": 904},
    "cost_model": {"write_s_per_gib": 20.0, "open_s": 0.05, "queries_per_hour": 10.0, "tail_hours": 24.0},
    "policy": _POLICY,
    "storage": [
        {"retention_s": 0, "mean_bytes": 90000000, "peak_bytes": 184549376, "end_bytes": 167772160},
        {"retention_s": 604800, "mean_bytes": 130000000, "peak_bytes": 251658240, "end_bytes": 251658240},
    ],
    "sort_keys": [
        {
            "column": "customer_id",
            "files_now": 904,
            "files_merged": 2,
            "files_sorted": 2,
            "files_without_range": 0,
            "bytes_sorted": 0,
            "ranges": [
                {"share": 0.01, "files_read_now": 904.0, "files_read_merged": 2.0, "files_read_sorted": 1.01},
            ],
        }
    ],
    "rules": [
        {
            "name": "lakewright",
            "title": "Lakewright",
            "files_mean": 18.4,
            "files_at_end": 21,
            "max_small_files_per_partition": 22,
            "jobs": 71,
            "bytes_rewritten": 220200960,
            "write_amplification": 1.31,
            "mean_time_small_s": 5020.5,
            "curve": [[1767225600000, 4, 4, 0], [1767312000000, 21, 20, 220200960]],
            **_COSTS,
        }
    ],
    "custom": None,
    "notes": [],
    "recommendation": {
        "is_change": False,
        "message": "Keep the policy: no candidate is 5% cheaper.",
        "properties": {},
        "policy": _POLICY,
        "cost_s": 14.0,
        "current_cost_s": 14.0,
        "no_compaction_cost_s": 310.5,
        "curve": [{**_POLICY, "files_mean": 18.4, "bytes_rewritten": 220200960, **_COSTS}],
    },
}


class OrderTried(ResponseModel):
    """An order, and what filters read of it."""

    column: str = Field(description="Column.")
    share_read: float = Field(description="Mean share of the bytes that the filters read.")


class SortAdviceView(ResponseModel):
    """Orders compared by recorded filters, with rows spread evenly between the bounds of each file."""

    column: str | None = Field(description="Advised column; null if none saves a tenth of the bytes.")
    properties: dict[str, str] = Field(description="Properties that sort the table by it.")
    share_read_now: float = Field(description="Mean share of the bytes that the filters read now.")
    candidates: tuple[OrderTried, ...] = Field(description="Compared columns, best first.")
    filters: int = Field(description="Number of different filters.")
    rows: int = Field(description="Number of rows compared.")
    is_sampled: bool = Field(description="Whether rows were read from files; a decider reads none.")
    left_out: tuple[str, ...] = Field(description="Columns without comparable bounds, and partition columns.")


class WhatIfResponse(ResponseModel):
    """Replay of one history under several rules, and a recommendation."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_EXAMPLE]})

    location: str = Field(description="Table location.")
    versions: tuple[int, int] = Field(description="First and last version replayed.")
    commits: int = Field(description="Number of commits replayed.")
    files_added: int = Field(description="Number of files added.")
    bytes_added: int = Field(description="Bytes added.")
    span_s: int = Field(description="Seconds between the first and the last commit.")
    actual: RewritesSoFar = Field(description="Actual rewrites of the period.")
    cost_model: CostModelUsed = Field(description="Cost assumptions.")
    policy: PolicyTried = Field(description="Policy in effect, used for the rules.")
    storage: tuple[StorageHeld, ...] = Field(
        description="Bytes held by retention, with the rewrites of the log as they were; orphans are not known."
    )
    sort_keys: tuple[SortKeyReads, ...] = Field(description="Files read by ranges of sort keys, one entry per column.")
    sort_advice: SortAdviceView | None = Field(
        None, description="Orders compared by the filters of reported reads; null if none were reported."
    )
    rules: tuple[RuleReplayed, ...] = Field(
        description="Results by rule: no compaction, Lakewright, other engines' rules, and the property overrides."
    )
    custom: CustomPolicyReplayed | None = Field(description="Cost under the property overrides; null without any.")
    notes: tuple[str, ...] = Field(description="Limits of the replay.")
    recommendation: RecommendationView = Field(description="Recommendation.")
