"""Consequences of the outcome of a rewrite within one run: the files that are live now, and what to leave alone."""

from dataclasses import replace

from actor.ports import GroupOutcome, GroupStatus, LivePartition, RewriteOutcome
from shared.errors import LakewrightError, RefusedFiles
from shared.layout.planner import FileGroup, Plan
from shared.table import DataFile


class FailedGroups:
    """The groups of a run that failed for themselves: all others land first, then the run fails with their error."""

    def __init__(self) -> None:
        self._failed: list[GroupOutcome] = []

    def note(self, outcome: RewriteOutcome) -> None:
        """Note the groups that failed in a rewrite."""
        self._failed += [group for group in outcome.groups if group.status is GroupStatus.FAILED]

    def without(self, planned: Plan) -> Plan:
        """Leave out the groups that hold an input of a failed one, whatever they hold besides."""
        given_up = {file.key for outcome in self._failed for file in outcome.group.files}
        groups = tuple(group for group in planned.groups if not any(file.key in given_up for file in group.files))
        return planned if len(groups) == len(planned.groups) else replace(planned, groups=groups)

    def raise_first(self) -> None:
        """Raise what the first failed group failed with, if any did."""
        error = next((outcome.error for outcome in self._failed), None)
        if error is not None:
            raise error


def not_written(group: FileGroup, error: LakewrightError) -> GroupOutcome:
    """Return the outcome of a group that failed for itself: refused, which is remembered, or failed."""
    status = GroupStatus.REFUSED if isinstance(error, RefusedFiles) else GroupStatus.FAILED
    return GroupOutcome(group, status, error=error)


def live_after(live: LivePartition, outcome: RewriteOutcome) -> LivePartition | None:
    """Derive the live files after our own commit if no other commit lies between; None: they must be read again."""
    if outcome.version is None or outcome.follows != live.version:
        return None
    landed = [group for group in outcome.groups if group.status is GroupStatus.COMMITTED]
    gone = {file.key for group in landed for file in group.group.files}
    kept: list[DataFile] = [file for file in live.files if file.key not in gone]
    new = [file for group in landed for file in group.outputs]
    return LivePartition(outcome.version, live.metadata, live.protocol, (*kept, *new))
