"""The control of a job on a whole table as a commit has it, and the commits of a job that removes rows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from actor.ports import TableJobControl
from actor.rewrite.commit import Committer
from actor.rewrite.model import S
from shared.errors import Conflict


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


class RemovalRun(Protocol):
    """A run of a job that removes rows, with figures and commits of all that was done so far."""

    control: TableJobControl
    figures: Counter[str]
    commits: list[int]


def commit_removal(run: RemovalRun, committer: Committer[S], groups: Sequence[S]) -> bool:
    """Commit groups, and count what was written for them; False if others changed what was read for them."""
    try:
        landed = committer.commit(groups)
    except Conflict:
        return False
    if landed.version is None:
        return False
    run.commits.append(landed.version)
    for group in groups:
        run.figures.update({} if group.proof is None else group.proof.figures)
        run.figures["files_written"] += len(group.outputs)
        run.figures["bytes_written"] += sum(one.file.size_bytes for one in group.outputs)
    run.control.reached("committed")
    return True
