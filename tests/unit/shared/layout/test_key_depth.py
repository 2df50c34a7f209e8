"""Depth of overlapping ranges: exact at the points that it knows, and never more than the truth."""

import pytest

from shared.layout.key_depth import MAX_BUCKETS, NO_DEPTH, KeyDepth, combined_levels, covers, depth_of


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
