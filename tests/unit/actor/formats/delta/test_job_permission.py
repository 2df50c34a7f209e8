"""Commits of a job on a whole table ask the job, and finish what is begun."""

from actor.formats.delta.job_permission import JobPermission
from tests.support.local_vacuum import Control


def test_a_commit_asks_whether_the_job_may_change_the_table_and_is_never_cut_short() -> None:
    asked = Control()
    asked.stop_after = 0
    permission = JobPermission(asked)
    permission.may_commit()
    permission.reached("files_written")
    assert (asked.changes, [point for point, _, _ in asked.points]) == (1, ["files_written"])
    assert asked.should_stop()
    assert not permission.should_stop()
