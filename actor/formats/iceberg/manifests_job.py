"""Rewrites a table's manifests: Iceberg's own action does it, in Spark, sorted by partition.

It lists each live file where and as it was, in manifests of the table's target size, and commits by itself: a snapshot
of the operation `replace`, which others' appends do not stand in the way of. Whether it is still wanted is decided here
again, on the newest snapshot.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from actor.formats.iceberg.conflicts import classify
from actor.jvm.errors import first_line
from actor.not_wanted import reason_not_wanted
from actor.ports import TableJob, TableJobControl, TableJobOutcome
from actor.rewrite.model import Verdict
from shared.errors import Conflict
from shared.formats.iceberg.metadata import TableHead
from shared.formats.iceberg.names import COMMIT_KEY
from shared.formats.iceberg.positions import newest_position
from shared.layout.upkeep import UpkeepFound

NOTHING = "the manifests are as few as their bytes need"


class ManifestTable(Protocol):
    """A table whose manifests can be counted and rewritten."""

    location: str

    def refresh(self) -> TableHead:
        """Read the newest metadata, and return them."""

    def manifests(self) -> Mapping[int, UpkeepFound]:
        """Return the manifests of the newest snapshot by their partition specs."""

    def rewrite_manifests(self, spec: int, summary: Mapping[str, str]) -> tuple[int, int]:
        """Rewrite a spec's manifests in one snapshot; returns how many were replaced and written (0, 0: no commit)."""


@dataclass(frozen=True, slots=True)
class ManifestsJob:
    """One run on one table; `check` raises for a table that must not be touched."""

    table: ManifestTable
    job: TableJob
    control: TableJobControl
    check: Callable[[TableHead], None]

    def run(self) -> TableJobOutcome:
        """Rewrite the manifests of each spec that has more than it needs.

        Raises Conflict if others replaced these manifests meanwhile, LeaseLost before the commit that it forbids, and
        whatever Iceberg raises if the outcome of a commit is unknown: the next run counts again.
        """
        head = self.table.refresh()
        self.check(head)
        version = newest_position(head).version
        reason = reason_not_wanted(self.job, head.metadata) or (NOTHING if head.current is None else "")
        if reason:
            return TableJobOutcome(version, head.metadata, reason=reason)
        wanted = [spec for spec, files in sorted(self.table.manifests().items()) if files.excess]
        figures = {"replaced": 0, "written": 0}
        commits: list[int] = []
        for done, spec in enumerate(wanted):
            if self.control.should_stop():
                return TableJobOutcome(version, head.metadata, tuple(commits), figures, is_complete=False)
            self.control.reached("rewriting", done, len(wanted))
            self.control.may_change()
            replaced, written = self._rewrite(spec)
            if replaced:
                commits.append(newest_position(self.table.refresh()).version)
                figures = {"replaced": figures["replaced"] + replaced, "written": figures["written"] + written}
                self.control.measured(figures)
        return TableJobOutcome(version, head.metadata, tuple(commits), figures, reason="" if commits else NOTHING)

    def _rewrite(self, spec: int) -> tuple[int, int]:
        try:
            return self.table.rewrite_manifests(spec, {COMMIT_KEY: self.job.mark().encode()})
        except Exception as error:
            if classify(error) not in (Verdict.TAKEN, Verdict.BUSY):
                raise
            raise Conflict(
                f"the manifests of {self.table.location} were replaced meanwhile ({first_line(error)}); try again",
                kind=Verdict.TAKEN,
            ) from error
