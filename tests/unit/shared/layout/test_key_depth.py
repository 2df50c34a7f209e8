"""Keys: values as whole numbers, how deep ranges overlap, and whether rows were added since they were compared."""

from itertools import pairwise
from typing import Any

import pytest

from shared.layout.key_depth import MAX_BUCKETS, NO_DEPTH, KeyDepth, combined_levels, covers, depth_of
from shared.layout.key_runs import NO_KEY_RUNS, KeyRuns
from shared.layout.key_values import is_sortable, key_range
from tests.support.memory_log import commit, file, removed


def test_the_deepest_point_is_where_most_ranges_have_values_on_both_sides() -> None:
    found = depth_of([(0, 10), (5, 10), (5, 6), (8, 20)])
    depth, point = found.deepest
    assert (depth, point) == (3, 6)
    assert sum(covers(one, point) for one in [(0, 10), (5, 10), (5, 6), (8, 20)]) == 3


def test_ranges_that_only_touch_do_not_overlap() -> None:
    assert depth_of([(0, 5), (5, 9), (9, 9)]).deepest == (1, 5)
    assert not covers((5, 5), 5)


def test_nothing_has_no_depth() -> None:
    assert NO_DEPTH.deepest == (0, 0)
    assert depth_of([(4, 4)]) == NO_DEPTH
    assert NO_DEPTH.is_consistent
    assert (NO_DEPTH - depth_of([(1, 2)])).deepest == (0, 0)


def test_a_range_that_was_never_added_leaves_an_inconsistent_state() -> None:
    assert not (depth_of([(0, 4)]) - depth_of([(2, 8)])).is_consistent
    assert (depth_of([(0, 4), (2, 8)]) - depth_of([(2, 8)])) == depth_of([(0, 4)])


def test_a_state_keeps_a_bounded_number_of_buckets_and_stays_exact_at_their_ends() -> None:
    ranges = [(7 * at, 7 * at + 100) for at in range(1_000)]
    found = depth_of(ranges)
    assert len(found.net) <= MAX_BUCKETS
    depth, point = found.deepest
    assert depth == sum(covers(one, point) for one in ranges)
    assert found.at_shift(0) is found


@pytest.mark.parametrize("ranges", [[], [(-9, 4)], [(2**250, 2**250 + 3), (1, 2**255)]])
def test_a_state_reads_what_it_writes(ranges: list[tuple[int, int]]) -> None:
    assert KeyDepth.decode(depth_of(ranges).encode()) == depth_of(ranges)


@pytest.mark.parametrize("text", ["", "1", "0,1,2", "-1,0", "0,1,x,3"])
def test_no_other_text_is_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        KeyDepth.decode(text)


def test_levels_are_added_one_by_one_and_empty_ones_are_left_out() -> None:
    one, other = depth_of([(0, 4)]), depth_of([(2, 8)])
    both = combined_levels(((0, one),), ((0, other), (2, other)), adds=True)
    assert both == ((0, depth_of([(0, 4), (2, 8)])), (2, other))
    assert combined_levels(both, ((2, other),), adds=False) == ((0, depth_of([(0, 4), (2, 8)])),)
    assert combined_levels(both, (), adds=False) is both


ASCENDING = [
    ("long", [-(2**63), -1, 0, 7, 2**63 - 1]),
    ("decimal(38,18)", ["-1E+9", -1.5, 0, 0.1, 0.25, 10**20]),
    ("double", [-1e300, -2.5, -1, 0, 1e-300, 2.5, 1e300]),
    ("string", ["", "A", "a", "aa", "b", "ä", "\U0010ffff"]),
    ("date", ["0001-01-01", "1969-12-31", "2026-01-01"]),
    (
        "timestamp",
        ["1969-12-31T23:59:59.999Z", "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.001Z", "2026-01-01T02:00:00Z"],
    ),
    ("timestamp_ntz", ["2026-01-01T00:00:00", "2026-01-01T00:00:00.000001"]),
]


@pytest.mark.parametrize(("kind", "values"), ASCENDING, ids=[kind for kind, _ in ASCENDING])
def test_numbers_ascend_with_the_values(kind: str, values: list[Any]) -> None:
    assert is_sortable(kind)
    for low, high in pairwise(values):
        found = key_range(low, high, kind)
        assert found is not None
        assert found[0] < found[1], (low, high)
        assert key_range(high, low, kind) is None


def test_minus_zero_is_zero() -> None:
    assert key_range(-0.0, 0.0, "double") == (0, 0)


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (None, 1, "long"),
        (1, None, "long"),
        (1, 2, "binary"),
        (1, 2, "struct"),
        (1.5, 2, "long"),
        (True, True, "long"),
        ("x", "y", "decimal(3,1)"),
        ("1", "2", "double"),
        (float("nan"), 1.0, "double"),
        (1, 2, "string"),
        ("soon", "later", "date"),
        ("soon", "later", "timestamp"),
        (1, 2, "timestamp"),
    ],
)
def test_what_is_no_value_of_the_type_has_no_range(low: Any, high: Any, kind: str) -> None:
    assert key_range(low, high, kind) is None


def test_types_without_an_order_cannot_be_sorted_by() -> None:
    assert not is_sortable("binary")


def test_instants_with_a_zone_are_compared_as_instants() -> None:
    found = key_range("2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00Z", "timestamp")
    assert found is not None
    assert found[0] == found[1]


ADDED = (file("a"),)


def test_a_commit_that_adds_rows_makes_a_run_pending_and_the_end_of_a_run_ends_that() -> None:
    runs = NO_KEY_RUNS.after(commit(3, added=ADDED))
    assert (runs.appended_version, runs.is_pending) == (3, True)
    ended = runs.after(commit(9, "DELETE", data_change=False, deduplicated_version=7))
    assert (ended.compared_version, ended.is_pending) == (7, False)
    assert ended.after(commit(10, added=ADDED)).is_pending


def test_rows_that_are_added_while_a_run_goes_on_are_compared_by_the_next() -> None:
    runs = NO_KEY_RUNS.after(commit(3, added=ADDED)).after(commit(8, added=ADDED))
    assert runs.after(commit(9, "DELETE", data_change=False, deduplicated_version=7)).is_pending


def test_rewrites_deletes_and_removals_add_no_rows() -> None:
    for one in (
        commit(3, data_change=False, added=ADDED),
        commit(3, "DELETE", added=ADDED),
        commit(3, removed=(removed(ADDED[0]),)),
    ):
        assert NO_KEY_RUNS.after(one) is NO_KEY_RUNS


def test_no_end_of_a_run_covers_commits_after_itself() -> None:
    assert NO_KEY_RUNS.after(commit(9, "DELETE", deduplicated_version=10**9)).compared_version == 9


def test_after_a_rebuild_a_run_is_pending_and_begins_again_where_the_policy_changed() -> None:
    known = KeyRuns(5, 7, 1_000)
    assert known.rebuilt(9, is_same_rule=True) == KeyRuns(9, 7, 1_000)
    assert known.rebuilt(7, is_same_rule=True).is_pending is False
    assert known.rebuilt(9, is_same_rule=False) == KeyRuns(9, -1, 1_000)
