"""What a removal of older rows is to do beyond the table's policy, as its job carries it from decider to actor."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeduplicateOptions:
    """Options of one run.

    since_version: up to which all rows were compared before, so that partitions unchanged since are left out; -1: none
    were. dry_run: count the rows, and change nothing.
    """

    since_version: int = -1
    dry_run: bool = False

    def encode(self) -> dict[str, int]:
        """Write as the options of a job."""
        return {"since_version": self.since_version, "dry_run": int(self.dry_run)}

    @staticmethod
    def decode(options: Mapping[str, int]) -> "DeduplicateOptions":
        """Read the options of a job."""
        return DeduplicateOptions(options.get("since_version", -1), bool(options.get("dry_run", 0)))
