"""Budgets and what is used of them."""

from collections.abc import Mapping

from pydantic import Field

from decider.store.stored_values import moment
from decider.web.base_model import Moment, ResponseModel
from shared.policy.budgets import BudgetUse


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
