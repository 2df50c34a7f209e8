"""A proofreader whose two readers both compare each group, whatever the first finds: for laboratories, not actors."""

from collections import Counter
from dataclasses import replace

from actor.proofread.model import Proof, Reading, Rewritten
from actor.proofread.proofreader import Proofreader, _raise_difference
from actor.proofread.task import ReadEnding, Work
from shared.policy.policy import Proofread


class BothReaders(Proofreader):
    """Compares rows of every group; `seen` counts how groups ended, by reader: `duckdb rows`, `pyarrow same`."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def check(self, group: Rewritten, mode: Proofread, *, fingerprint: str = "", tag: str = "") -> Proof:
        """As an actor does for `always`; raises Difference for what either reader finds."""
        return super().check(group, Proofread.ALWAYS, fingerprint=fingerprint, tag=tag)

    def _check_rows(self, group: Rewritten, tag: str) -> Proof:
        proof = super()._check_rows(group, tag)
        again = self._ask(Work.ROWS_AGAIN, group, tag)
        if again.ending is ReadEnding.DIFFERENT:
            _raise_difference(group, replace(again, text=f"by the second reader: {again.text}"))
        self.seen[f"{proof.reader or 'neither'} {proof.reading}"] += 1
        self.seen[f"pyarrow {again.ending}"] += 1
        if again.ending is ReadEnding.UNREADABLE and proof.reading is Reading.NONE:
            self.seen["read by neither"] += 1
        return proof
