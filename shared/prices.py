"""Prices of what runs use, in one currency; every amount is exact, so that runs add up to the bill.

Prices are decimal numbers, amounts are fractions of them; they are rounded where they are shown, and nowhere else.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from shared.policy.policy import GIB
from shared.typed_json import JsonObject

_PREFIX = "usage_"


@dataclass(frozen=True, slots=True)
class Usage(JsonObject):
    """Use of cores, in milliseconds of one core, and of the store: bytes and requests.

    Of requests only what grows with the data is counted: a read for each file that is replaced, a write for each file
    that is written and for each commit.
    """

    core_ms: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    reads: int = 0
    writes: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Usage)))

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(*(getattr(self, one.name) - getattr(other, one.name) for one in fields(Usage)))

    def counters(self) -> dict[str, int]:
        """Return the counters of a table, and of all, that a run adds this to."""
        return {_PREFIX + name: count for name, count in self.encode().items()}

    @staticmethod
    def of_counters(counted: Mapping[str, int]) -> "Usage":
        """Return the sum of what runs have added to counters."""
        return Usage(*(counted.get(_PREFIX + one.name, 0) for one in fields(Usage)))


NOTHING_USED = Usage()


MS_PER_HOUR = 3_600_000
REQUESTS = 1_000

GREATEST = Decimal(10) ** 6
"""Prices are below this; a greater one is a slip of the pen."""

PLACES = 12
"""Decimal places of a price at most: a smaller price is a slip of the pen, too."""

AMOUNT_PLACES = 6
"""Decimal places of an amount that is shown."""

_CURRENCY = re.compile(r"[A-Z]{3}")


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a core for an hour, of a GiB read, written, and stored for a month, and of 1,000 requests by kind.

    source: preset that they are based on, empty without one.
    """

    currency: str = "USD"
    core_hour: Decimal = Decimal(0)
    gib_read: Decimal = Decimal(0)
    gib_written: Decimal = Decimal(0)
    gib_month: Decimal = Decimal(0)
    thousand_reads: Decimal = Decimal(0)
    thousand_writes: Decimal = Decimal(0)
    source: str = ""

    def cost(self, used: Usage) -> Fraction:
        """Return what a usage costs, exactly: the cost of a sum is the sum of the costs."""
        return (
            Fraction(self.core_hour) * used.core_ms / MS_PER_HOUR
            + (Fraction(self.gib_read) * used.bytes_read + Fraction(self.gib_written) * used.bytes_written) / GIB
            + (Fraction(self.thousand_reads) * used.reads + Fraction(self.thousand_writes) * used.writes) / REQUESTS
        )

    def month_of(self, stored_bytes: int) -> Fraction:
        """Return what it costs to store so many bytes for a month."""
        return Fraction(self.gib_month) * stored_bytes / GIB


def amount_text(exact: Fraction) -> str:
    """Write an amount with six decimal places, because runs cost fractions of a cent."""
    return f"{Decimal(round(exact * 10**AMOUNT_PLACES)).scaleb(-AMOUNT_PLACES):f}"


PRESETS: Mapping[str, Prices] = {
    # S3 Standard in us-east-1, first tier; a vCPU of Fargate (Linux, x86). Traffic inside of a region is free.
    "aws-2024-12": Prices(
        core_hour=Decimal("0.04048"),
        gib_month=Decimal("0.023"),
        thousand_reads=Decimal("0.0004"),
        thousand_writes=Decimal("0.005"),
    ),
    # Standard storage in us-central1; a vCPU of N2 on demand, without its memory.
    "gcp-2024-12": Prices(
        core_hour=Decimal("0.031611"),
        gib_month=Decimal("0.020"),
        thousand_reads=Decimal("0.0004"),
        thousand_writes=Decimal("0.005"),
    ),
    # What Amazon S3 Tables asked for compaction when it was released: per GB and per 1,000 objects that are processed.
    "s3-tables-2024-12": Prices(gib_read=Decimal("0.05"), gib_month=Decimal("0.0265"), thousand_reads=Decimal("0.004")),
}
"""List prices by source and date. They change: compare them with the provider's own, and with your contract."""

NAMES: Mapping[str, str] = {
    "core-hour": "core_hour",
    "gib-read": "gib_read",
    "gib-written": "gib_written",
    "gib-month": "gib_month",
    "1000-reads": "thousand_reads",
    "1000-writes": "thousand_writes",
}
"""Fields of `Prices` by the names under which people set them."""


def parse_prices(text: str) -> Prices:
    """Read the name of a preset, or a JSON object with prices and perhaps a preset that they change.

    Raises ValueError with what is wrong, and what is expected.
    """
    if not text.lstrip().startswith("{"):
        return _preset(text.strip())
    try:
        given = json.loads(text, parse_float=Decimal, parse_int=Decimal, parse_constant=Decimal)
    except ValueError as problem:
        raise ValueError(f"expected a preset or a JSON object: {problem}") from problem
    base = _preset(given.pop("preset")) if "preset" in given else Prices()
    currency = given.pop("currency", base.currency)
    if not isinstance(currency, str) or not _CURRENCY.fullmatch(currency):
        raise ValueError(f"currency is {currency!r}; expected three capital letters, such as EUR")
    if unknown := sorted(given.keys() - NAMES.keys()):
        raise ValueError(f"unknown price {unknown[0]!r}; expected {', '.join(('preset', 'currency', *NAMES))}")
    if base.source and currency != base.currency:
        raise ValueError(f"the preset {base.source} is in {base.currency}; for {currency}, state all prices instead")
    own = {field: _price(name, given[name]) if name in given else getattr(base, field) for name, field in NAMES.items()}
    return Prices(currency=currency, source=base.source, **own)


def _preset(name: object) -> Prices:
    found = PRESETS.get(name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"no preset {name}; expected {', '.join(PRESETS)}, or a JSON object of prices")
    return Prices(**{one: getattr(found, one) for one in ("currency", *NAMES.values())}, source=str(name))


def _price(name: str, given: object) -> Decimal:
    try:
        price = Decimal(given) if isinstance(given, str | Decimal) else None
    except InvalidOperation:
        price = None
    if price is None or not price.is_finite() or not 0 <= price < GREATEST or _places(price) > PLACES:
        raise ValueError(
            f"{name} is {given!r}; expected a number from 0 to below {GREATEST:,}, with {PLACES} decimal places at most"
        )
    return price


def _places(price: Decimal) -> int:
    exponent = price.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0
