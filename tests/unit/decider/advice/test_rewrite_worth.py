"""What rewriting was worth: opens that readers were spared against what runs used, and when that cannot be said."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest

from decider.advice.rewrite_worth import WorthResult, worth_of
from decider.store.tables.table_history import STEP, TableSample, since, with_rests
from shared.prices import Prices

DAY_MS = 24 * STEP
BEGIN = TableSample(at_ms=100 * DAY_MS, files=100, files_needed=1, small_files=100, bytes=1_000)


def after(before: TableSample, hours: float, **counters: int) -> TableSample:
    return replace(before, at_ms=before.at_ms + round(hours * STEP), **counters)


MERGED = after(BEGIN, 1, files=10, files_replaced=100, files_written=10, usage_core_ms=100_000)


@pytest.mark.parametrize(
    ("reads", "result", "words"), [(2.0, WorthResult.PAYS, "pays"), (0.1, WorthResult.DOES_NOT_PAY, "does not pay")]
)
def test_opens_of_files_that_are_not_there_any_more_pay_for_the_runs_or_do_not(
    reads: float, result: WorthResult, words: str
) -> None:
    found = worth_of([BEGIN, MERGED, after(MERGED, 47)], reads, 0)
    assert (found.hours, found.file_hours, found.spent.core_ms) == (48, 90 * 47, 100_000)
    assert found.opens_avoided == round(90 * 47 * reads)
    assert found.saved.core_ms == 50 * found.opens_avoided
    assert found.result(None) is result
    assert found.sentence(None).startswith(f"{words}: {found.opens_avoided:,} opens avoided")
    assert found.sentence(None).endswith("for 100 core-seconds in 2 days")


def test_money_decides_where_prices_are_set() -> None:
    found = worth_of([BEGIN, MERGED, after(MERGED, 47)], 0.1, 0)
    assert found.result(Prices(thousand_reads=Decimal(1))) is WorthResult.PAYS, "opens cost requests, and cores nothing"
    assert "worth 0.423000 EUR, for 0.000000 EUR" in found.sentence(Prices(currency="EUR", thousand_reads=Decimal(1)))


def test_files_whose_rows_writers_removed_would_not_be_there_either() -> None:
    half_removed = after(MERGED, 10, bytes=500)
    found = worth_of([BEGIN, MERGED, half_removed, after(half_removed, 10)], 1.0, 0)
    assert found.file_hours == 90 * 10 + 45 * 10
    overwritten = after(half_removed, 10, bytes=400, bytes_added=400)
    gone = worth_of([BEGIN, MERGED, half_removed, overwritten, after(overwritten, 10)], 1.0, 0)
    assert gone.file_hours == 90 * 10 + 45 * 10 + 45 * 4 / 9 * 10
    empty = after(MERGED, 1, bytes=0)
    assert worth_of([BEGIN, MERGED, empty, after(empty, 90)], 1.0, 0).file_hours == 90


def test_smaller_outputs_are_not_taken_for_removed_rows() -> None:
    smaller = after(BEGIN, 1, files=10, bytes=600, bytes_replaced=1_000, bytes_written=600, files_replaced=90)
    again = after(smaller, 1, bytes=300, bytes_replaced=1_600, bytes_written=900)
    found = worth_of([BEGIN, smaller, again, after(again, 10)], 1.0, 0)
    assert found.file_hours == 90 + 900


def test_only_the_last_week_is_judged_and_older_rewrites_still_spare_opens() -> None:
    month_later = after(MERGED, 30 * 24)
    found = worth_of([BEGIN, MERGED, month_later], 1.0, 0)
    assert (found.hours, found.file_hours, found.spent.core_ms) == (168, 90 * 168, 0)
    assert found.result(None) is WorthResult.NOTHING_REWRITTEN
    assert found.sentence(None).startswith("nothing was rewritten in 7 days; by earlier rewrites, 15,120 opens avoided")


@pytest.mark.parametrize(
    ("samples", "reads", "backlog", "result", "words"),
    [
        ((), None, 0, WorthResult.TOO_SHORT, "takes 24 hours of history"),
        ((BEGIN, after(MERGED, 3)), 1.0, 0, WorthResult.TOO_SHORT, "not judged yet"),
        ((BEGIN, after(BEGIN, 30)), 1.0, 0, WorthResult.NOTHING_REWRITTEN, "nothing was rewritten in 30 hours"),
        ((BEGIN, MERGED, after(MERGED, 30)), 1.0, 5, WorthResult.BACKLOG, "which is done once"),
        ((BEGIN, after(MERGED, 30, backlog_bytes_done=9)), 1.0, 0, WorthResult.BACKLOG, "for 100 core-seconds"),
        ((BEGIN, MERGED, after(MERGED, 99)), None, 0, WorthResult.READS_UNKNOWN, "pays from 0.22 reads per hour on"),
        ((BEGIN, after(BEGIN, 99, usage_core_ms=5_000)), None, 0, WorthResult.DOES_NOT_PAY, "0 opens avoided"),
    ],
)
def test_where_it_cannot_be_judged_the_sentence_says_why(
    samples: Sequence[TableSample], reads: float | None, backlog: int, result: WorthResult, words: str
) -> None:
    found = worth_of(samples, reads, backlog)
    assert found.result(None) is result
    assert words in found.sentence(None)


def test_a_table_rests_until_an_hour_before_its_next_sample() -> None:
    later, soon = after(BEGIN, 50, files=3), after(BEGIN, 51.5, files=4)
    rested = after(BEGIN, 49)
    assert with_rests([BEGIN, later, soon]) == (BEGIN, rested, later, soon)
    assert with_rests([]) == ()
    assert since([BEGIN, later, soon], BEGIN.at_ms + 9) == (replace(BEGIN, at_ms=BEGIN.at_ms + 9), later, soon)
    assert since([later], BEGIN.at_ms) == (later,)
