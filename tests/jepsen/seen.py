"""What one run has shown."""

from collections import Counter
from dataclasses import dataclass, field, fields

HARMS = ("lost", "revived", "doubled", "changed", "unreadable", "broken")
"""Columns of harm."""

LEAST_REWRITES = 8
"""Fewer rewrites prove little."""
SAMPLES = 5
"""Findings whose text is kept."""


@dataclass(slots=True)
class Seen:
    """Figures of one run.

    lost, revived, doubled, changed: rows, for each table the most that any reader found at any version. unreadable:
    reads that failed. broken: commits that were lost, replaced, or are explained by no operation. aborted: statements
    that failed. Bytes are of data files: in commits of writers, and in commits of the compactor.
    """

    lost: int = 0
    revived: int = 0
    doubled: int = 0
    changed: int = 0
    unreadable: int = 0
    broken: int = 0
    statements: int = 0
    aborted: int = 0
    ingested_bytes: int = 0
    rewritten_bytes: int = 0
    rewrites: int = 0
    cpu_s: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    samples: list[str] = field(default_factory=list)

    @property
    def harms(self) -> frozenset[str]:
        """Names of the columns of harm that are not 0."""
        return frozenset(name for name in HARMS if getattr(self, name))

    @property
    def figures(self) -> dict[str, object]:
        """What is kept."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def count(self, *, is_rewrite: bool, size: int) -> None:
        """Count a commit that adds data files of this size."""
        if is_rewrite:
            self.rewrites, self.rewritten_bytes = self.rewrites + 1, self.rewritten_bytes + size
        else:
            self.ingested_bytes += size
