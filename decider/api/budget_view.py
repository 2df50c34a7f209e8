"""Usage of cores and of the store by runs, and budgets with what is used of them."""

from collections.abc import Mapping

from pydantic import Field

from decider.store.stored_values import moment
from decider.web.base_model import Moment, ResponseModel
from shared.policy.budgets import BudgetUse
from shared.prices import Prices, Usage, amount_text


class BudgetView(ResponseModel):
    """One amount that jobs may use in a day, a month or 30 days, and what is used of it."""

    scope: str = Field(description="Whose jobs: `table` (`amplification`: what they rewrite), `tenant` or `queue`.")
    name: str = Field(description="Table id or tenant; empty for the queue.")
    budget: str = Field(description="The amount with its unit and period, such as `2 core-hours/day`.")
    used: float | None = Field(
        description="Amount used since the period began, in the same unit, with the most that running jobs may use; "
        "null where nothing can be compared: a currency without prices, or bytes rewritten where none were added."
    )
    used_ratio: float | None = Field(description="The same as a share of the amount; above 1 if a run used too much.")
    renewed_at: Moment = Field(description="End of the period, in UTC.")


def budget_views(found: Mapping[str, tuple[BudgetUse, ...]]) -> tuple[BudgetView, ...]:
    """Show budgets by `<scope>|<name>`."""
    return tuple(
        BudgetView(
            scope=scope,
            name=name,
            budget=one.budget,
            used=one.used,
            used_ratio=None if one.used is None else one.used / one.amount,
            renewed_at=moment(one.renewed_ms),
        )
        for (scope, _, name), uses in ((key.partition("|"), uses) for key, uses in sorted(found.items()))
        for one in uses
    )


class UsageView(ResponseModel):
    """Usage of cores and of the store by runs, and its cost."""

    core_s: float = Field(description="Core-seconds: time of slots, times the cores that each of them has.")
    bytes_read: int = Field(description="Bytes of the files that were replaced.")
    bytes_written: int = Field(description="Bytes of the files that were written.")
    reads: int = Field(description="Read requests: one for each file that was replaced.")
    writes: int = Field(description="Write requests: one for each file that was written and for each commit.")
    cost: str | None = Field(description="Cost with six digits behind the point; null without `LAKEWRIGHT_PRICES`.")
    currency: str | None = Field(description="Currency of the cost; null without `LAKEWRIGHT_PRICES`.")


def usage_view(used: Usage, prices: Prices | None) -> UsageView:
    """Show a usage, with its cost if prices are set."""
    return UsageView(
        core_s=used.core_ms / 1000,
        bytes_read=used.bytes_read,
        bytes_written=used.bytes_written,
        reads=used.reads,
        writes=used.writes,
        cost=amount_text(prices.cost(used)) if prices else None,
        currency=prices.currency if prices else None,
    )
