"""The report of a run says how its groups were written, and why rows had to be decoded."""

import json
from dataclasses import replace

from actor.ports import GroupOutcome, GroupStatus, RewriteOutcome
from actor.proofread.model import Proof, Reading
from actor.report import RunReport
from shared.jobs.payload import JobPayload, PredictedCost, RunMeasure
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.policy.properties import policy_digest
from shared.table import DataFile
from shared.usage import NOTHING_USED

PAYLOAD = JobPayload("file:///t", "t", Policy(), "eligible", PredictedCost(2, 1, 100), policy_digest({}))


def outcome(*, copied: bool, because: str = "", by_column: bool = False) -> GroupOutcome:
    files = tuple(DataFile(f"f{number}", 50, WHOLE_TABLE) for number in range(2))
    group = FileGroup(WHOLE_TABLE, files, RewriteMode.MINOR)
    new = (DataFile("new", 90, WHOLE_TABLE),)
    ways = {"is_copied": copied, "encoded_because": because, "by_column": by_column}
    return GroupOutcome(group, GroupStatus.COMMITTED, new, 10, **ways)


def test_copied_and_encoded_groups_are_counted_with_the_reason() -> None:
    report = RunReport(PAYLOAD)
    groups = (
        outcome(copied=True),
        outcome(copied=False, because="schema"),
        outcome(copied=False, because="schema", by_column=True),
    )
    report.record_rewrite(RewriteOutcome(1, groups, 5, 5))

    measured = json.loads(report.encode(NOTHING_USED))["measured"]
    assert (measured["groups_copied"], measured["bytes_copied"], measured["encoded_schema"]) == (1, 100, 2)
    assert measured["groups_encoded_by_column"] == 1
    counters = report.counters()
    assert (counters["groups_copied"], counters["bytes_copied"], counters["encoded_schema"]) == (1, 100, 2)
    assert counters["groups_encoded_by_column"] == 1


def test_groups_are_counted_by_what_they_were_compared_by_and_the_reason_is_kept_of_those_that_were_not() -> None:
    report = RunReport(PAYLOAD)
    proofs = (
        Proof(Reading.ROWS, 10, reader="duckdb", cpu_ms=30),
        Proof(Reading.BYTES, 10, reader="bytes", cpu_ms=5),
        Proof(Reading.NONE, unverified_because="switched off"),
        *(Proof(Reading.NONE, unverified_because=f"reason {number}") for number in range(9)),
    )
    groups = tuple(replace(outcome(copied=True), proof=proof) for proof in proofs)
    report.record_rewrite(RewriteOutcome(1, groups, 5, 5))

    expected = {"groups_proofread_by_rows": 1, "groups_proofread_by_bytes": 1, "groups_unverified": 10}
    expected |= {"proofread_cpu_ms": 35}
    written = json.loads(report.encode(NOTHING_USED))
    assert expected.items() <= written["measured"].items()
    assert expected.items() <= report.counters().items()
    assert written["unverified_because"] == {"switched off": 1, **{f"reason {number}": 1 for number in range(4)}}


def test_how_much_outputs_shrink_is_learned_for_full_files_and_for_smaller_ones() -> None:
    """A full file needs 100 bytes of input under the second policy, however the group was written."""
    groups = (outcome(copied=True), outcome(copied=False, because="schema"))
    smaller, full = RunReport(PAYLOAD), RunReport(replace(PAYLOAD, policy=Policy(target_bytes=100)))
    for report in (smaller, full):
        report.record_rewrite(RewriteOutcome(1, groups, 5, 5))
    assert smaller.shrinking == {RunMeasure.MERGED_BYTES: 200, RunMeasure.MERGED_INTO_BYTES: 180}
    assert full.shrinking == {RunMeasure.FILLED_BYTES: 200, RunMeasure.FILLED_INTO_BYTES: 180}
    measures = full.measures()
    assert (measures[RunMeasure.FILLED_BYTES], measures[RunMeasure.FILLED_INTO_BYTES]) == (200, 180)
