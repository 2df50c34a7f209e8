"""The report of a run: how its job ends, what it teaches the decider, and what was copied."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from actor.ports import EngineDeath, EngineDied, GroupOutcome, GroupStatus, RewriteOutcome
from actor.proofread.model import Proof, Reading
from actor.report import RunReport
from shared.errors import Corrupt, PermanentError, RetryableError
from shared.jobs.payload import COMPACT, JobPayload, PredictedCost, RunMeasure
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.policy.properties import policy_digest
from shared.prices import NOTHING_USED, Usage
from shared.queue.lua_library import ScriptName
from shared.table import DataFile, PartitionKey
from tests.support.worker_world import PAYLOAD, World, finish_args

MEMORY_PAYLOAD = JobPayload("memory://t", "t", Policy(), "eligible", PredictedCost(2, 1, 200, 1, 200))
PARTITION = PartitionKey("{}")


def report_of(kind: str) -> RunReport:
    """A run that merged two files into one."""
    inputs = tuple(DataFile(f"{number}.parquet", 100, PARTITION) for number in range(2))
    group = FileGroup(PARTITION, inputs, RewriteMode.MINOR)
    ended = GroupOutcome(group, GroupStatus.COMMITTED, (DataFile("new.parquet", 150, PARTITION),), 2)
    report = RunReport(MEMORY_PAYLOAD, kind=kind)
    report.record_rewrite(RewriteOutcome(2, (ended,), 1, 1))
    return report


def test_only_runs_of_compaction_are_measured_for_its_calibration() -> None:
    assert report_of(COMPACT).measures()[RunMeasure.MEASURED_BYTES] == 200
    assert report_of("another").measures() == {}
    assert report_of("another").counters()["rewrites"] == 1


def test_groups_with_deleted_rows_teach_nothing_about_how_much_outputs_shrink() -> None:
    inputs = (DataFile("0.parquet", 100, PARTITION, dv_id="u1", deleted_rows=5), DataFile("1.parquet", 100, PARTITION))
    ended = GroupOutcome(
        FileGroup(PARTITION, inputs, RewriteMode.MINOR),
        GroupStatus.COMMITTED,
        (DataFile("new.parquet", 150, PARTITION),),
        2,
    )
    report = RunReport(MEMORY_PAYLOAD)
    report.record_rewrite(RewriteOutcome(2, (ended,), 1, 1))
    assert not report.shrinking
    assert (report.counters()["bytes_replaced"], report.counters()["bytes_written"]) == (200, 150)


def test_rows_that_were_hidden_when_files_were_read_are_not_late() -> None:
    inputs = (DataFile("0.parquet", 100, PARTITION, dv_id="u1", deleted_rows=5),)
    output = DataFile("new.parquet", 100, PARTITION, dv_id="u2", deleted_rows=9)
    ended = GroupOutcome(
        FileGroup(PARTITION, inputs, RewriteMode.MINOR), GroupStatus.COMMITTED, (output,), 2, late_rows=2
    )
    report = RunReport(MEMORY_PAYLOAD)
    report.record_rewrite(RewriteOutcome(2, (ended,), 1, 1))
    assert report.counters()["late_rows_hidden"] == 2


def test_a_rewrite_that_committed_nothing_has_no_version() -> None:
    report, group = RunReport(MEMORY_PAYLOAD), FileGroup(PARTITION, (), RewriteMode.MINOR)
    taken = GroupOutcome(group, GroupStatus.CONFLICTED, conflicted_because="no_row_map")
    skipped = GroupOutcome(group, GroupStatus.SKIPPED)
    report.record_rewrite(RewriteOutcome(None, (skipped, taken), 1, 1, conflicts=2))
    assert (report.versions, report.counters()["conflicts"]) == ([], 2)
    assert report.counters()["conflicted_no_row_map"] == 1


FILE_PAYLOAD = JobPayload("file:///t", "t", Policy(), "eligible", PredictedCost(2, 1, 100), policy_digest({}))


def outcome(*, copied: bool, because: str = "", by_column: bool = False) -> GroupOutcome:
    files = tuple(DataFile(f"f{number}", 50, WHOLE_TABLE) for number in range(2))
    group = FileGroup(WHOLE_TABLE, files, RewriteMode.MINOR)
    new = (DataFile("new", 90, WHOLE_TABLE),)
    ways = {"is_copied": copied, "encoded_because": because, "by_column": by_column}
    return GroupOutcome(group, GroupStatus.COMMITTED, new, 10, **ways)


def test_copied_and_encoded_groups_are_counted_with_the_reason() -> None:
    report = RunReport(FILE_PAYLOAD)
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
    report = RunReport(FILE_PAYLOAD)
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
    smaller, full = RunReport(FILE_PAYLOAD), RunReport(replace(FILE_PAYLOAD, policy=Policy(target_bytes=100)))
    for report in (smaller, full):
        report.record_rewrite(RewriteOutcome(1, groups, 5, 5))
    assert smaller.shrinking == {RunMeasure.MERGED_BYTES: 200, RunMeasure.MERGED_INTO_BYTES: 180}
    assert full.shrinking == {RunMeasure.FILLED_BYTES: 200, RunMeasure.FILLED_INTO_BYTES: 180}
    measures = full.measures()
    assert (measures[RunMeasure.FILLED_BYTES], measures[RunMeasure.FILLED_INTO_BYTES]) == (200, 180)


def test_a_run_reports_and_counts_the_same_usage() -> None:
    world = World()
    world.run(cores=Fraction(10**6))  # So many that each nanosecond counts.

    args = finish_args(world.queue.sent[-1])
    counted = dict(zip(args[11::2], map(int, args[12::2]), strict=True))
    reported = Usage.decode(json.loads(world.end()["result"])["usage"])
    assert reported == Usage.of_counters(counted)
    assert reported.core_ms > 0
    assert (reported.bytes_read, reported.reads, reported.writes) == (800_000, 8, 2)


def test_a_run_that_leaves_nothing_to_do_is_done_and_satisfies_what_it_saw() -> None:
    world = World()
    world.run()
    end = world.end()
    assert (end["verdict"], end["seen"], end["cost"], end["id"], end["token"]) == ("done", 2, 800_000, "j-1", 7)


def test_a_table_whose_properties_changed_meanwhile_satisfies_no_request() -> None:
    world = World()
    world.engine.configuration = {"lakewright.min-input-files": "2"}
    world.run()
    assert world.end()["seen"] == -1


def test_a_rewrite_cancelled_because_it_did_not_stop_is_no_failure_of_the_job() -> None:
    world = World()

    def cancelled() -> None:
        world.lease.request_stop("preempt")
        raise RetryableError("cancelled")

    world.engine.before_commit = cancelled
    world.run()
    assert world.end()["verdict"] == "yield"


def test_a_failure_says_what_it_was_and_costs_an_attempt() -> None:
    world = World()

    def fail() -> None:
        raise OSError("disk on fire")

    world.engine.before_commit = fail
    world.run()
    assert (world.end()["verdict"], world.end()["error"]) == ("fail", "OSError: disk on fire")


def die(world: World, death: EngineDeath | None) -> None:
    def fail() -> None:
        world.engine.alive = False
        world.engine.death = death
        raise ConnectionRefusedError("no JVM")

    world.engine.before_commit = fail
    with pytest.raises(EngineDied):
        world.run()


@pytest.mark.parametrize(("was_asked", "verdict"), [(False, "crashed"), (True, "yield")])
def test_an_engine_that_died_is_reported_with_its_cause_and_ends_the_actor(was_asked: bool, verdict: str) -> None:
    world = World()
    die(world, EngineDeath("killed by SIGKILL (9)", was_requested=was_asked))
    assert (world.end()["verdict"], world.end()["error"]) == (verdict, "killed by SIGKILL (9)")
    assert world.heart.released == [world.lease]


def test_an_engine_that_cannot_be_ended_may_still_commit_and_nothing_is_reported() -> None:
    world = World()
    die(world, None)
    assert world.ends() == []


def test_an_engine_that_is_dead_already_claims_no_job() -> None:
    world = World()
    world.engine.alive = False
    with pytest.raises(EngineDied, match="between jobs"):
        world.run()
    assert world.queue.sent == []


@pytest.mark.parametrize(("field", "verdict"), [("clustering", "cancelled"), ("location", "fail")])
def test_a_refused_table_takes_its_job_away_and_a_place_out_of_reach_does_not(field: str, verdict: str) -> None:
    world = World()
    world.engine.refusal, world.engine.refused_field = "not this one", field
    world.run()
    assert (world.end()["verdict"], "not this one" in world.end()["error"]) == (verdict, True)


def test_the_end_is_reported_again_until_the_queue_answers() -> None:
    world = World()
    world.finish_fails = 3
    world.run()
    assert len(world.ends()) == 4
    assert len({end["nonce"] for end in world.ends()}) == 1, "a repetition is recognised by its nonce"


def test_payload_that_cannot_be_read_fail_the_job_and_free_the_slot() -> None:
    world = World()
    world.payload = replace(PAYLOAD, location="memory://t")
    world.answer = lambda transition: (  # type: ignore[method-assign]
        json.dumps(
            [["j-1", "t-1", "{}", "compact", "d", "1", "5", "7", "", "0", "1", "1", "0", "0", "{}", "0", "0", "0", ""]]
        )
        if transition.script is ScriptName.CLAIM
        else "deleted"
    )
    world.queue.answer = world.answer
    assert world.run()
    assert world.end()["verdict"] == "fail"
    assert world.heart.released == [world.lease]


def test_a_job_of_another_kind_is_not_run_as_a_compaction() -> None:
    world = World()
    world.kind = "recluster"
    world.run()
    assert world.engine.reads == 0
    assert world.end()["verdict"] == "fail"
    assert "'recluster'" in world.end()["error"]


@pytest.mark.parametrize(("table_uuid", "verdict"), [("t", "done"), ("another", "cancelled")])
def test_a_job_about_another_table_at_the_same_place_changes_nothing(table_uuid: str, verdict: str) -> None:
    world = World(payload=replace(PAYLOAD, table_uuid=table_uuid))
    world.run()
    assert (world.end()["verdict"], "another" in world.end()["error"]) == (verdict, verdict == "cancelled")
    assert bool(world.engine.origins) is (verdict == "done")


@pytest.mark.parametrize("error", [Corrupt("60 rows in, 59 rows out"), PermanentError("no such class")])
def test_what_repeating_cannot_cure_is_set_aside_at_once(error: Exception) -> None:
    """Corrupt data stays corrupt: eight attempts would only read it eight times."""
    world = World()

    def fail() -> None:
        raise error

    world.engine.before_commit = fail
    world.run()
    assert (world.end()["verdict"], str(error) in world.end()["error"]) == ("quarantine", True)
