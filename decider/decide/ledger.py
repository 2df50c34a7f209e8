"""The ledger: every decision, skips included, in a form from which it can be recomputed.

A record carries the state and the whole policy it was decided from, so `recompute` gives the same verdict offline, and
`contradictions` tells what of a record cannot have been decided so; "why was this table not optimized at 14:03" has an
answer that can be checked.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from decider.decide.calibration import UNCALIBRATED, Calibration
from decider.decide.decision import Decision, DecisionKind, corrected, decide_rung, decide_state, heed
from shared.errors import InvalidInput
from shared.job_payload import RewriteKind
from shared.layout.eligibility import Reason
from shared.layout.levels import FULL
from shared.layout.partition_stats import PartitionStats
from shared.partition_filter import parse_filter
from shared.partitions import partition_label, partition_values
from shared.policy import MIB, Policy, PortablePaths
from shared.table import PartitionColumn, PartitionKey

MAX_WHOLE = 2**63 - 1
"""Largest whole number of a record: what a column of the archive holds."""

MAX_AT_MS = 253_402_300_799_000
"""The last second of the year 9999: what a moment can be written as."""

MAX_PROBLEM_CHARS = 300
"""What is told of why a record cannot be read; the record itself is kept whole."""


@dataclass(frozen=True, slots=True)
class LedgerRecord:
    """A decision as it was kept: `at_ms` is the decider's clock, `outcome` what became of an enqueued job."""

    at_ms: int
    version: int
    cell: PartitionKey
    verdict: DecisionKind
    reason: Reason
    state: PartitionStats
    policy: Policy
    predicted: Mapping[str, float]
    outcome: str = ""
    purgeable: int = 0
    ask: RewriteKind = RewriteKind.LEVELS
    calibration: Calibration = UNCALIBRATED
    heat: Fraction = Fraction(0)
    columns: tuple[PartitionColumn, ...] = ()

    @property
    def sentence(self) -> str:
        """The decision in words, with its numbers."""
        what = {"": "", "queued": " A job was queued.", "merged": " It joined the job that was waiting."}
        tail = what.get(self.outcome, " The running job will be followed by another look.")
        if self.heat:
            tail += f" MERGE, UPDATE or DELETE ran in it for {float(self.heat):.0%} of the last hour."
        if self.verdict is DecisionKind.DEFER:
            tail += " The job waits for them, but not for ever."
        return (
            f"Version {self.version}, {partition_label(self.cell)}: {self.verdict}. "
            f"{self.reason.sentence}{self._numbers}{tail} "
            f"The partition had {_files(self.state.files)}, {self.state.small_files} of them small."
        )

    @property
    def _numbers(self) -> str:
        """The numbers that the reason speaks of, as a sentence behind it."""
        if self.predicted:
            replaced, removed = int(self.predicted["files_replaced"]), int(self.predicted["files_removed"])
            return f" {_files(replaced)} to replace, {removed} to remove, {_mib(self.predicted['bytes'])} to read."
        if self.reason is Reason.WITHIN_TOLERANCE:
            excess = self.state.excess(self.policy.target_bytes) / max(1, self.state.files)
            share = math.sqrt(excess) / self.policy.target_bytes
            return f" It is {share:.1%} of the target; {float(self.policy.tolerance):.1%} are tolerated."
        if self.reason is Reason.NO_PROMOTION:
            return (
                f" The small files hold {_mib(self.state.small_bytes)}; the target is {_mib(self.policy.target_bytes)}."
            )
        return ""


def _files(number: int) -> str:
    return f"{number} file" if number == 1 else f"{number} files"


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A record that this release cannot read, as one of a newer release may be: its text, and what it plainly says.

    at_ms: its place in the ledger, by the server's clock; problem: why it cannot be read.
    """

    at_ms: int
    text: str
    problem: str
    outcome: str = ""
    version: int | None = None
    cell: PartitionKey | None = None

    @property
    def sentence(self) -> str:
        """What there is to say of it, in words."""
        version = "" if self.version is None else f"Version {self.version}: "
        return f"{version}this release cannot read the record, which is kept as it is: {self.problem}"


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
    if decision.columns:
        record["columns"] = {column.physical: column.name for column in decision.columns}
    if decision.purgeable:
        record["purgeable"] = decision.purgeable
    if decision.ask is not RewriteKind.LEVELS:
        record["ask"] = decision.ask
    if decision.prediction is not None:
        record["predicted"] = _predicted(decision)
        if decision.calibration.runs:
            record["calibration"] = asdict(decision.calibration)
    return json.dumps(record, separators=(",", ":"))


def decode(text: str, outcome: str = "") -> LedgerRecord:
    """Read what `encode` wrote; raises InvalidInput for whatever else, a record of a newer release included.

    What it returns can be shown: its sentence and its numbers exist, and the whole ones fit 64 bits.
    """
    try:
        record = _record(json.loads(text), outcome)
        _check(record)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as problem:
        raise InvalidInput(f"{type(problem).__name__}: {problem}"[:MAX_PROBLEM_CHARS], field="record") from problem
    return record


def read(text: str, outcome: str, at_ms: int) -> LedgerRecord | UnreadableRecord:
    """Read a record of any release as far as it can be read; `at_ms` is its place in the ledger."""
    try:
        return decode(text, outcome)
    except InvalidInput as problem:
        return UnreadableRecord(at_ms, text, str(problem), outcome, *_plainly_said(text))


def _plainly_said(text: str) -> tuple[int | None, PartitionKey | None]:
    """Return the version and the cell of a record that cannot be read, each where it is there and sound."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return None, None
    if not isinstance(raw, dict):
        return None, None
    version, cell = raw.get("v"), raw.get("cell")
    is_version = type(version) is int and abs(version) <= MAX_WHOLE
    return version if is_version else None, PartitionKey(str(cell)) if _is_cell(cell) else None


def _is_cell(said: object) -> bool:
    """Say whether this is the key of a cell, and can be written as UTF-8."""
    if not isinstance(said, str):
        return False
    try:
        values = partition_values(PartitionKey(said))
        "".join((said, *values, *(value for value in values.values() if value is not None))).encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        return False
    return True


def _check(record: LedgerRecord) -> None:
    """Raise one of the errors that `decode` knows if something of the record cannot be shown: all of it is tried."""
    state = record.state
    sums = asdict(record.calibration).values() if record.calibration.runs else ()
    whole = (
        *(record.at_ms, record.version, record.purgeable, state.files, state.bytes),
        *(*state.counts, *state.sizes, state.cube_files, *sums),
    )
    if any(type(number) is not int or abs(number) > MAX_WHOLE for number in whole):
        raise ValueError("a number is none, or does not fit 64 bits")
    if not 0 <= record.at_ms <= MAX_AT_MS:
        raise ValueError(f"no moment is {record.at_ms} ms after 1970")
    if not _is_cell(record.cell):
        raise ValueError("its cell is no text of partition values")
    if any(abs(int(value)) > MAX_WHOLE for value in record.predicted.values()):
        raise ValueError("a predicted number does not fit 64 bits")
    "".join((record.sentence, record.policy.version, *record.predicted, *(one.name for one in record.columns))).encode()
    if record.policy.filter is not None:
        parse_filter(record.policy.filter)
    float(state.mse())


def _record(raw: Mapping[str, Any], outcome: str) -> LedgerRecord:
    return LedgerRecord(
        raw["at"],
        raw["v"],
        PartitionKey(raw["cell"]),
        DecisionKind(raw["verdict"]),
        Reason(raw["reason"]),
        PartitionStats.decode(raw["state"]),
        Policy.decode(raw["policy"]),
        raw.get("predicted", {}),
        outcome,
        raw.get("purgeable", 0),
        RewriteKind(raw.get("ask", RewriteKind.LEVELS)),
        Calibration(**raw.get("calibration", {})),
        Fraction(raw.get("heat", 0)),
        # Their types do not matter to a filter, and are not kept.
        tuple(PartitionColumn(name, physical, "") for physical, name in raw.get("columns", {}).items()),
    )


def recompute(record: LedgerRecord) -> DecisionKind:
    """Decide again from the record's own numbers, see `decide_again`."""
    return decide_again(record).verdict


def predict_again(record: LedgerRecord) -> Mapping[str, float]:
    """Predict again from the record's own numbers, calibration included; empty where no rewrite was asked for."""
    return _predicted(decide_again(record))


def decide_again(record: LedgerRecord) -> Decision:
    """Decide again from the record's own numbers: policy, state, partition, filter, heat and calibration.

    Two things lie outside of them and are believed: what the commit was (OWN_COMMIT, NO_DATA_CHANGE), and that somebody
    asked (REQUESTED), who does not wait for other commands.
    """
    cell, state, policy, version = about = (record.cell, record.state, record.policy, record.version)
    if record.ask is not RewriteKind.LEVELS:
        return heed(corrected(decide_rung(record.ask, *about), record.calibration), record.heat, policy)
    if record.reason in (Reason.OWN_COMMIT, Reason.NO_DATA_CHANGE):
        return Decision(version, cell, DecisionKind.SKIP, record.reason, state, None)
    made = corrected(decide_state(*about, record.purgeable, record.columns), record.calibration)
    if record.reason is Reason.REQUESTED and made.prediction is not None:
        return replace(made, reason=Reason.REQUESTED, heat=record.heat)
    return heed(made, record.heat, policy)


def _most_purgeable(record: LedgerRecord) -> int:
    """Return how many files may be rewritten even alone: those with deleted rows, or any where their paths count."""
    paths_count = record.policy.portable_paths is PortablePaths.ALWAYS
    return record.state.files if paths_count else record.state.dv_files


def contradictions(record: LedgerRecord) -> tuple[str, ...]:
    """Return the fields that the record's own numbers contradict, by the names that `LedgerRecord` has for them.

    What cannot be told: `at_ms`, `version` and the kind of outcome, which nothing follows from; what `decide_again`
    believes; and another value of a number from which the same verdict, reason and prediction follow.
    """
    again = decide_again(record)
    partition = set(partition_values(record.cell))
    agrees = {
        "verdict": again.verdict is record.verdict,
        "reason": again.reason is record.reason,
        "predicted": _predicted(again) == dict(record.predicted),
        "calibration": again.calibration == record.calibration,
        "heat": again.heat == record.heat and 0 <= record.heat <= 1,
        "purgeable": again.purgeable == record.purgeable <= _most_purgeable(record),
        "columns": not record.columns or {column.physical for column in record.columns} == partition,
        "state": _is_countable(record.state, record.policy),
        "outcome": not record.outcome or record.verdict is not DecisionKind.SKIP,
    }
    return tuple(name for name, is_so in agrees.items() if not is_so)


def _is_countable(state: PartitionStats, policy: Policy) -> bool:
    """Say whether there can be files that count to this state on the policy's levels."""
    floors = policy.ladder.floors
    full_files, full_bytes = state.files - state.small_files, state.bytes - state.small_bytes
    return (
        state.is_possible
        and state.small_shortfall <= state.shortfall
        and state.dv_files <= state.files
        and 0 <= state.cube_files <= state.files
        and full_bytes >= full_files * floors[FULL] >= 0
        and all(
            count * floors[level] <= size <= count * (floors[level + 1] - 1)
            for level, (count, size) in enumerate(zip(state.counts, state.sizes, strict=True))
        )
    )


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
