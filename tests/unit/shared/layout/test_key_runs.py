"""Whether rows were added since all rows were compared is folded from commits, and never forgotten by a rebuild."""

from shared.layout.key_runs import NO_KEY_RUNS, KeyRuns
from tests.support.folding import commit, file, removed

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
