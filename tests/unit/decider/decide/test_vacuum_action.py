"""When a table is vacuumed: what has expired, when the store is listed, and how often."""

from dataclasses import replace

import pytest

from decider.decide.decision import TableSignals
from decider.decide.signals_text import describe
from decider.decide.vacuum import VACUUM_ACTION, VacuumReason
from shared.jobs.vacuum_options import VacuumOptions
from shared.layout.removals import Removals
from shared.policy.policy import Policy
from shared.queue.model import TimerChange

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
NOW_MS = 100 * DAY_MS
POLICY = Policy(vacuum=True, orphans_every_s=None)


def signals(*removed: tuple[int, int], vacuumed_ms: int = 0, listed_ms: int = 0) -> TableSignals:
    return TableSignals(9, replace(Removals.of(removed), vacuumed_ms=vacuumed_ms, listed_ms=listed_ms))


def test_a_vacuum_is_due_when_a_whole_bucket_of_removals_is_older_than_the_retention() -> None:
    seen = signals((NOW_MS, 5), (NOW_MS + HOUR_MS, 7))
    due_ms = NOW_MS + HOUR_MS + 7 * DAY_MS
    early, late = (VACUUM_ACTION.evaluate(seen, POLICY, at_ms) for at_ms in (due_ms - 1, due_ms))
    assert (early.reason, early.prediction) == (VacuumReason.NOTHING_EXPIRED, None)
    assert late.reason is VacuumReason.FILES_EXPIRED
    assert late.prediction is not None
    assert late.prediction.files_removed == 1
    assert VACUUM_ACTION.timer(seen, POLICY, NOW_MS) == (due_ms, TimerChange.SET)


@pytest.mark.parametrize(("retain_s", "days"), [(None, 7), (86_400, 7), (20 * 86_400, 20)])
def test_the_retention_is_never_below_the_tables_least(retain_s: int | None, days: int) -> None:
    seen = signals((NOW_MS, 5))
    assert VACUUM_ACTION.timer(seen, replace(POLICY, retain_s=retain_s), NOW_MS) == (
        NOW_MS + HOUR_MS + days * DAY_MS,
        TimerChange.SET,
    )


def test_a_table_without_removals_has_no_timer_unless_the_store_is_listed_at_times() -> None:
    assert VACUUM_ACTION.timer(signals(), POLICY, NOW_MS) == (0, TimerChange.STOP)
    listing = replace(POLICY, orphans_every_s=86_400)
    assert VACUUM_ACTION.timer(signals(listed_ms=NOW_MS), listing, NOW_MS) == (NOW_MS + DAY_MS, TimerChange.SET)


def test_orphans_are_due_at_first_and_then_as_often_as_the_policy_says() -> None:
    listing = replace(POLICY, orphans_every_s=86_400)
    first = VACUUM_ACTION.evaluate(signals(), listing, NOW_MS)
    assert (first.reason, VacuumOptions.decode(first.options).with_orphans) == (VacuumReason.ORPHANS_DUE, True)
    for later_ms, reason in ((DAY_MS - 1, VacuumReason.NOTHING_EXPIRED), (DAY_MS, VacuumReason.ORPHANS_DUE)):
        assert VACUUM_ACTION.evaluate(signals(listed_ms=NOW_MS), listing, NOW_MS + later_ms).reason is reason
    expired = VACUUM_ACTION.evaluate(signals((0, 1), listed_ms=NOW_MS), listing, NOW_MS)
    assert (expired.reason, VacuumOptions.decode(expired.options).with_orphans) == (VacuumReason.FILES_EXPIRED, False)


def test_a_table_with_two_names_is_not_vacuumed_whatever_is_due() -> None:
    """What expires in the metadata of one name may be the newest snapshot of the other's."""
    seen = replace(signals((NOW_MS, 5)), twins=("copy",))
    late_ms = NOW_MS + 30 * DAY_MS
    assert VACUUM_ACTION.evaluate(replace(seen, twins=()), POLICY, late_ms).prediction is not None
    found = VACUUM_ACTION.evaluate(seen, POLICY, late_ms)
    assert (found.reason, found.prediction) == (VacuumReason.SEVERAL_NAMES, None)
    assert "copy" in describe(seen)


def test_two_vacuums_are_vacuum_every_apart() -> None:
    seen = signals((0, 1), vacuumed_ms=NOW_MS)
    assert VACUUM_ACTION.evaluate(seen, POLICY, NOW_MS + DAY_MS - 1).reason is VacuumReason.VACUUMED_RECENTLY
    assert VACUUM_ACTION.evaluate(seen, POLICY, NOW_MS + DAY_MS).reason is VacuumReason.FILES_EXPIRED
    assert VACUUM_ACTION.timer(seen, POLICY, NOW_MS) == (NOW_MS + DAY_MS, TimerChange.SET)
