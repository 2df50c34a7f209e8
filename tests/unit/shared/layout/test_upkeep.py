"""Upkeep is due where as much is to be done as the policy says, and every kind has its property and its sentences."""

from fractions import Fraction

import pytest

from shared.layout.upkeep import (
    COMPUTE_STATISTICS,
    CONVERT_DELETES,
    MERGE_DELETES,
    REWRITE_MANIFESTS,
    UPKEEP,
    UpkeepFound,
    UpkeepKind,
)
from shared.policy.policy import Policy
from shared.policy.property_table import PROPERTIES

POLICY = Policy(
    rewrite_manifests_at=10, merge_deletes_at=50, convert_deletes_at=20, compute_statistics_at=Fraction(1, 10)
)


@pytest.mark.parametrize(
    ("kind", "count", "excess", "is_due"),
    [
        (REWRITE_MANIFESTS, 11, 10, True),
        (REWRITE_MANIFESTS, 90, 9, False),
        (MERGE_DELETES, 60, 50, True),
        (MERGE_DELETES, 60, 49, False),
        (CONVERT_DELETES, 20, 20, True),
        (CONVERT_DELETES, 19, 19, False),
        (COMPUTE_STATISTICS, 100, 10, True),
        (COMPUTE_STATISTICS, 100, 9, False),
        (COMPUTE_STATISTICS, 0, 10, False),
    ],
)
def test_upkeep_is_due_where_so_much_is_superfluous_or_has_changed(
    kind: UpkeepKind, count: int, excess: int, is_due: bool
) -> None:
    expected = kind.due if is_due else kind.not_due
    assert kind.need(UpkeepFound(count, excess), POLICY) is expected


@pytest.mark.parametrize("kind", UPKEEP)
def test_without_a_setting_upkeep_is_due_as_soon_as_a_run_helps_and_never_before(kind: UpkeepKind) -> None:
    assert kind.need(UpkeepFound(100, 1), Policy()) is kind.due
    assert kind.need(UpkeepFound(100, 0), Policy()) is kind.not_due
    assert kind.need(None, POLICY) is kind.not_known


@pytest.mark.parametrize("kind", UPKEEP)
def test_each_kind_has_a_property_that_is_off_and_reasons_of_its_own(kind: UpkeepKind) -> None:
    assert (kind.at(Policy()), kind.at(POLICY) is None) == (None, False)
    assert kind.property_name in {one.name for one in PROPERTIES}
    assert {*type(kind.due)} == {kind.due, kind.not_due, kind.not_known}
    assert not kind.due.stage
    assert all((kind.not_due.stage, kind.not_known.stage))


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (REWRITE_MANIFESTS, "Manifests of its snapshot: 51 with 900 bytes; 1 would be enough."),
        (MERGE_DELETES, "Delete files by position of its snapshot: 51, of which 50 are to be merged."),
        (CONVERT_DELETES, "Delete files by value of its snapshot: 51."),
        (COMPUTE_STATISTICS, "Since the newest statistics of columns, 50 of 51 rows changed."),
    ],
)
def test_what_was_found_is_a_sentence(kind: UpkeepKind, sentence: str) -> None:
    assert kind.describe(UpkeepFound(51, 50, 900)) == sentence
    refused = "The last run refused 7 of them, which do not count."
    assert kind.describe(UpkeepFound(51, 50, 900, refused=7)) == f"{sentence} {refused}"
