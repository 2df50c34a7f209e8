"""What an actor makes of an index: the iterations of one job, what it refuses, and which commits raise an alarm."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from actor.formats.qbeast.index_commit import IndexCommit, RemovedIndexFile
from actor.formats.qbeast.index_job import IndexJob
from actor.ports import TableJob, TableJobOutcome
from shared.errors import (
    Conflict,
    Corrupt,
    InvalidInput,
    LeaseLost,
    OtherTable,
    PermanentError,
    RetryableError,
    Unsupported,
)
from shared.formats.qbeast.groups import eligible_groups, file_level
from shared.formats.qbeast.iterations import MAX_CONFLICTS
from shared.formats.qbeast.sampling import rows_read
from shared.jobs.index_options import IndexJobOptions
from shared.jobs.payload import INDEX
from shared.layout.commit_metadata import decode
from shared.paths.boundary import Boundary
from shared.policy.policy import Policy
from shared.policy.properties import policy_digest
from shared.table import CommitOrigin, PartitionColumn, TableProtocol
from tests.support.local_vacuum import Control
from tests.support.qbeast_library import MemoryLibrary
from tests.support.qbeast_tree import SPACE, QbeastTree

POLICY = Policy(index=True).with_traits(is_indexed=True)
ON = {"lakewright.index": "on"}


def library(appends: int = 10, **more: Any) -> MemoryLibrary:
    made = QbeastTree(random.Random(7), cube_size=5)
    for _ in range(appends):
        made.append(made.new_rows(60))
    return MemoryLibrary(made, dict(ON), **more)


def run(
    made: MemoryLibrary, control: Control | None = None, *, policy: Policy = POLICY, **more: Any
) -> TableJobOutcome:
    options = more.pop("options", IndexJobOptions())
    job = TableJob(INDEX, "file:///lake/t", policy, CommitOrigin("j", 7), options=options.encode(), **more)
    return IndexJob(made, Boundary(), job, control or Control(), clock_ms=lambda: 5).run()


def rows_of(made: MemoryLibrary) -> list[tuple[int, str]]:
    return sorted(row for some in made.tree.rows.values() for row in some)


def test_a_job_optimizes_until_nothing_is_eligible_and_reports_what_it_replaced() -> None:
    made, control = library(), Control()
    before = rows_of(made)
    done = run(made, control)
    assert not eligible_groups(made.tree.read().of_revision(1), SPACE)
    assert (done.is_complete, done.reason, rows_of(made)) == (True, "", before)
    assert done.figures["iterations"] == len(done.commits) == len(made.calls) == control.changes > 0
    assert control.figures == done.figures
    assert done.version == made.tree.version == done.commits[-1]
    assert {"files_replaced", "bytes_replaced", "files_written", "bytes_written"} <= set(done.figures)
    assert [made.marks[version] for version in done.commits] == [f"j/7/{n}" for n in range(1, len(done.commits) + 1)]


def test_files_are_rewritten_for_the_sample_of_the_policy_once_nothing_else_is_eligible() -> None:
    made = library(6)
    run(made)
    compacted = len(made.calls)
    rows, sample = rows_of(made), Fraction(1, 4)
    before = rows_read(made.tree.read().of_revision(1), float(sample))
    done = run(made, policy=replace(POLICY, index_sample=sample))
    marks = [decode(call.user_metadata) for call in made.calls[compacted:]]
    assert done.is_complete
    assert "sampling" in {mark.index_selection for mark in marks if mark is not None}
    assert rows_read(made.tree.read().of_revision(1), float(sample)) < before
    assert rows_of(made) == rows


def test_a_commit_names_the_blocks_of_its_inputs_in_the_order_of_their_paths() -> None:
    made = library()
    before = {file.path: file for file in made.tree.read().files}
    run(made, options=IndexJobOptions(budget_bytes=0))
    mark = decode(made.calls[0].user_metadata)
    assert mark is not None
    assert mark.index_input is not None
    assert mark.index_selection == "leveled"
    files = [before[path] for path in sorted(made.calls[0].paths)]
    assert mark.index_input.file_levels == tuple(file_level(file) for file in files)
    assert mark.index_input.blocks == sum(len(file.blocks) for file in files)
    assert mark.index_input.rows == made.calls[0].rows


def test_a_second_job_finds_nothing() -> None:
    made = library()
    run(made)
    done = run(made)
    assert (done.commits, done.is_complete) == ((), True)
    assert done.reason == "nothing in the index is eligible for a rewrite"


def test_what_others_append_meanwhile_is_optimized_by_the_next_iteration() -> None:
    made = library()
    left = [3]

    def append() -> None:
        if left[0]:
            left[0] -= 1
            made.tree.append(made.tree.new_rows(40))

    made.after = append
    done = run(made)
    assert done.is_complete
    assert sum(len(rows) for rows in made.tree.rows.values()) == 10 * 60 + 3 * 40
    assert not eligible_groups(made.tree.read().of_revision(1), SPACE)


def test_files_that_others_took_are_chosen_again_and_never_written_from_an_old_list() -> None:
    made = library()
    left = [MAX_CONFLICTS - 1]

    def drop() -> None:
        if left[0]:
            left[0] -= 1
            made.tree.drop(made.calls[-1].paths[0])

    made.before = drop
    done = run(made)
    assert done.is_complete
    for call in made.calls:
        assert len(set(call.paths)) == len(call.paths)
    assert len(made.calls) == len(done.commits) + MAX_CONFLICTS - 1


def test_a_job_that_others_forestall_again_and_again_waits_as_any_other() -> None:
    made = library(appends=30)
    made.before = lambda: made.tree.drop(made.calls[-1].paths[0])
    with pytest.raises(Conflict):
        run(made)


def test_a_job_ends_between_iterations_when_asked_and_goes_on_later() -> None:
    made, control = library(), Control()
    control.stop_after = 1
    small = IndexJobOptions(budget_bytes=0)
    done = run(made, control, options=small)
    assert (len(done.commits), done.is_complete) == (1, False)
    assert run(made, options=small).commits


def test_the_bytes_of_one_job_are_limited() -> None:
    made = library()
    done = run(made, policy=replace(POLICY, max_bytes_per_job=1), options=IndexJobOptions(budget_bytes=0))
    assert (len(done.commits), done.is_complete) == (1, False)


def test_the_bytes_of_an_iteration_come_from_the_request_or_from_the_table() -> None:
    asked, owned = library(), library()
    owned.properties["use.optimization.bytes-per-iter"] = "0"
    run(asked, options=IndexJobOptions(budget_bytes=0))
    run(owned)
    everything = library()
    run(everything)
    assert [call.paths for call in asked.calls] == [call.paths for call in owned.calls]
    assert len(asked.calls) > len(everything.calls)


def test_a_lost_lease_ends_the_job_before_the_library_is_called() -> None:
    made, control = library(), Control()

    def lose(_count: int) -> None:
        raise LeaseLost("gone")

    control.before_change = lose
    with pytest.raises(LeaseLost):
        run(made, control)
    assert not made.calls


def _doubled(commit: IndexCommit) -> Sequence[IndexCommit]:
    # Another writer's commit right before ours removed one of our inputs, and our rewrite wrote its rows again.
    return IndexCommit(commit.version - 1, "", (), commit.removed[:1]), commit


def _short(commit: IndexCommit) -> Sequence[IndexCommit]:
    first, *others = commit.added
    return (replace(commit, added=(replace(first, rows=(first.rows or 0) - 1), *others)),)


def _other_file(commit: IndexCommit) -> Sequence[IndexCommit]:
    return (replace(commit, removed=(*commit.removed[1:], RemovedIndexFile("other", 1))),)


def _twice_removed(commit: IndexCommit) -> Sequence[IndexCommit]:
    return (replace(commit, removed=(*commit.removed, commit.removed[0])),)


def _again(commit: IndexCommit) -> Sequence[IndexCommit]:
    return commit, replace(commit, version=commit.version + 1)


def _metadata(commit: IndexCommit) -> Sequence[IndexCommit]:
    return (replace(commit, changes_table=True),)


def _uncounted(commit: IndexCommit) -> Sequence[IndexCommit]:
    *others, last = commit.added
    return (replace(commit, added=(*others, replace(last, rows=None))),)


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (_doubled, "rows are there twice"),
        (_short, "its outputs"),
        (_uncounted, "has no numRecords"),
        (_other_file, "not the"),
        (_twice_removed, "not the"),
        (_again, "committed 2 times"),
        (_metadata, "metadata or protocol"),
    ],
)
def test_a_commit_that_differs_from_its_plan_raises_an_alarm_that_says_what_to_restore(
    damage: Callable[[IndexCommit], Sequence[IndexCommit]], text: str
) -> None:
    made = library(damage=damage)
    with pytest.raises(Corrupt, match=text) as caught:
        run(made)
    assert f"RESTORE TABLE delta.`file:///lake/t` TO VERSION AS OF {made.tree.version - 1}" in str(caught.value)
    assert len(made.calls) == 1


def test_a_failure_after_the_commit_is_no_failure() -> None:
    made = library(fails=RetryableError("the answer was lost"))
    done = run(made)
    assert done.is_complete
    assert len(done.commits) == len(made.calls)


def test_a_commit_that_the_check_refuses_ends_the_job_and_changes_nothing() -> None:
    made = library(fails=PermanentError("the output x has no numRecords"), ignores=True)
    before = rows_of(made)
    with pytest.raises(PermanentError, match="has no numRecords"):
        run(made)
    assert (len(made.calls), rows_of(made)) == (1, before)


def test_a_failure_without_a_commit_ends_the_job() -> None:
    with pytest.raises(RetryableError, match="no memory"):
        run(library(fails=RetryableError("no memory"), ignores=True))


def test_a_library_that_does_nothing_is_not_called_again() -> None:
    made = library(ignores=True)
    with pytest.raises(PermanentError, match="did not get better"):
        run(made)
    assert len(made.calls) == 1


def test_a_job_has_nothing_to_do_once_the_owner_changed_the_properties() -> None:
    made = library()
    decided = policy_digest(made.snapshot().metadata.configuration)
    made.properties["use.optimization.bytes-per-iter"] = "200 MB"
    done = run(made, policy_digest=decided)
    assert (done.commits, done.is_complete, "changed" in done.reason) == ((), True, True)
    off = library()
    off.properties["lakewright.enabled"] = "false"
    assert not run(off).commits
    assert run(off, even_if_disabled=True).commits


def test_a_property_that_changes_during_a_job_ends_it_after_the_iteration() -> None:
    made = library()
    decided = policy_digest(made.snapshot().metadata.configuration)
    made.after = lambda: made.properties.update({"use.optimization.bytes-per-iter": "1 GB"})
    done = run(made, policy_digest=decided, options=IndexJobOptions(budget_bytes=0))
    assert (len(done.commits), done.is_complete) == (1, True)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            {"protocol": TableProtocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors"}))},
            "deletion vectors",
        ),
        ({"protocol": TableProtocol(1, 7, frozenset(), frozenset({"rowTracking"}))}, "rowTracking"),
        ({"partition_columns": (PartitionColumn("p", "p", "string"),)}, "partitioned"),
    ],
)
def test_a_table_that_the_library_would_damage_is_refused(more: dict[str, Any], text: str) -> None:
    made = library(**more)
    with pytest.raises(Unsupported, match=text):
        run(made)
    assert not made.calls


def test_column_mapping_is_refused() -> None:
    made = library()
    made.properties["delta.columnMapping.mode"] = "name"
    with pytest.raises(Unsupported, match="maps its columns"):
        run(made)


def test_files_of_the_legacy_format_are_refused() -> None:
    made = library()
    path, file = next(iter(made.tree.files.items()))
    made.tree.files[path] = replace(file, tags={"cube": "", "state": "FLOODED"})
    with pytest.raises(Unsupported, match="before version"):
        run(made)


def test_another_table_at_the_place_and_one_without_an_index_are_left_alone() -> None:
    with pytest.raises(OtherTable):
        run(library(), table_uuid="other")
    plain = library()
    plain.properties["qbeast.lastRevisionID"] = ""
    snapshot = plain.snapshot()
    bare = replace(snapshot, metadata=replace(snapshot.metadata, configuration=ON))
    plain.snapshot = lambda: bare  # type: ignore[method-assign]
    with pytest.raises(Unsupported, match="no Qbeast index"):
        run(plain)


def test_files_of_other_writers_stay_as_they_are_and_are_named() -> None:
    made = library(appends=0)
    made.tree.append_plainly(made.tree.new_rows(30))
    done = run(made)
    assert "1 files are not indexed" in done.reason
    with pytest.raises(InvalidInput, match="cannot index files"):
        run(made, options=IndexJobOptions(revision=0))
