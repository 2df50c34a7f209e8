"""Commits of a job on a whole table ask the job, and finish what is begun."""

from actor.formats.delta.job_permission import JobPermission


class Asked:
    """A control that notes what it is asked."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def may_change(self) -> None:
        """Allow it."""
        self.calls.append("may_change")

    def should_stop(self) -> bool:
        """Ask for a stop."""
        return True

    def reached(self, point: str, done: int = 0, total: int = 0) -> None:
        """Note a point."""
        self.calls.append(point)

    def measured(self, figures: object) -> None:
        """Nothing is measured."""


def test_a_commit_asks_whether_the_job_may_change_the_table_and_is_never_cut_short() -> None:
    asked = Asked()
    permission = JobPermission(asked)
    permission.may_commit()
    permission.reached("files_written")
    assert asked.calls == ["may_change", "files_written"]
    assert not permission.should_stop()
