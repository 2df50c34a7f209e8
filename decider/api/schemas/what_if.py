"""What-if over the wire: what to replay, what each rule would have cost, and what is recommended."""

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from decider.api.schemas.tables import PropertyName, PropertyText
from decider.web.base_model import RequestModel, ResponseModel

MAX_COMMITS = 2_000
"""Commits that one request may replay: some seconds of one core; the command line takes more, on its own machine."""


class WhatIfRequest(RequestModel):
    """What things cost, as assumed, and how much history to replay."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"queries_per_hour": 30, "properties": {"lakewright.fan-in": "4"}}, {}]},
    )

    queries_per_hour: float = Field(
        10.0, ge=0, le=1_000_000, allow_inf_nan=False, description="Queries an hour that read the table."
    )
    open_s: float = Field(
        0.05, ge=0, le=3_600, allow_inf_nan=False, description="Core-seconds that a query spends on each file it opens."
    )
    write_s_per_gib: float = Field(
        20.0, ge=0, le=1_000_000, allow_inf_nan=False, description="Core-seconds of rewriting 1 GiB."
    )
    tail_hours: float = Field(
        24.0, ge=0, le=8_760, allow_inf_nan=False, description="Hours that reading goes on after the last commit."
    )
    max_commits: int = Field(MAX_COMMITS, ge=1, le=MAX_COMMITS, description="Newest commits to replay.")
    properties: dict[PropertyName, PropertyText] = Field(
        {},
        max_length=100,
        description="Properties to lay over the policy in force and to replay beside it; `fan-in` is "
        "`lakewright.fan-in`.",
    )


class PolicyTried(ResponseModel):
    """The values of a policy that matter here."""

    enabled: bool = Field(description="Whether anything is rewritten at all.")
    target_bytes: int = Field(description="Target size in bytes.")
    fan_in: int = Field(description="Ratio between neighbouring levels.")
    tolerance: float = Field(description="Tolerated shortfall as a share of the target.")


class CandidateReplayed(PolicyTried):
    """A policy that was replayed."""

    files_mean: float = Field(
        description="Live files, averaged until tail_hours after the last commit, as costs count them."
    )
    bytes_rewritten: int = Field(description="Bytes rewritten.")
    write_cost_s: float = Field(description="Core-seconds of rewriting.")
    read_cost_s: float = Field(description="Core-seconds that queries spend on opening files.")
    cost_s: float = Field(description="Both together.")


class RuleReplayed(ResponseModel):
    """What one rule would have done to the same history."""

    name: str = Field(description="Short name of the rule.")
    title: str = Field(description="The rule in words.")
    files_mean: float = Field(
        description="Live files, averaged until tail_hours after the last commit, as costs count them."
    )
    files_at_end: int = Field(description="Live files when the hours after the last commit are over.")
    max_small_files_per_partition: int = Field(description="Most small files in one cell at any time.")
    jobs: int = Field(description="Rewrites.")
    bytes_rewritten: int = Field(description="Bytes rewritten.")
    write_amplification: float = Field(description="Bytes rewritten per byte added.")
    mean_time_small_s: float = Field(description="Mean time that an added file stays small, in seconds.")
    write_cost_s: float = Field(description="Core-seconds of rewriting.")
    read_cost_s: float = Field(description="Core-seconds that queries spend on opening files.")
    cost_s: float = Field(description="Both together.")
    curve: tuple[tuple[int, int, int, int], ...] = Field(
        description="Points over time: milliseconds since 1970, files, small files, bytes rewritten until then."
    )


class CustomPolicyReplayed(CandidateReplayed):
    """What the properties that were given would have done."""

    properties: dict[str, str] = Field(description="The properties as they were given, with their full names.")


class RewritesSoFar(ResponseModel):
    """What the table's log says was rewritten in that time, by whomever."""

    rewrites: int = Field(description="Commits that rewrote files without changing data.")
    bytes_rewritten: int = Field(description="Bytes that they replaced.")
    files_now: int = Field(description="Live files now.")


class CostModelUsed(ResponseModel):
    """What was taken as the price of writing and reading."""

    write_s_per_gib: float = Field(description="Core-seconds to rewrite 1 GiB.")
    open_s: float = Field(description="Core-seconds that a query spends on one more file.")
    queries_per_hour: float = Field(description="Queries an hour that read the table.")
    tail_hours: float = Field(description="Hours that the files left at the end go on being read.")


class RecommendationView(ResponseModel):
    """The policy of least cost."""

    is_change: bool = Field(description="Whether it is worth changing the policy in force.")
    message: str = Field(description="The recommendation in words, with its reason.")
    properties: dict[str, str] = Field(description="Table properties to set; none where nothing is to be changed.")
    policy: PolicyTried = Field(description="The policy to have.")
    cost_s: float = Field(description="What it costs, in core-seconds.")
    current_cost_s: float = Field(description="What the policy in force costs.")
    no_compaction_cost_s: float = Field(description="What it costs never to rewrite anything.")
    curve: tuple[CandidateReplayed, ...] = Field(description="Cost by target size, the other values as in force.")


_COSTS: JsonDict = {"write_cost_s": 4.1, "read_cost_s": 9.9, "cost_s": 14.0}
_POLICY: JsonDict = {"enabled": True, "target_bytes": 134217728, "fan_in": 8, "tolerance": 0.15}
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
        "message": "Keep the policy: nothing that was tried is 5% cheaper.",
        "properties": {},
        "policy": _POLICY,
        "cost_s": 14.0,
        "current_cost_s": 14.0,
        "no_compaction_cost_s": 310.5,
        "curve": [{**_POLICY, "files_mean": 18.4, "bytes_rewritten": 220200960, **_COSTS}],
    },
}


class WhatIfResponse(ResponseModel):
    """The same history under each rule, and a recommendation."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_EXAMPLE]})

    location: str = Field(description="Where the table is.")
    versions: tuple[int, int] = Field(description="First and last version replayed.")
    commits: int = Field(description="Commits replayed.")
    files_added: int = Field(description="Files that they added.")
    bytes_added: int = Field(description="Bytes that they added.")
    span_s: int = Field(description="Seconds between the first and the last of them.")
    actual: RewritesSoFar = Field(description="What was really rewritten in that time.")
    cost_model: CostModelUsed = Field(description="What writing and reading were taken to cost.")
    policy: PolicyTried = Field(description="The policy in force, which the rules were replayed with.")
    rules: tuple[RuleReplayed, ...] = Field(
        description="Left alone first, then Lakewright, then others' rules; last what properties were given for."
    )
    custom: CustomPolicyReplayed | None = Field(
        description="The properties that were given, and their cost; null without any."
    )
    notes: tuple[str, ...] = Field(description="What holds in production and not here, or is not as it may seem.")
    recommendation: RecommendationView = Field(description="What to do.")
