"""What a run of all rivals has shown: which findings count, and the table of results."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.bench.rivals.page import markdown
from tests.jepsen.rival import BY_SPARK, Rival
from tests.jepsen.seen import HARMS, LEAST_REWRITES, Seen

HEAD = (
    *("compactor", "version", "lost", "revived", "doubled", "changed", "unreadable", "broken commits"),
    *("aborted statements", "rewrites", "bytes rewritten per byte ingested", "CPU s per MB ingested", "finding"),
)


@dataclass(slots=True)
class Row:
    """A rival, all of its runs from the one seed, and the run of its writers without any compactor.

    `absent`: why there is none.
    """

    title: str
    version: str = ""
    is_ours: bool = False
    measures_cpu: bool = True
    rewrites: bool = True
    runs: list[Seen] = field(default_factory=list)
    control: Seen = field(default_factory=Seen)
    absent: str = ""

    @property
    def seen(self) -> Counter[str]:
        """In how many runs each kind of harm was seen."""
        return Counter(harm for run in self.runs for harm in run.harms)

    @property
    def findings(self) -> frozenset[str]:
        """Kinds of harm that count: two runs show them, and the control does not."""
        return frozenset(harm for harm, runs in self.seen.items() if runs > 1) - self.control.harms

    @property
    def is_open(self) -> bool:
        """Whether harm was seen that one more run may show to be a finding."""
        return bool(self.seen.keys() - self.findings - self.control.harms)

    @property
    def fails(self) -> bool:
        """Whether it is ours, and any of its runs shows harm, or proves little."""
        return self.is_ours and (bool(self.absent) or self.is_idle or any(run.harms for run in self.runs))

    @property
    def is_idle(self) -> bool:
        """Whether one of its runs had too few rewrites to prove anything."""
        return self.rewrites and any(run.rewrites < LEAST_REWRITES for run in self.runs)

    @property
    def finding(self) -> str:
        """What is said of its harm."""
        if self.absent:
            return self.absent
        parts = []
        for harm, runs in sorted(self.seen.items()):
            control = "also without a compactor" if harm in self.control.harms else "not without a compactor"
            parts.append(f"{harm} in {runs} of {len(self.runs)} runs of one seed, {control}")
        parts += [f"fewer than {LEAST_REWRITES} rewrites, which proves little"] if self.is_idle else []
        return "; ".join(parts) or "none"

    @property
    def cells(self) -> Sequence[str]:
        """Return its cells: harm is the most that a run showed, the rest is of the first run."""
        if self.absent:
            return self.title, self.version or "-", *["-"] * (len(HEAD) - 3), self.absent
        run = self.runs[0]
        ingested = max(run.ingested_bytes, 1)
        return (
            self.title,
            self.version,
            *(str(max(getattr(one, harm) for one in self.runs)) for harm in HARMS),
            f"{run.aborted} of {run.statements} ({100 * run.aborted / max(run.statements, 1):.1f}%)",
            str(run.rewrites),
            f"{run.rewritten_bytes / ingested:.2f}",
            f"{1e6 * run.cpu_s / ingested:.1f}" if self.measures_cpu else "in the writer",
            self.finding,
        )

    @property
    def figures(self) -> Mapping[str, Any]:
        """What is kept."""
        return {
            "title": self.title,
            "version": self.version,
            "finding": self.finding,
            "runs": [run.figures for run in self.runs],
        }


def row_of(rival: Rival) -> Row:
    """Return the row of a rival without runs."""
    return Row(
        rival.title,
        is_ours=rival.is_ours,
        measures_cpu=rival.writers != BY_SPARK,
        rewrites=rival.rewrites,
    )


def table(rows: Sequence[Row]) -> str:
    """Return the table in Markdown."""
    return markdown(HEAD, [row.cells for row in rows])
