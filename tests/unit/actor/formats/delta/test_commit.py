"""What a commit to a Delta table removes and adds, which groups still fit, and which commit of the log is ours."""

import json
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from actor.formats.delta.caches import DeltaCaches
from actor.formats.delta.commit import DeltaTarget
from actor.formats.delta.commit_file import CommitFile, decode_new_commits
from actor.formats.delta.conflicts import classify, conflict_kind, refused, translate
from actor.formats.delta.late_rows import RowHider
from actor.formats.delta.output_paths import OutputPaths
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.write import DeltaWriter
from actor.formats.delta.written_group import WrittenGroup
from actor.formats.parquet.copy_rules import CopyRule
from actor.jvm.errors import first_line, jvm_class_names
from actor.jvm.sessions import USER_METADATA
from actor.proofread.model import Proof, Reading
from actor.rewrite.model import Attempt, NotAsked, Verdict
from shared.errors import Conflict, RefusedFiles, RetryableError
from shared.formats.delta_orphans import MIN_ORPHAN_AGE_MS
from shared.table import CommitOrigin
from tests.support.fake_copies import UNREAD
from tests.support.fake_delta import FakeScala, FakeTable, live_group
from tests.support.fake_delta_table import METADATA, PREFIX, Failure, add, remove, vector
from tests.support.java_errors import JavaError

ORIGIN = CommitOrigin("j-1", 7)
MARK = json.dumps({"lakewright": {"job": "j-1", "token": 7}})


class World:
    """A table with two written groups, {a, b} and {c}."""

    def __init__(self) -> None:
        self.table = FakeTable(user_metadata=MARK)
        self.table.commit(*map(add, "abcd"))
        log = self.table.log()
        scala = FakeScala(self.table)
        snapshot = log.transaction().snapshot()
        shape = log.shape(snapshot)
        tasks = ParquetTasks(scala, log, OutputPaths(scala, log, snapshot, shape, PREFIX), DeltaCaches())
        hider = RowHider(scala, log, shape, UNREAD)
        self.writer = DeltaWriter(scala, snapshot, tasks, CopyRule(is_allowed=False), hider)
        self.written = tuple(map(self.writer.write, (live_group(self.table, "a", "b"), live_group(self.table, "c"))))
        self.outputs = [path for group in self.written for path in group.paths]
        self.target = DeltaTarget(scala, log, shape, ORIGIN)

    def begin(self) -> Attempt[WrittenGroup]:
        return self.target.begin(self.written)


@pytest.fixture
def world() -> World:
    return World()


def test_what_was_written_replaces_its_inputs_in_one_commit_that_changes_no_data(world: World) -> None:
    attempt = world.begin()
    assert attempt.groups == world.written
    assert world.target.commit(attempt) == 1
    assert world.table.live() == {"d", *world.outputs}
    bodies = [*world.table.bodies("add", after=0), *world.table.bodies("remove", after=0)]
    assert [body["dataChange"] for body in bodies] == [False] * 5
    assert world.target.find(attempt) == 1


def test_the_inputs_are_removed_now_so_that_vacuum_leaves_them_to_readers_for_the_whole_retention(world: World) -> None:
    before_ms = time.time_ns() // 1_000_000
    world.target.commit(world.begin())
    after_ms = time.time_ns() // 1_000_000
    removals = world.table.bodies("remove", after=0)
    assert [body["path"] for body in removals] == ["a", "b", "c"]
    assert all(before_ms <= body["deletionTimestamp"] <= after_ms for body in removals)


def test_delta_gets_the_files_that_the_outputs_were_made_from_and_the_metrics_of_what_lands(world: World) -> None:
    world.target.commit(world.begin())
    assert world.table.attempts[0].read == ["a", "b", "c"]
    assert (world.table.metrics["numRemovedFiles"], world.table.metrics["numAddedFiles"]) == (3, 2)


def test_a_commit_says_by_what_its_groups_were_compared_at_least(world: World) -> None:
    world.table.conf[USER_METADATA] = MARK
    attempt = world.begin()
    first, *others = attempt.groups
    world.target.commit(replace(attempt, groups=(replace(first, proof=Proof(Reading.ROWS)), *others)))
    (mark,) = (action["commitInfo"] for action in world.table.history[-1] if "commitInfo" in action)
    found = json.loads(mark["userMetadata"])["lakewright"]
    assert found == {"job": "j-1", "token": 7, "proofread": "unverified"}
    assert world.table.conf[USER_METADATA] == MARK


@pytest.mark.parametrize("touch", [remove("b"), add("b", deletionVector=vector(1))])
def test_a_group_that_others_took_is_not_part_of_the_next_attempt(world: World, touch: dict[str, object]) -> None:
    world.table.commit(touch)
    attempt = world.begin()
    assert attempt.groups == world.written[1:]
    assert world.target.commit(attempt) == 2
    assert [body["path"] for body in world.table.bodies("remove", after=1)] == ["c"]


def test_a_change_of_the_layout_refuses_the_files(world: World) -> None:
    world.table.commit({"metaData": METADATA | {"partitionColumns": []}})
    with pytest.raises(Conflict) as caught:
        world.begin()
    assert caught.value.kind == "MetadataChangedException"


def test_a_commit_that_landed_before_ours_was_tried_is_not_ours(world: World) -> None:
    """Found is only what came after the version that the attempt was made on: an earlier rewrite has the same mark."""
    world.table.commit({"commitInfo": {"userMetadata": MARK}}, remove("c"))
    assert world.target.find(world.begin()) is None


@pytest.mark.parametrize(
    "actions",
    [
        [remove("a"), remove("b"), remove("c"), add("another-output")],
        [remove("a"), add("out-0"), add("out-1")],
        [],
    ],
)
def test_another_commit_of_the_same_job_and_token_is_not_taken_for_this_one(
    world: World, actions: list[dict[str, object]]
) -> None:
    attempt = world.begin()
    world.table.commit({"commitInfo": {"userMetadata": MARK}}, *actions)
    assert world.target.find(attempt) is None


@pytest.mark.parametrize("asked", [True, False])
def test_a_failure_before_the_log_was_asked_is_certain(world: World, asked: bool) -> None:
    world.table.fails = [Failure(JavaError("IOException"), asked=asked)]
    with pytest.raises(Exception) as caught:  # noqa: PT011 - judged below
        world.target.commit(world.begin())
    assert world.target.failures.verdict(caught.value) is (Verdict.UNKNOWN if asked else Verdict.REFUSED)


def test_outputs_are_measured_and_deleted_by_their_paths(world: World) -> None:
    del world.table.disk[world.outputs[0]]
    assert list(world.target.sizes(world.outputs).items()) == [(world.outputs[0], None), (world.outputs[1], 100)]
    world.target.delete(world.outputs)
    assert world.table.deleted == world.outputs


def test_outputs_are_committed_until_half_the_age_at_which_a_vacuum_deletes_them(world: World) -> None:
    assert world.target.max_output_age_s * 2_000 == MIN_ORPHAN_AGE_MS


def test_what_the_attempt_wrote_besides_its_outputs_is_listed_and_nothing_of_others(world: World) -> None:
    mine: Callable[[str], str] = lambda name: f"p=a/{PREFIX}{name}"  # noqa: E731
    world.table.disk |= {mine("left"): 1, mine("kept"): 1, "p=a/lwothers-left": 1, f"p=b/{PREFIX}x": 1}
    assert world.writer.leftovers([mine("kept")]) == [mine("left")]
    assert not world.writer.may_have_lost_attempts()


def test_lines_are_distinguished_by_line_feeds_only() -> None:
    """U+2028 and others end a line for Python, and stand in partition values."""
    commit = CommitFile("", '{"add": {"path": "a\u2028b"}}\n{"remove": {"path": "c"}}\n')
    assert commit.actions == [{"add": {"path": "a\u2028b"}}, {"remove": {"path": "c"}}]


def test_commits_that_were_read_together_are_cut_at_bytes_not_at_characters() -> None:
    texts = ['{"add": {"path": "ä"}}\n', "", '{"add": {"path": "\u2028"}}']
    raw = [text.encode() for text in texts]
    said = {"is_known": True, "commits": [{"digest": f"d{n}", "bytes": len(one)} for n, one in enumerate(raw)]}
    found = decode_new_commits(json.dumps(said).encode() + b"\n" + b"".join(raw))
    assert found.commits == tuple(CommitFile(f"d{n}", text) for n, text in enumerate(texts))
    assert json.loads(found.described) == said


def test_the_conflict_itself_is_named_rather_than_its_parent_class() -> None:
    error = JavaError("DeltaConcurrentModificationException", "ConcurrentAppendException")
    assert conflict_kind(error) == "ConcurrentAppendException"
    assert conflict_kind(JavaError("DeltaConcurrentModificationException")) == "DeltaConcurrentModificationException"
    assert conflict_kind(JavaError("IOException")) is None


def test_an_error_of_python_is_judged_by_its_own_classes_too() -> None:
    class MetadataChangedException(Exception):  # noqa: N818 - PySpark's name
        """As PySpark wraps Delta's."""

    assert classify(MetadataChangedException()) is Verdict.CHANGED
    assert classify(TimeoutError("no answer")) is Verdict.UNKNOWN


def test_a_refusal_is_a_conflict_with_deltas_name_for_it() -> None:
    busy = JavaError("DeltaIllegalStateException", message="[DELTA_MAX_COMMIT_RETRIES_EXCEEDED] x")
    for error, kind in ((JavaError("ConcurrentAppendException"), "ConcurrentAppendException"), (busy, Verdict.BUSY)):
        conflict = refused(error, "t")
        assert isinstance(conflict, Conflict)
        assert conflict.kind == kind


def test_a_commit_that_was_not_asked_for_is_no_conflict_and_says_that_nothing_was_committed() -> None:
    error = NotAsked("not asked")
    error.__cause__ = JavaError("IOException", message="the store is away")
    problem = refused(error, "t")
    assert type(problem) is RetryableError
    assert str(problem) == "committing to t: IOException: the store is away; nothing was committed"


def test_pages_that_spark_does_not_read_are_refused_and_not_tried_again() -> None:
    error = JavaError("SparkException", "SparkUnsupportedOperationException", message="Unsupported encoding: RLE_X")
    problem = translate(error, "writing t", so="the table is unchanged")
    assert isinstance(problem, RefusedFiles)
    assert "the table is unchanged; Spark does not read this encoding" in str(problem)


def test_the_first_line_names_the_outermost_and_the_innermost_cause_and_is_short() -> None:
    error = JavaError("SparkException", "Middle", "IOException", message="one\ntwo" + "x" * 1000)
    assert first_line(error) == "SparkException: one <- IOException: one"
    assert len(first_line(ValueError("x" * 1000))) < 520
    assert jvm_class_names(error)[-3:] == ("SparkException", "Middle", "IOException")
