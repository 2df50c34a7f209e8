"""Budgets: what the jobs of a table, of a tenant or of a whole queue may use in a day or a month of UTC.

    2 core-hours/day; 40 GiB/day; 20 USD/month

The queue's scripts keep them (`shared/queue/lua/include/budget.lua`): a job starts only if the most that it is
predicted to use fits into all of them. An amount limits a sum of the figures of a usage, each times a weight; the
weights of money are prices, which the queue keeps once for all budgets.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from shared.prices import Prices, Usage

MAX_BUDGETS = 4
"""Amounts of one budget at most: all are computed for each claim of a job."""

PRICES_FIELD = "prices"
"""Name of the prices beside the scopes of budgets."""

AMPLIFICATION_SCOPE, EXEMPTION_SCOPE = "amplification", "exempts"
"""Beside the scopes of budgets: the limit of what is rewritten per byte added to a table, and what is exempt."""

AMPLIFICATION_DAYS = 30
"""Days of UTC, today included, whose bytes rewritten are limited by those added in them."""

_AMOUNT = re.compile(
    r"(?P<number>\d{1,12}(?:\.\d{1,6})?)\s*(?P<unit>[A-Za-z-]+)\s*/\s*(?P<period>day|month)", re.IGNORECASE
)
_EXAMPLE = "2 core-hours/day"
_GIB = 1 << 30
_UNITS: Mapping[str, tuple[int, tuple[int, int, int, int, int]]] = {
    "core-hours": (3_600_000, (1, 0, 0, 0, 0)),
    "core-seconds": (1_000, (1, 0, 0, 0, 0)),
    "GiB": (_GIB, (0, 1, 1, 0, 0)),
    "requests": (1, (0, 0, 0, 1, 1)),
}
"""Units by name: what one of them is in the figures of a usage, and the weights of these, in their order."""

_CURRENCY = re.compile(r"[A-Z]{3}")
_ONE_OF_EACH = tuple(Usage(*(int(place == figure) for place in range(5))) for figure in range(5))


@dataclass(frozen=True, slots=True)
class Budget:
    """An amount in a unit, one of the known ones or a currency, for a `day` or a `month`."""

    amount: Fraction
    unit: str
    period: str

    def __str__(self) -> str:
        return f"{float(self.amount):.12g} {self.unit}/{self.period}"

    @property
    def is_money(self) -> bool:
        """Return whether it needs prices."""
        return self.unit not in _UNITS

    def in_queue(self) -> str:
        """Return the text that the queue's scripts read."""
        if self.is_money:
            return f"{float(self.amount)!r}/{self.period}/{self.unit}"
        factor, weights = _UNITS[self.unit]
        return f"{float(self.amount * factor)!r}/{self.period}/{','.join(map(str, weights))}"

    def renewed_ms(self, now_ms: int) -> int:
        """Return when it begins again, in milliseconds since 1970."""
        now = datetime.fromtimestamp(now_ms / 1000, UTC)
        if self.period == "day":
            return (now_ms // _DAY_MS + 1) * _DAY_MS
        later = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        later = later.replace(year=now.year + now.month // 12, month=now.month % 12 + 1)
        return round(later.timestamp()) * 1000


_DAY_MS = 86_400_000


def parse_budgets(text: str) -> tuple[Budget, ...]:
    """Read amounts, separated by semicolons. Raises ValueError with what is wrong, and what is expected."""
    parts = [part.strip() for part in text.split(";") if part.strip()]
    if not 1 <= len(parts) <= MAX_BUDGETS:
        raise ValueError(f"expected 1 to {MAX_BUDGETS} amounts such as {_EXAMPLE}, separated by semicolons")
    return tuple(map(_budget, parts))


def encode_budgets(text: str) -> str:
    """Return the text that the queue's scripts read for budgets as people write them; empty for an empty one."""
    return f"{';'.join(one.in_queue() for one in parse_budgets(text))}|{text}" if text else ""


def as_configured(encoded: str) -> str:
    """Return what `encode_budgets` was given."""
    return encoded.partition("|")[2]


def encode_prices(prices: Prices | None) -> str:
    """Return the prices as the queue's scripts read them: currency, and the price of one of each figure."""
    if prices is None:
        return ""
    return f"{prices.currency}/{','.join(repr(float(prices.cost(one))) for one in _ONE_OF_EACH)}"


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """A budget and what is used of its amount, running jobs with the most that they may use.

    used: None where nothing can be compared: a currency without prices, or a table to which nothing was added.
    """

    budget: str
    amount: float
    used: float | None
    renewed_ms: int


def budget_uses(encoded: str, spent: str, prices: str, now_ms: int) -> tuple[BudgetUse, ...]:
    """Return the use of budgets as the queue holds them: the budgets of a scope, what it has spent, and the prices."""
    figures = [float(one) for one in spent.split(",")] if spent else []
    return tuple(
        BudgetUse(str(one), float(one.amount), _used(one, figures, prices, now_ms), one.renewed_ms(now_ms))
        for one in parse_budgets(as_configured(encoded))
    )


def amplification_use(limit: str, rewritten: str, ingested: str, now_ms: int) -> BudgetUse:
    """Return bytes rewritten per byte added to a table in 30 days, of texts as the queue holds them, and the limit."""
    today = now_ms // _DAY_MS
    done, added = (_of_days(text, today - AMPLIFICATION_DAYS) for text in (rewritten, ingested))
    used = done / added if added else None if done else 0.0
    return BudgetUse(
        f"{float(limit):g} bytes rewritten per byte added/{AMPLIFICATION_DAYS} days",
        float(limit),
        used,
        (today + 1) * _DAY_MS,
    )


def _of_days(text: str, after: int) -> int:
    return sum(int(count) for day, count in re.findall(r"(\d+),(\d+)", text) if int(day) > after)


def _used(budget: Budget, figures: Sequence[float], prices: str, now_ms: int) -> float | None:
    currency, _, weights_of_money = prices.partition("/")
    if budget.is_money and currency != budget.unit:
        return None
    is_day = budget.period == "day"
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    begun = now_ms // _DAY_MS if is_day else now.year * 12 + now.month - 1
    first = 2 if is_day else 7
    if not figures or figures[0 if is_day else 1] < begun:
        return 0.0
    factor, weights = (1, tuple(map(float, weights_of_money.split(",")))) if budget.is_money else _UNITS[budget.unit]
    return sum(figure * weight for figure, weight in zip(figures[first : first + 5], weights, strict=True)) / factor


def _budget(text: str) -> Budget:
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise ValueError(f"expected an amount such as {_EXAMPLE} or 20 USD/month, found {text[:60]!r}")
    unit = next((name for name in _UNITS if name.lower() == found["unit"].lower()), found["unit"])
    if unit not in _UNITS and not _CURRENCY.fullmatch(unit):
        raise ValueError(f"unknown unit {unit!r}; expected {', '.join(_UNITS)}, or a currency such as EUR")
    amount = Fraction(found["number"])
    if not amount:
        raise ValueError("expected an amount above 0; to stop all work, set enabled to false")
    return Budget(amount, unit, found["period"].lower())
