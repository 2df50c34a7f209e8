"""Which target a table gets, and when it changes."""

from dataclasses import replace
from fractions import Fraction

import pytest

from decider.decide.calibration import WEEK_HOURS
from decider.decide.job_request import UNREPORTED_READS
from decider.state.commit_pace import DAY_MS
from decider.state.table_summary import NOTHING_COUNTED
from decider.state.target_fit import (
    ASSUMED_READS,
    CHANGES_KEPT,
    FILES,
    GREATEST_TARGET,
    LEAST_TARGET,
    NO_TARGET,
    OPEN_BYTES,
    WEEK_MS,
    TargetBasis,
    TargetChange,
    TargetFit,
)
from decider.whatif.comparison import CostModel
from shared.policy.policy import GIB, MIB, Policy

NOW_MS = 1_000 * WEEK_MS
AUTO = Policy(fits_target=True)
OFTEN = 10_000
"""Reads a week with which the size of a table alone decides."""


def basis(files: float, reads: int = OFTEN, added: int = GIB) -> TargetBasis:
    """Of a table whose size asks for so many MiB."""
    return TargetBasis(round(files * FILES * MIB), added, reads)


def fitted(target_mib: int, at_ms: int = NOW_MS - WEEK_MS) -> TargetFit:
    return TargetFit(at_ms, (TargetChange(at_ms, MIB, target_mib * MIB, basis(1)),))


def with_target(mib: int) -> Policy:
    return replace(AUTO, target_bytes=mib * MIB)


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        (basis(0.5), LEAST_TARGET),
        (basis(100), 100 * MIB),
        (basis(5_000), GREATEST_TARGET),
        (TargetBasis(80 * GIB, 80 * GIB, 100), 519 * MIB),
        (TargetBasis(80 * GIB, 160 * GIB, 100), 259 * MIB),
        (TargetBasis(80 * GIB, 80 * GIB, 1), LEAST_TARGET),
    ],
    ids=["small", "by its size", "large", "by its reads", "much added", "hardly read"],
)
def test_the_target_follows_from_size_additions_and_reads_between_its_bounds(table: TargetBasis, wanted: int) -> None:
    assert table.wanted_bytes(8) // MIB == wanted // MIB


def test_a_larger_fan_in_has_fewer_levels_so_that_larger_targets_cost_less() -> None:
    table = TargetBasis(80 * GIB, 160 * GIB, 100)
    assert table.wanted_bytes(64) == pytest.approx(2 * table.wanted_bytes(8), rel=0.001)


def test_the_basis_is_what_is_known_of_a_table_and_reads_are_assumed_where_none_are_reported() -> None:
    table = replace(NOTHING_COUNTED, bytes=800, files=4)
    assert TargetBasis.of(table, Fraction(1, 2), 5, 9) == TargetBasis(400, 35, 9, 200)
    assert TargetBasis.of(table, Fraction(1), 5, 0).weekly_reads == ASSUMED_READS
    assert TargetBasis.of(NOTHING_COUNTED, Fraction(1), 5, 0).mean_file_bytes == 0


def test_a_change_is_judged_once_by_the_files_that_it_has_led_to() -> None:
    found, policy = fitted(128), with_target(128)
    for ago_ms, mean_bytes, judged_bytes in ((1, 7, 0), (0, 8, 8), (-DAY_MS, 9, 8)):
        seen = replace(basis(128), mean_file_bytes=mean_bytes)
        found = replace(found, checked_ms=0).refitted(policy, seen, NOW_MS - ago_ms)
        assert found.changes[-1].judged_bytes == judged_bytes


def test_prices_are_those_of_what_if_and_of_the_order_of_jobs() -> None:
    prices = CostModel()
    assert pytest.approx(prices.open_s / prices.write_s_per_gib * GIB, rel=0.05) == OPEN_BYTES
    assert ASSUMED_READS == WEEK_HOURS * UNREPORTED_READS


@pytest.mark.parametrize(
    ("now", "wanted_mib", "after"),
    [
        (128, 255, 128),
        (128, 256, 256),
        (128, 361, 256),
        (128, 363, 512),
        (128, 65, 128),
        (128, 64, 64),
        (128, 46, 64),
        (128, 45, 32),
        (100, 150, 100),
        (100, 200, 256),
    ],
)
def test_a_target_changes_by_a_factor_of_two_at_least_to_the_nearest_power_of_two(
    now: int, wanted_mib: int, after: int
) -> None:
    found = NO_TARGET.refitted(with_target(now), basis(wanted_mib), NOW_MS)
    assert found.checked_ms == NOW_MS
    assert (found.target_bytes or now * MIB) == after * MIB
    assert [(one.before_bytes, one.at_ms) for one in found.changes] == [(now * MIB, NOW_MS)] * (after != now)


@pytest.mark.parametrize(("changed_ms", "changes"), [(NOW_MS - WEEK_MS, 2), (NOW_MS - WEEK_MS + 1, 1), (NOW_MS + 1, 1)])
def test_a_week_lies_between_two_changes(changed_ms: int, changes: int) -> None:
    found = replace(fitted(128, changed_ms), checked_ms=0).refitted(with_target(128), basis(900), NOW_MS)
    assert len(found.changes) == changes


@pytest.mark.parametrize(("checked_ms", "is_considered"), [(NOW_MS - DAY_MS, True), (NOW_MS - DAY_MS + 1, False)])
def test_a_change_of_the_target_is_considered_once_a_day(checked_ms: int, is_considered: bool) -> None:
    found = TargetFit(checked_ms).refitted(AUTO, basis(900), NOW_MS)
    assert bool(found.changes) is is_considered


@pytest.mark.parametrize(
    ("policy", "table"),
    [
        (Policy(), basis(900)),
        (replace(AUTO, enabled=False), basis(900)),
        (AUTO, basis(900, added=0)),
    ],
    ids=["fixed", "switched off", "nothing added"],
)
def test_a_table_that_is_not_to_change_keeps_its_target(policy: Policy, table: TargetBasis) -> None:
    assert NO_TARGET.refitted(policy, table, NOW_MS) is NO_TARGET


@pytest.mark.parametrize(("reads", "after"), [(500, 1024), (15, 1024), (14, 128)])
def test_a_larger_target_has_to_pay_back_what_it_has_rewritten(reads: int, after: int) -> None:
    table = TargetBasis(200 * GIB, GIB, reads)
    assert table.wanted_bytes(8) == GREATEST_TARGET
    found = NO_TARGET.refitted(AUTO, table, NOW_MS)
    assert (found.target_bytes or 128 * MIB) == after * MIB


def test_a_smaller_target_rewrites_nothing_and_has_nothing_to_pay_back() -> None:
    found = NO_TARGET.refitted(AUTO, TargetBasis(80 * GIB, 80 * GIB, 1), NOW_MS)
    assert found.target_bytes == LEAST_TARGET


def test_the_newest_changes_are_remembered_and_say_why() -> None:
    found, policy = NO_TARGET, AUTO
    for week in range(CHANGES_KEPT + 2):
        table = basis(900 if week % 2 else 10)
        found = found.refitted(policy, table, NOW_MS + week * WEEK_MS)
        policy = replace(policy, target_bytes=found.target_bytes)
    assert len(found.changes) == CHANGES_KEPT
    assert str(found.changes[-1]) == (
        "target of 1024 MiB instead of 32 MiB: the table has 112 GiB once merged, gets 1 GiB and 10000 reads a week"
    )
