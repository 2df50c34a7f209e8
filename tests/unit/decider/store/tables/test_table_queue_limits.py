"""What a policy sets in the queue, and how reported reads are weighed."""

from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.state.effective_policy import LogStatus, PolicyDefaults
from decider.store.queue.occupancy import SlotOccupancy, quota_occupation
from decider.store.tables.read_counts import DAY_MS, DAYS, HOUR_MS, SINCE, WEEK_MS, steady_reads_per_hour, weekly_reads
from decider.store.tables.table_queue_limits import queue_limits_of
from shared.policy.policy import BudgetWork, Policy
from shared.queue.model import Scope
from shared.table import TableId, TableRef


def limits_of(service: Policy, properties: Mapping[str, str] | None = None) -> str:
    table = TableRef(TableId("t"), "t", "file:///t")
    return queue_limits_of(PolicyDefaults(service).resolve(table, properties or {}, {}, LogStatus()))


@pytest.mark.parametrize(
    ("policy", "limits"),
    [
        (Policy(), ""),
        (Policy(weight=Fraction(3)), "3|"),
        (Policy(max_concurrent_jobs=2), "|2"),
        (Policy(quota=Fraction(1, 4)), "1/4|1/4"),
        (Policy(quota=Fraction(3)), "3|3"),
        # The queue takes no weight below a hundredth, and none above a hundred.
        (Policy(quota=Fraction(1, 500)), "1/100|1/500"),
        (Policy(quota=Fraction(400)), "100|400"),
        (Policy(budget="1 GiB/day"), "|||1 GiB/day"),
        (Policy(max_write_amplification=Fraction(5, 2)), "||||2.5"),
        (Policy(max_write_amplification=Fraction(2), budget_work=BudgetWork.UNCROWDED), "||||2.0|1000"),
        (Policy(budget_work=BudgetWork.UNCROWDED), ""),
    ],
)
def test_a_quota_is_a_weight_too(policy: Policy, limits: str) -> None:
    assert limits_of(policy) == limits


def test_a_weight_that_was_set_is_the_weight_beside_a_quota() -> None:
    quota = Policy(quota=Fraction(1, 4))
    assert limits_of(quota, {"lakewright.weight": "2"}) == "2|1/4"
    assert limits_of(quota, {"lakewright.weight": "1"}) == "|1/4"


def test_occupation_is_slot_time_by_quota_for_every_scope_that_has_one() -> None:
    held = SlotOccupancy(10, 1_000, {"sales": 0.2}, {"t1": 0.1, "t2": 0.3, "t3": 0.6})
    limits = {
        "tenant|sales": "40%",
        "table|t1": "1",
        "table|t2": "!15%",
        "table|t3": "!",
        "table|t4": "50",
        "band|2": "3",
    }
    found = quota_occupation(held, limits)
    assert found == {Scope.TENANT: {"sales": 0.5}, Scope.TABLE: {"t1": 1.0, "t2": 2.0, "t4": 0.0}}
    assert quota_occupation(SlotOccupancy(0, 1_000, {}, {}), limits) == {Scope.TENANT: {}, Scope.TABLE: {}}


TODAY = 20_000
NOON = TODAY * DAY_MS + DAY_MS // 2


def stored(by_day: dict[int, int], since_ms: int = 1) -> dict[bytes | str, bytes | str]:
    fields = {str(day): str(count) for day, count in by_day.items()} | {SINCE: str(since_ms)}
    return {name.encode(): value.encode() for name, value in fields.items()}


def counted(by_day: dict[int, int], since_ms: int = 1) -> int:
    return weekly_reads(stored(by_day, since_ms), NOON)


def test_nothing_reported_is_nothing() -> None:
    assert weekly_reads({}, NOON) == 0


@pytest.mark.parametrize(
    ("by_day", "since_ms", "per_week"),
    [
        ({TODAY: 12}, NOON - 12 * HOUR_MS, 168),
        ({TODAY: 12}, NOON, 12 * 168),  # Just begun: the rate of an hour at least.
        ({TODAY - 1: 50, TODAY: 28}, 1, 84),  # Six and a half days are counted.
        ({TODAY - 6: 78}, 1, 84),
        ({TODAY - 7: 1_000_000}, 1, 0),
    ],
)
def test_reads_count_at_the_rate_of_the_days_that_are_kept(
    by_day: dict[int, int], since_ms: int, per_week: int
) -> None:
    assert counted(by_day, since_ms) == per_week


@given(
    st.dictionaries(st.integers(TODAY - 10, TODAY), st.integers(0, 10**9)),
    st.integers(TODAY - 10, TODAY),
    st.integers(0, WEEK_MS),
)
def test_one_more_read_never_lowers_the_rate(by_day: dict[int, int], day: int, age_ms: int) -> None:
    more = by_day | {day: by_day.get(day, 0) + 1}
    assert counted(more, NOON - age_ms) >= counted(by_day, NOON - age_ms)
    assert counted(by_day, NOON - age_ms) <= sum(by_day.values()) * DAYS * 24


@pytest.mark.parametrize(
    ("by_day", "since_ms", "per_hour"),
    [
        ({TODAY: 1_000}, NOON - 2 * HOUR_MS, 0.0),  # All on one day.
        ({TODAY - 1: 12, TODAY: 60}, NOON - 24 * HOUR_MS, 1.0),
        ({TODAY: 1_000}, NOON - 24 * HOUR_MS, 0.0),
        ({TODAY - 6: 72, TODAY - 1: 1_000}, 1, 1.0),  # Three days, and three and a half.
        ({TODAY - 7: 1_000_000}, 1, 0.0),
    ],
)
def test_the_steady_rate_is_that_of_the_half_of_the_days_with_fewer_reads(
    by_day: dict[int, int], since_ms: int, per_hour: float
) -> None:
    assert steady_reads_per_hour(stored(by_day, since_ms), NOON) == per_hour
