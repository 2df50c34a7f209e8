"""Usage of cores and of the store by runs, and its cost at the prices that are set."""

from pydantic import Field

from decider.web.base_model import ResponseModel
from shared.prices import Prices, amount_text
from shared.usage import Usage


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
