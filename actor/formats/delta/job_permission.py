"""The control of a job on a whole table as a commit has it: a group of files is finished once it is begun."""

from dataclasses import dataclass

from actor.ports import TableJobControl


@dataclass(frozen=True, slots=True)
class JobPermission:
    """`actor.ports.Control` for the commits of a table job."""

    control: TableJobControl

    def may_commit(self) -> None:
        """Raise LeaseLost unless the job may still change the table."""
        self.control.may_change()

    def should_stop(self) -> bool:
        """Return False: what was begun is finished."""
        return False

    def reached(self, point: str) -> None:
        """Report progress."""
        self.control.reached(point)
