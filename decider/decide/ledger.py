"""The ledger: every decision, skips included, in a form from which it can be recomputed.

A record carries the state and the whole policy it was decided from, so `recompute` gives the same verdict offline;
"why was this table not optimized at 14:03" has an answer that can be checked.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from decider.decide.calibration import UNCALIBRATED, Calibration
from decider.decide.verdict import Decision, Verdict, corrected, decide_numbers, decide_rung
from shared.cells import CellState
from shared.facts import Ask
from shared.partitions import cell_label
from shared.policy import Policy
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

    @property
    def sentence(self) -> str:
        """The decision in words, with its numbers."""
        what = {"": "", "queued": " A job was queued.", "merged": " It joined the job that was waiting."}
        tail = what.get(self.outcome, " The running job will be followed by another look.")
        return (
            f"Version {self.version}, {cell_label(self.cell)}: {self.verdict}. {self.reason.sentence}{tail} "
            f"The cell had {self.state.files} files, {self.state.small_files} of them small."
        )


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
    if record.ask is Ask.LEVELS:
        return corrected(decide_numbers(*about, record.purgeable), record.calibration)
    return corrected(decide_rung(record.ask, *about), record.calibration)


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
