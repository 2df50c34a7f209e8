"""Budgets as people write them, as the queue holds them, and what is shown of their use."""

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import pytest

from shared.policy.budgets import (
    Budget,
    amplification_use,
    as_configured,
    budget_uses,
    encode_budgets,
    encode_prices,
    parse_budgets,
)
from shared.policy.parsers import budgets
from shared.prices import PRESETS, Prices, Usage


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 core-hours/day", Budget(Fraction(2), "core-hours", "day")),
        ("0.5 gib / Month", Budget(Fraction(1, 2), "GiB", "month")),
        ("1000requests/day", Budget(Fraction(1000), "requests", "day")),
        ("20 EUR/month", Budget(Fraction(20), "EUR", "month")),
    ],
)
def test_an_amount_has_a_unit_and_a_period(text: str, expected: Budget) -> None:
    assert parse_budgets(text) == (expected,)
    assert parse_budgets(str(expected)) == (expected,)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1 to 4 amounts"),
        ("1 GiB/day;" * 5, "1 to 4 amounts"),
        ("2 core-hours", "expected an amount such as 2 core-hours/day"),
        ("2 core-hours/week", "expected an amount such as 2 core-hours/day"),
        ("2 eggs/day", "unknown unit 'eggs'; expected core-hours"),
        ("0 GiB/day", "above 0; to stop all work, set enabled to false"),
    ],
)
def test_what_is_no_budget_is_refused_with_what_is_expected(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_budgets(text)


def test_a_property_keeps_the_text_and_none_is_no_budget() -> None:
    assert budgets(" 2 core-hours/day;1 GiB/month ") == "2 core-hours/day;1 GiB/month"
    assert budgets("None") is None


def test_the_queue_reads_limits_with_weights_or_a_currency() -> None:
    text = "2 core-hours/day; 20 USD/month"
    assert encode_budgets(text) == f"7200000.0/day/1,0,0,0,0;20.0/month/USD|{text}"
    assert as_configured(encode_budgets(text)) == text
    assert encode_budgets("") == encode_prices(None) == ""


@pytest.mark.parametrize("preset", PRESETS)
def test_the_queue_weighs_a_usage_as_its_price(preset: str) -> None:
    prices, used = PRESETS[preset], Usage(3_600_000, 1 << 31, 1 << 30, 1_500, 700)
    currency, _, weights = encode_prices(prices).partition("/")
    figures = (used.core_ms, used.bytes_read, used.bytes_written, used.reads, used.writes)
    cost = sum(float(weight) * figure for weight, figure in zip(weights.split(","), figures, strict=True))
    assert currency == prices.currency
    assert cost == pytest.approx(float(prices.cost(used)), rel=1e-12)


NOW_MS = round(datetime(2027, 12, 31, 12, tzinfo=UTC).timestamp() * 1000)
TODAY, MONTH = NOW_MS // 86_400_000, 2027 * 12 + 11


@pytest.mark.parametrize(
    ("text", "spent", "used"),
    [
        ("2 core-hours/day", f"{TODAY},{MONTH},3600000,0,0,0,0,9,9,9,9,9", 1.0),
        ("2 core-hours/day", f"{TODAY - 1},{MONTH},3600000,0,0,0,0,9,9,9,9,9", 0.0),
        ("2 GiB/month", f"{TODAY - 1},{MONTH},9,9,9,9,9,9,{1 << 29},{1 << 30},9,9", 1.5),
        ("2 GiB/month", f"{TODAY - 40},{MONTH - 1},9,9,9,9,9,9,{1 << 29},{1 << 30},9,9", 0.0),
        ("90 requests/day", f"{TODAY},{MONTH},9,9,9,20,3,0,0,0,0,0", 23.0),
        ("1 USD/day", f"{TODAY},{MONTH},7200000,0,0,0,0,0,0,0,0,0", 0.5),
        ("1 EUR/day", f"{TODAY},{MONTH},7200000,0,0,0,0,0,0,0,0,0", None),
        ("2 core-hours/day", "", 0.0),
    ],
)
def test_the_use_of_a_budget_is_shown_in_its_unit(text: str, spent: str, used: float | None) -> None:
    prices = encode_prices(Prices(core_hour=Decimal("0.25")))
    (found,) = budget_uses(encode_budgets(text), spent, prices, NOW_MS)
    renewed = datetime(2028, 1, 1, tzinfo=UTC)
    assert (found.used, found.renewed_ms) == (pytest.approx(used), round(renewed.timestamp()) * 1000)


def test_a_month_is_renewed_in_the_next_one() -> None:
    (found,) = budget_uses(
        encode_budgets("1 GiB/month"), "", "", round(datetime(2028, 2, 3, tzinfo=UTC).timestamp() * 1000)
    )
    assert datetime.fromtimestamp(found.renewed_ms / 1000, UTC) == datetime(2028, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("rewritten", "ingested", "used"),
    [
        (f"{TODAY - 30},90,{TODAY - 29},2,{TODAY},4", f"[[{TODAY - 30},90],[{TODAY - 29},1],[{TODAY},3]]", 1.5),
        ("", f"[[{TODAY},3]]", 0.0),
        ("", "[]", 0.0),
        (f"{TODAY},4", "", None),
    ],
    ids=["thirty days", "nothing rewritten", "nothing at all", "nothing added"],
)
def test_write_amplification_is_shown_as_bytes_rewritten_per_byte_added(
    rewritten: str, ingested: str, used: float | None
) -> None:
    found = amplification_use("2.0", rewritten, ingested, NOW_MS)
    assert (found.budget, found.amount, found.used) == ("2 bytes rewritten per byte added/30 days", 2.0, used)
    assert found.renewed_ms == (TODAY + 1) * 86_400_000
