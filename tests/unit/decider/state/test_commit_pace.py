"""The pace of a table's writers: the mean gap between their commits, known after a few of them."""

import pytest

from decider.state.commit_pace import GAPS_NEEDED, UNKNOWN_PACE, CommitPace
from shared.table import Commit, CommitOrigin


def paced(*gaps_ms: int, start: CommitPace = UNKNOWN_PACE) -> CommitPace:
    pace, at_ms = start, start.last_ms or 1_000_000
    pace = pace if start.last_ms else pace.after(Commit(0, at_ms, "WRITE"))
    for gap_ms in gaps_ms:
        at_ms += gap_ms
        pace = pace.after(Commit(1, at_ms, "WRITE"))
    return pace


@pytest.mark.parametrize(("commits", "every_ms"), [(GAPS_NEEDED - 1, 0), (GAPS_NEEDED, 60_000), (50, 60_000)])
def test_a_pace_is_known_after_some_gaps(commits: int, every_ms: int) -> None:
    assert paced(*[60_000] * commits).every_ms == every_ms


def test_one_pause_moves_the_mean_little_and_a_new_pace_is_followed() -> None:
    steady = paced(*[60_000] * 10)
    assert 60_000 < paced(3_600_000, start=steady).every_ms < 600_000
    assert paced(*[1_000] * 40, start=steady).every_ms == pytest.approx(1_000, rel=0.4)


def test_rewrites_do_not_count_and_a_clock_that_goes_back_is_no_gap() -> None:
    steady = paced(*[60_000] * 10)
    own = Commit(9, steady.last_ms + 5, "OPTIMIZE", data_change=False, origin=CommitOrigin("j", 1))
    assert steady.after(own) is steady
    back = steady.after(Commit(9, 1, "WRITE"))
    assert (back.last_ms, 0 < back.every_ms < 60_000) == (steady.last_ms, True)
