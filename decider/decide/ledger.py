"""The ledger: every decision, skips included, in a form from which it can be recomputed.

A record carries the state and the whole policy it was decided from, so the same verdict follows from it offline; "why
was this table not optimized at 14:03" has an answer that can be checked.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import orjson

from decider.decide.actions import ACTIONS, ActionRegistry
from decider.decide.calibration import UNCALIBRATED, Calibration
from decider.decide.context import DecisionContext
from decider.decide.decision import NOTHING_REFUSED, Decision, DecisionKind, RefusedPart, TableSignals
from decider.decide.evaluate import PIPELINE_REASONS
from decider.decide.signals_text import describe, files, size
from shared.errors import InvalidInput
from shared.jobs.payload import COMPACT, RewriteKind
from shared.layout.eligibility import DecisionReason, Reason
from shared.layout.partition_stats import EMPTY_STATS, PartitionStats
from shared.partitions import partition_label, partition_values
from shared.policy.partition_filter import is_relative, literal_filter, parse_filter
from shared.policy.policy import Policy
from shared.table import PartitionColumn, PartitionKey
from shared.typed_json import from_values, plain_values

MAX_WHOLE = 2**63 - 1
"""Largest whole number of a record: what a column of the archive holds."""

MAX_AT_MS = 253_402_300_799_000
"""The last second of the year 9999: the greatest time that can be formatted."""

_KIND = re.compile(r"[a-z][a-z0-9_-]{0,39}")
"""Kinds of jobs, as the contract suite of actions demands them."""

MAX_PROBLEM_CHARS = 300
"""Length at which the reason why a record cannot be read is cut; the record itself is kept whole."""


@dataclass(frozen=True, slots=True)
class LedgerRecord:
    """A decision as the ledger keeps it: `at_ms` is the decider's clock, `outcome` the result of enqueuing its job.

    literal_filter: what a filter that moves with the time was at the decision; empty for any other filter.
    """

    at_ms: int
    version: int
    partition: PartitionKey
    verdict: DecisionKind
    reason: DecisionReason
    state: PartitionStats
    policy: Policy
    predicted: Mapping[str, float]
    outcome: str = ""
    purgeable: int = 0
    rewrite_kind: RewriteKind = RewriteKind.LEVELS
    calibration: Calibration = UNCALIBRATED
    busy_ratio: Fraction = Fraction(0)
    columns: tuple[PartitionColumn, ...] = ()
    action: str = COMPACT
    signals: TableSignals | None = None
    is_forced: bool = False
    refused: RefusedPart = NOTHING_REFUSED
    literal_filter: str = ""

    @property
    def message(self) -> str:
        """The decision as a sentence, with its numbers."""
        meant = f" The filter {self.policy.filter} was {self.literal_filter}." if self.literal_filter else ""
        if self.signals is not None:
            return self._table_message(self.signals) + meant
        what = {"": "", "queued": " A job was queued.", "merged": " It was merged into the waiting job."}
        tail = what.get(self.outcome, " The partition is evaluated again after the running job.")
        if self.busy_ratio:
            tail += f" MERGE, UPDATE or DELETE ran in it for {float(self.busy_ratio):.0%} of the last hour."
        if self.refused.stats.files:
            tail += f" {files(self.refused.stats.files)} are refused and do not count."
        if self.refused.is_held:
            tail += " The partition gets no job by a commit for a while, because its last runs only met refused files."
        if self.verdict is DecisionKind.DEFER:
            tail += " The job waits for them, at most two hours."
        return (
            f"Version {self.version}, {partition_label(self.partition)}: {self.verdict}. "
            f"{self.reason.message}{self._numbers}{tail} "
            f"The partition has {files(self.state.files)}, {self.state.small_files} of them small.{meant}"
        )

    def _table_message(self, signals: TableSignals) -> str:
        tail = {"": "", "queued": " A job was queued.", "merged": " It was merged into the waiting job."}
        return (
            f"Version {self.version}, whole table: {self.verdict} {self.action}. {self.reason.message}"
            f"{tail.get(self.outcome, ' The table is evaluated again after the running job.')} "
            f"{describe(signals)}"
        )

    @property
    def _numbers(self) -> str:
        """The numbers that belong to the reason, as a sentence after it."""
        if self.predicted:
            replaced, removed = int(self.predicted["files_replaced"]), int(self.predicted["files_removed"])
            fewer = f"{files(removed, 'fewer ')} and " if removed else ""
            expected = f"{fewer}{size(self.predicted['bytes'])} to read{_CORRECTED if self.calibration.runs else ''}"
            return f" {files(replaced)} can be replaced now. The prediction is {expected}."
        if self.reason is Reason.WITHIN_TOLERANCE:
            counted = self.state.without(self.refused.stats)
            excess = counted.excess(self.policy.target_bytes) / max(1, counted.files)
            share = math.sqrt(excess) / self.policy.target_bytes
            return f" It is {share:.1%} of the target; {float(self.policy.tolerance):.1%} are tolerated."
        if self.reason is Reason.NO_PROMOTION:
            return (
                f" The small files hold {size(self.state.small_bytes)}; the target is {size(self.policy.target_bytes)}."
            )
        return ""


_CORRECTED = "; it includes files that arrive before the job runs, as measured in the table's earlier jobs"


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A record that this release cannot read, as one of a newer release may be: its text, and its sound fields.

    at_ms: its place in the ledger, by the server's clock; problem: why it cannot be read.
    """

    at_ms: int
    text: str
    problem: str
    outcome: str = ""
    version: int | None = None
    partition: PartitionKey | None = None
    action: str = COMPACT

    @property
    def message(self) -> str:
        """The record as a sentence, as far as it can be read."""
        version = "" if self.version is None else f"Version {self.version}: "
        return f"{version}this release cannot read the record, which is stored unchanged: {self.problem}"


def encode(decision: Decision, context: DecisionContext) -> str:
    """Write a decision as JSON text, with all that it was made from; fields at their default are left out."""
    record: dict[str, Any] = {
        "at": context.at_ms,
        "v": decision.version,
        "partition": decision.partition,
        "verdict": decision.verdict,
        "reason": decision.reason,
        "state": decision.state.encode(),
        "policy": context.policy.encode(),
    }
    if context.policy.filter is not None and is_relative(context.policy.filter):
        record["filter"] = literal_filter(context.policy.filter, context.at_ms)
    if decision.action != COMPACT:
        record["action"] = decision.action
    record |= _encoded_signals(decision)
    if decision.busy_ratio:
        record["heat"] = str(decision.busy_ratio)
    if decision.columns:
        record["columns"] = {column.physical: column.name for column in decision.columns}
    record |= _encoded_refused(decision.refused)
    if decision.purgeable:
        record["purgeable"] = decision.purgeable
    if decision.rewrite_kind is not RewriteKind.LEVELS:
        record["ask"] = decision.rewrite_kind
    if decision.prediction is not None:
        record["predicted"] = predicted(decision)
        if decision.calibration.runs:
            record["calibration"] = asdict(decision.calibration)
    try:
        return orjson.dumps(record).decode()
    except TypeError:  # A number beyond 64 bits, or half of a surrogate pair.
        return json.dumps(record, separators=(",", ":"))


def _encoded_signals(decision: Decision) -> dict[str, Any]:
    """Return what a record of a decision about a whole table has besides."""
    if decision.signals is None:
        return {}
    forced = {"forced": True} if decision.trigger.is_forced else {}
    return {"signals": plain_values(decision.signals), **forced}


def _encoded_refused(refused: RefusedPart) -> dict[str, Any]:
    """Return what a record has of files that were not counted because they are refused."""
    held = {"held": True} if refused.is_held else {}
    return held | ({"refused": refused.stats.encode()} if refused.stats != EMPTY_STATS else {})


def decode(text: str, outcome: str = "", actions: ActionRegistry = ACTIONS) -> LedgerRecord:
    """Read what `encode` wrote; raises InvalidInput for anything else, a record of a newer release included.

    What it returns can be shown: its sentence and its numbers exist, and the whole ones fit 64 bits.
    """
    try:
        record = _record(json.loads(text), outcome, actions)
        _check(record)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as problem:
        raise InvalidInput(f"{type(problem).__name__}: {problem}"[:MAX_PROBLEM_CHARS], field="record") from problem
    return record


def read(text: str, outcome: str, at_ms: int, actions: ActionRegistry = ACTIONS) -> LedgerRecord | UnreadableRecord:
    """Read a record of any release as far as it can be read; `at_ms` is its place in the ledger."""
    try:
        return decode(text, outcome, actions)
    except InvalidInput as problem:
        return UnreadableRecord(at_ms, text, str(problem), outcome, *_sound_fields(text))


def _sound_fields(text: str) -> tuple[int | None, PartitionKey | None, str]:
    """Return version, partition and action of a record that cannot be read, each where it is there and sound."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return None, None, COMPACT
    if not isinstance(raw, dict):
        return None, None, COMPACT
    version, partition, action = raw.get("v"), raw.get("partition"), raw.get("action")
    is_version = type(version) is int and abs(version) <= MAX_WHOLE
    return (
        version if is_version else None,
        PartitionKey(str(partition)) if _is_partition(partition) else None,
        action if isinstance(action, str) and _KIND.fullmatch(action) else COMPACT,
    )


def _is_partition(value: object) -> bool:
    """Return whether this is the key of a partition, and can be written as UTF-8."""
    if not isinstance(value, str):
        return False
    try:
        values = partition_values(PartitionKey(value))
        "".join((value, *values, *(value for value in values.values() if value is not None))).encode()
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
    if not _is_partition(record.partition):
        raise ValueError("its partition is no text of partition values")
    if any(abs(int(value)) > MAX_WHOLE for value in record.predicted.values()):
        raise ValueError("a predicted number does not fit 64 bits")
    "".join((record.message, record.policy.version, *record.predicted, *(one.name for one in record.columns))).encode()
    if record.policy.filter is not None:
        parse_filter(record.policy.filter)
    float(state.mse())


def _record(raw: Mapping[str, Any], outcome: str, actions: ActionRegistry) -> LedgerRecord:
    kind = raw.get("action", COMPACT)
    return LedgerRecord(
        raw["at"],
        raw["v"],
        PartitionKey(raw["partition"]),
        DecisionKind(raw["verdict"]),
        _reason(raw["reason"], actions.any_of(kind).reasons),
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
        kind,
        _signals(raw.get("signals"), kind, actions),
        raw.get("forced", False) is True,
        _refused(raw),
        raw.get("filter", ""),
    )


def _refused(raw: Mapping[str, Any]) -> RefusedPart:
    stats = PartitionStats.decode(raw["refused"]) if "refused" in raw else EMPTY_STATS
    return RefusedPart(stats, raw.get("held") is True)


def _signals(raw: Mapping[str, Any] | None, kind: str, actions: ActionRegistry) -> TableSignals | None:
    if (raw is None) is not (actions.table_action(kind) is None):
        raise ValueError("a record has signals exactly where its action is on a whole table")
    return None if raw is None else from_values(TableSignals, raw)


_PIPELINE_CODES: Mapping[str, DecisionReason] = {str(reason): reason for reason in PIPELINE_REASONS}


def _reason(code: str, own: type[DecisionReason]) -> DecisionReason:
    """Return the reason of this code: one of the pipeline's, or one of the action's own."""
    return _PIPELINE_CODES.get(code) or own(code)


def predicted(decision: Decision) -> dict[str, float]:
    """Return what a decision predicts as a record has it; empty where it led to no job."""
    prediction = decision.prediction
    if prediction is None:
        return {}
    return {
        "files_replaced": prediction.files_replaced,
        "files_removed": prediction.files_removed,
        "bytes": prediction.bytes,
        "benefit": round(float(prediction.benefit), 3),
    }
