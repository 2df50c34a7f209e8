"""The ledger: every decision, skips included, in a form from which it can be recomputed.

A record carries the state and the whole policy it was decided from, so `recompute` gives the same verdict offline;
"why was this table not optimized at 14:03" has an answer that can be checked.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from decider.decide.calibration import UNCALIBRATED, Calibration
from decider.decide.verdict import Decision, Verdict, corrected, decide_numbers, decide_rung, heed
from shared.cells import CellState
from shared.facts import Ask
from shared.partitions import cell_label
from shared.policy import MIB, Policy
from shared.table import CellKey
from shared.worth import Reason


@dataclass(frozen=True, slots=True)
class Record:
    """A decision as it was kept: `at_ms` is the decider's clock, `outcome` what became of an enqueued job."""

    at_ms: int
    version: int
    cell: CellKey
    verdict: Verdict
    reason: Reason
    state: CellState
    policy: Policy
    predicted: Mapping[str, float]
    outcome: str = ""
    purgeable: int = 0
    ask: Ask = Ask.LEVELS
    calibration: Calibration = UNCALIBRATED
    heat: Fraction = Fraction(0)

    @property
    def sentence(self) -> str:
        """The decision in words, with its numbers."""
        what = {"": "", "queued": " A job was queued.", "merged": " It joined the job that was waiting."}
        tail = what.get(self.outcome, " The running job will be followed by another look.")
        if self.heat:
            tail += f" MERGE, UPDATE or DELETE ran in it for {float(self.heat):.0%} of the last hour."
        if self.verdict is Verdict.DEFER:
            tail += " The job waits for them, but not for ever."
        return (
            f"Version {self.version}, {cell_label(self.cell)}: {self.verdict}. "
            f"{self.reason.sentence}{self._numbers}{tail} "
            f"The cell had {self.state.files} files, {self.state.small_files} of them small."
        )

    @property
    def _numbers(self) -> str:
        """The numbers that the reason speaks of, as a sentence behind it."""
        if self.predicted:
            replaced, removed = int(self.predicted["files_replaced"]), int(self.predicted["files_removed"])
            return f" {replaced} files to replace, {removed} to remove, {_mib(self.predicted['bytes'])} to read."
        if self.reason is Reason.WITHIN_TOLERANCE:
            excess = self.state.excess(self.policy.target_bytes) / max(1, self.state.files)
            share = math.sqrt(excess) / self.policy.target_bytes
            return f" It is {share:.1%} of the target; {float(self.policy.tolerance):.1%} are tolerated."
        if self.reason is Reason.NO_PROMOTION:
            return (
                f" The small files hold {_mib(self.state.small_bytes)}; the target is {_mib(self.policy.target_bytes)}."
            )
        return ""


def _mib(count_bytes: float) -> str:
    return f"{count_bytes / MIB:.4g} MiB"


def encode(decision: Decision, policy: Policy, at_ms: int) -> str:
    """Write a decision as JSON text."""
    record: dict[str, Any] = {
        "at": at_ms,
        "v": decision.version,
        "cell": decision.cell,
        "verdict": decision.verdict,
        "reason": decision.reason,
        "state": decision.state.encode(),
        "policy": policy.encode(),
    }
    if decision.heat:
        record["heat"] = str(decision.heat)
    if decision.purgeable:
        record["purgeable"] = decision.purgeable
    if decision.ask is not Ask.LEVELS:
        record["ask"] = decision.ask
    if decision.prediction is not None:
        record["predicted"] = _predicted(decision)
        if decision.calibration.runs:
            record["calibration"] = asdict(decision.calibration)
    return json.dumps(record, separators=(",", ":"))


def decode(text: str, outcome: str = "") -> Record:
    """Read what `encode` wrote."""
    raw = json.loads(text)
    return Record(
        raw["at"],
        raw["v"],
        CellKey(raw["cell"]),
        Verdict(raw["verdict"]),
        Reason(raw["reason"]),
        CellState.decode(raw["state"]),
        Policy.decode(raw["policy"]),
        raw.get("predicted", {}),
        outcome,
        raw.get("purgeable", 0),
        Ask(raw.get("ask", Ask.LEVELS)),
        Calibration(**raw.get("calibration", {})),
        Fraction(raw.get("heat", 0)),
    )


def recompute(record: Record) -> Verdict:
    """Decide again from the record's own numbers; what the commit was and the filter lie outside of them."""
    if record.reason in (Reason.OWN_COMMIT, Reason.NO_DATA_CHANGE, Reason.FILTERED):
        return Verdict.SKIP
    return _decided_again(record).verdict


def predict_again(record: Record) -> Mapping[str, float]:
    """Predict again from the record's own numbers, calibration included; empty where no rewrite was asked for."""
    if recompute(record) is Verdict.SKIP:
        return {}
    return _predicted(_decided_again(record))


def _decided_again(record: Record) -> Decision:
    about = (record.cell, record.state, record.policy, record.version)
    made = decide_numbers(*about, record.purgeable) if record.ask is Ask.LEVELS else decide_rung(record.ask, *about)
    made = corrected(made, record.calibration)
    return made if record.reason is Reason.REQUESTED else heed(made, record.heat, record.policy)


def _predicted(decision: Decision) -> dict[str, float]:
    prediction = decision.prediction
    if prediction is None:
        return {}
    return {
        "files_replaced": prediction.files_replaced,
        "files_removed": prediction.files_removed,
        "bytes": prediction.bytes,
        "benefit": round(float(prediction.benefit), 3),
    }
