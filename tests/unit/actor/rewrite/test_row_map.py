"""Each row of the inputs has its own place in an output that holds them one after the other."""

import random

from hypothesis import given
from hypothesis import strategies as st

from actor.rewrite.late_rows import RowMap


@given(st.lists(st.tuples(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)), st.integers(31, 40)), max_size=6))
def test_the_places_are_those_of_the_same_rows_in_what_was_written(
    inputs: list[tuple[set[int], set[int], int]],
) -> None:
    """inputs: of each what the read left out, what others deleted since, and its rows."""
    omitted = [sorted(gone) for gone, _, _ in inputs]
    chosen = [sorted(late - gone) for gone, late, _ in inputs]
    written = [(number, row) for number, (gone, _, rows) in enumerate(inputs) for row in range(rows) if row not in gone]
    mapped = RowMap(tuple(rows for _, _, rows in inputs), omitted)
    places = list(mapped.places(chosen))
    assert [written[place] for place in places] == [(n, row) for n, rows in enumerate(chosen) for row in rows]
    assert places == sorted(set(places))
    assert mapped.output_rows == len(written)


def test_drawn_rows_are_of_the_output() -> None:
    mapped = RowMap((10, 3, 0), ([1, 2, 3, 4], (), ()))
    some, few, none = mapped.drawn(random.Random(1), 4)
    assert 0 < len(some) <= 4
    assert not {*some} & {1, 2, 3, 4}
    assert (len(few), none) == (1, [])
    assert list(mapped.places([[0, 5], [2], []])) == [0, 1, 8]
