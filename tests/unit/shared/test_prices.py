"""Prices: what is accepted, and amounts that add up."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.policy.policy import GIB
from shared.prices import PRESETS, Prices, Usage, amount_text, parse_prices

counts = st.integers(0, 2**50)
usages = st.builds(Usage, counts, counts, counts, counts, counts)
price = st.decimals(0, 999_999, places=12)
prices = st.builds(Prices, st.just("EUR"), price, price, price, price, price, price)


@given(prices, st.lists(usages, max_size=20))
def test_the_sum_of_runs_is_the_bill_to_the_last_digit(asked: Prices, runs: list[Usage]) -> None:
    counted: dict[str, int] = {}
    for run in runs:
        for name, count in run.counters().items():
            counted[name] = counted.get(name, 0) + count

    assert asked.cost(Usage.of_counters(counted)) == sum(map(asked.cost, runs))


def test_each_unit_costs_its_price() -> None:
    asked = parse_prices(
        '{"currency": "EUR", "core-hour": 0.1, "gib-read": "0.2", "gib-written": 3, "1000-reads": 0.4,'
        ' "1000-writes": 5, "gib-month": 0.7}'
    )

    assert asked.cost(Usage(core_ms=3_600_000)) == Fraction(1, 10)
    assert asked.cost(Usage(bytes_read=GIB)) == Fraction(2, 10)
    assert asked.cost(Usage(bytes_written=GIB)) == 3
    assert asked.cost(Usage(reads=1_000)) == Fraction(4, 10)
    assert asked.cost(Usage(writes=1_000)) == 5
    assert asked.month_of(GIB) == Fraction(7, 10)
    assert (asked.currency, asked.source) == ("EUR", "")


def test_a_preset_is_named_by_its_date_and_may_be_changed() -> None:
    assert parse_prices(" aws-2024-12 ").core_hour == Decimal("0.04048")
    own = parse_prices('{"preset": "aws-2024-12", "core-hour": 0.031}')
    assert (own.core_hour, own.thousand_reads, own.source) == (Decimal("0.031"), Decimal("0.0004"), "aws-2024-12")
    assert all(name[-7:-3].isdigit() for name in PRESETS)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("aws", "aws-2024-12"),
        ("{", "JSON object"),
        ('{"preset": 7}', "no preset 7"),
        ('{"core-second": 1}', "unknown price 'core-second'; expected preset, currency, core-hour"),
        ('{"core-hour": -1}', "core-hour is"),
        ('{"core-hour": "cheap"}', "core-hour is 'cheap'"),
        ('{"core-hour": null}', "core-hour is None"),
        ('{"core-hour": NaN}', "core-hour is"),
        ('{"core-hour": 1000000}', "below 1,000,000"),
        ('{"core-hour": 1e-13}', "12 decimal places"),
        ('{"currency": "euros"}', "three capital letters, such as EUR"),
        ('{"currency": 7}', "three capital letters"),
        ('{"preset": "aws-2024-12", "currency": "EUR"}', "is in USD"),
    ],
)
def test_what_is_no_price_is_refused_with_what_is_expected(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=r"expected|state all prices") as refused:
        parse_prices(text)
    assert named in str(refused.value)


def test_an_amount_is_rounded_where_it_is_shown() -> None:
    assert amount_text(Fraction(2, 3)) == "0.666667"
    assert amount_text(Fraction(0)) == "0.000000"


def test_usages_are_added_and_subtracted_figure_by_figure() -> None:
    one, other = Usage(1, 2, 3, 4, 5), Usage(10, 20, 30, 40, 50)
    assert one + other == Usage(11, 22, 33, 44, 55)
    assert one + other - one == other
