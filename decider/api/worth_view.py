"""Worth of the rewrites of a table: opens that readers avoided, against what runs used."""

from pydantic import Field

from decider.advice.rewrite_worth import READERS, RewriteWorth, WorthResult
from decider.api.budget_view import UsageView, usage_view
from decider.web.base_model import ResponseModel, Rounded4
from shared.prices import Prices


class WorthView(ResponseModel):
    """Worth of the rewrites of the table in the last week."""

    result: WorthResult = Field(description="Whether the benefit is above the cost, or why that is not judged.")
    text: str = Field(description="The result as a sentence with its figures.")
    hours: Rounded4 = Field(description="Hours that are judged; at most seven days.")
    reads_per_hour: float | None = Field(
        description="Reads per hour: `lakewright.read-weight`, or as reported; null if neither is known."
    )
    opens_avoided: int | None = Field(description="Files that readers did not open; null if reads are not known.")
    saved: UsageView | None = Field(
        description=f"What opening them would have used, at {READERS.open_s:g} core-seconds and a request each; "
        "null as above."
    )
    spent: UsageView = Field(description="What runs on the table used in these hours.")


def worth_view(worth: RewriteWorth, prices: Prices | None) -> WorthView:
    """Show what rewriting was worth."""
    is_known = worth.reads_per_hour is not None
    return WorthView(
        result=worth.result(prices),
        text=worth.sentence(prices),
        hours=worth.hours,
        reads_per_hour=worth.reads_per_hour,
        opens_avoided=worth.opens_avoided if is_known else None,
        saved=usage_view(worth.saved, prices) if is_known else None,
        spent=usage_view(worth.spent, prices),
    )
