"""What a run on a table's index is to do beyond the table's own properties, as its job carries it to the actor."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class IndexJobOptions:
    """Options of one run: the revision to optimize and the bytes of one iteration; None: those of the table."""

    revision: int | None = None
    budget_bytes: int | None = None

    def encode(self) -> dict[str, int]:
        """Write as the options of a job."""
        values = {"revision": self.revision, "budget_bytes": self.budget_bytes}
        return {name: value for name, value in values.items() if value is not None}

    @staticmethod
    def decode(options: Mapping[str, Any]) -> "IndexJobOptions":
        """Read the options of a job."""
        return IndexJobOptions(options.get("revision"), options.get("budget_bytes"))
