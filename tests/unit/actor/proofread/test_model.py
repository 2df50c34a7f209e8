"""What several comparisons of one group have found together."""

from actor.proofread.model import Proof, Reading


def test_a_group_that_was_compared_twice_is_as_sure_as_the_weaker_comparison() -> None:
    rows, unread = Proof(Reading.ROWS, 5, cpu_ms=2), Proof(Reading.NONE, unverified_because="unknown", cpu_ms=3)
    for found in (rows.joined(unread), unread.joined(rows)):
        assert (found.reading, found.unverified_because, found.cpu_ms) == (Reading.NONE, "unknown", 5)
    assert rows.joined(rows).reading is Reading.ROWS
