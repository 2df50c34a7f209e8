"""What an actor makes of an index: the iterations of one job, what they are told, and what is refused."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pytest

from actor.formats.qbeast.index_job import IndexJob
from actor.formats.qbeast.index_table import FileRanges, IndexRewrite
from actor.formats.qbeast.new_files import NewFiles
from actor.ports import TableJob, TableJobOutcome
from shared.errors import (
    Conflict,
    LeaseLost,
    OtherTable,
    PermanentError,
    RefusedFiles,
    Unsupported,
)
from shared.formats.qbeast.files import FileClass, IndexFile
from shared.formats.qbeast.groups import eligible_groups, file_level
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.iterations import MAX_CONFLICTS, Iteration, Strategy
from shared.formats.qbeast.next_revision import RangedColumn, ValueRange
from shared.formats.qbeast.sampling import rows_read
from shared.formats.qbeast.weights import weights_to_place_by
from shared.jobs.options import IndexJobOptions
from shared.jobs.payload import INDEX
from shared.layout.commit_metadata import CommitMetadata
from shared.paths.boundary import Boundary
from shared.policy.policy import Policy
from shared.policy.properties import policy_digest
from shared.refusals import RefusalReason
from shared.table import CommitOrigin, PartitionColumn, Snapshot, TableMetadata
from tests.support.local_vacuum import Control
from tests.support.qbeast_tree import SPACE, QbeastTree, configuration

POLICY = Policy(index=True).with_traits(is_indexed=True)
ON = {"lakewright.index": "on"}


@dataclass
class MemoryIndex:
    """`actor.formats.qbeast.index_job.IndexTable` on a simulated table; `properties` are its own beside the index's.

    before and after: what others do around each rewrite. ignores: rewrites do nothing. values: of each file that is not
    indexed, as `ranges` returns them. described: the properties of each revision that was set.
    """

    tree: QbeastTree
    properties: dict[str, str] = field(default_factory=lambda: dict(ON))
    partition_columns: tuple[PartitionColumn, ...] = ()
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None
    ignores: bool = False
    calls: list[IndexRewrite] = field(default_factory=list)
    marks: list[CommitMetadata] = field(default_factory=list)
    verified: list[IndexRewrite] = field(default_factory=list)
    values: dict[str, FileRanges] = field(default_factory=dict)
    described: list[Mapping[str, str]] = field(default_factory=list)

    def snapshot(self) -> Snapshot:
        settings = {**configuration(self.tree.cube_size), **self.properties}
        return replace(self.tree.snapshot(), metadata=TableMetadata("u", self.partition_columns, settings))

    def rewrite(self, wanted: IndexRewrite, mark: CommitMetadata) -> tuple[int, Mapping[str, int]]:
        self.calls.append(wanted)
        self.marks.append(mark)
        self.before()
        if not self.ignores:
            strategy = Strategy.LEVELED if wanted.added is None else Strategy.UNINDEXED
            self.tree.optimize(Iteration(strategy, wanted.files))
        self.after()
        return self.tree.version, {"files_replaced": len(wanted.files), "bytes_replaced": 1, "files_written": 1}

    def verify(self, wanted: IndexRewrite) -> int:
        self.verified.append(wanted)
        return sum(file.rows for file in wanted.files)

    def column_types(self) -> Mapping[str, str]:
        return {"price": "double", "user": "double"}

    def ranges(
        self, files: Sequence[IndexFile], columns: Sequence[RangedColumn], zone: str
    ) -> Mapping[str, FileRanges]:
        assert [one.name for one in columns] == ["price", "user"]
        assert zone == ""
        return {file.path: self.values.get(file.path, {}) for file in files}

    def set_properties(self, properties: Mapping[str, str], mark: CommitMetadata) -> int:
        self.described.append(properties)
        self.marks.append(mark)
        self.properties.update(properties)
        self.tree.version += 1
        return self.tree.version


def index(appends: int = 10, **more: Any) -> MemoryIndex:
    made = QbeastTree(random.Random(7), cube_size=5)
    for _ in range(appends):
        made.append(made.new_rows(60))
    return MemoryIndex(made, **more)


def run(made: MemoryIndex, control: Control | None = None, *, policy: Policy = POLICY, **more: Any) -> TableJobOutcome:
    options = more.pop("options", IndexJobOptions())
    job = TableJob(INDEX, "file:///lake/t", policy, CommitOrigin("j", 7), options=options.encode(), **more)
    return IndexJob(made, Boundary(), job, control or Control(), clock_ms=lambda: 5).run()


def rows_of(made: MemoryIndex) -> list[tuple[int, str]]:
    return sorted(row for some in made.tree.rows.values() for row in some)


def test_a_job_optimizes_until_nothing_is_eligible_and_reports_what_it_replaced() -> None:
    made, control = index(), Control()
    before = rows_of(made)
    done = run(made, control)
    assert not eligible_groups(made.tree.read().of_revision(1), SPACE)
    assert (done.is_complete, done.reason, rows_of(made)) == (True, "", before)
    assert done.figures["iterations"] == len(done.commits) == len(made.calls) == control.changes > 0
    assert control.figures == done.figures
    assert done.version == made.tree.version == done.commits[-1]
    assert done.figures["files_replaced"] == sum(len(call.files) for call in made.calls)
    assert [mark.round for mark in made.marks] == list(range(1, len(done.commits) + 1))
    assert {(mark.origin, mark.mode, mark.started_ms) for mark in made.marks} == {(CommitOrigin("j", 7), INDEX, 5)}


def test_files_are_rewritten_for_the_sample_of_the_policy_once_nothing_else_is_eligible() -> None:
    made = index(6)
    run(made)
    compacted = len(made.calls)
    rows, sample = rows_of(made), Fraction(1, 4)
    before = rows_read(made.tree.read().of_revision(1), float(sample))
    done = run(made, policy=replace(POLICY, index_sample=sample))
    assert done.is_complete
    assert "sampling" in {mark.index_selection for mark in made.marks[compacted:]}
    assert rows_read(made.tree.read().of_revision(1), float(sample)) < before
    assert rows_of(made) == rows


def test_a_commit_names_the_blocks_of_its_inputs_in_the_order_of_their_paths() -> None:
    made = index()
    before = {file.path: file for file in made.tree.read().files}
    run(made, options=IndexJobOptions(budget_bytes=0))
    mark, wanted = made.marks[0], made.calls[0]
    assert mark.index_input is not None
    assert mark.index_selection == "leveled"
    files = [before[path] for path in sorted(file.path for file in wanted.files)]
    assert mark.index_input.file_levels == tuple(file_level(file) for file in files)
    assert mark.index_input.blocks == sum(len(file.blocks) for file in files)
    assert mark.index_input.rows == sum(file.rows for file in wanted.files)


def test_a_run_of_one_strategy_leaves_the_files_of_all_others() -> None:
    made = index()
    made.tree.append_plainly(made.tree.new_rows(5))
    waiting = len(made.tree.read().of_class(FileClass.UNINDEXED))
    run(made, options=IndexJobOptions(strategy="leveled"))
    assert {mark.index_selection for mark in made.marks} == {"leveled"}
    assert len(made.tree.read().of_class(FileClass.UNINDEXED)) == waiting == 1
    before = list(made.marks)
    run(made, options=IndexJobOptions(strategy="sampling"))
    assert made.marks == before, "no query of the table samples"


def test_rows_are_placed_by_the_weights_of_all_files_of_the_revision() -> None:
    made = index()
    weights = weights_to_place_by(made.tree.read().of_revision(1), SPACE)
    run(made, options=IndexJobOptions(budget_bytes=0))
    wanted = made.calls[0]
    assert wanted.weights == weights
    assert (wanted.revision.id, [one.kind for one in wanted.coordinates]) == (1, ["linear", "linear"])


def test_a_revision_whose_rules_are_not_known_is_refused() -> None:
    made = index()
    made.properties["qbeast.revision.1"] = configuration(5)["qbeast.revision.1"].replace("LinearTransformation", "New")
    with pytest.raises(RefusedFiles, match="'New' of 'price' is not known") as refused:
        run(made)
    assert (refused.value.reason, made.calls) == (RefusalReason.INDEX, [])


def test_files_that_others_took_are_chosen_again_and_never_written_from_an_old_list() -> None:
    made = index()
    left = [MAX_CONFLICTS - 1]

    def drop() -> None:
        if left[0]:
            left[0] -= 1
            made.tree.drop(made.calls[-1].files[0].path)

    made.before = drop
    done = run(made)
    assert done.is_complete
    for call in made.calls:
        assert len(set(call.files)) == len(call.files)
    assert len(made.calls) == len(done.commits) + MAX_CONFLICTS - 1


def test_a_job_that_others_forestall_again_and_again_waits_as_any_other() -> None:
    made = index(appends=30)
    made.before = lambda: made.tree.drop(made.calls[-1].files[0].path)
    with pytest.raises(Conflict):
        run(made)


def test_a_job_ends_between_iterations_when_asked_and_goes_on_later() -> None:
    made, control = index(), Control()
    control.stop_after = 1
    small = IndexJobOptions(budget_bytes=0)
    done = run(made, control, options=small)
    assert (len(done.commits), done.is_complete) == (1, False)
    assert run(made, options=small).commits


def test_an_index_is_verified_in_batches_of_its_files_and_nothing_is_changed() -> None:
    made, control = index(), Control()
    made.tree.append_plainly(made.tree.new_rows(30))
    files, version = made.tree.read().of_revision(1), made.tree.version
    done = run(made, control, options=IndexJobOptions(budget_bytes=1, only_verifies=True))
    assert [call.files for call in made.verified] == [(file,) for file in files]
    assert done.figures == control.figures
    assert done.figures == {
        "files_verified": len(files),
        "blocks_verified": sum(len(file.blocks) for file in files),
        "rows_verified": sum(file.rows for file in files),
    }
    assert (control.changes, made.calls, made.tree.version, done.commits) == (0, [], version, ())
    run(made, options=IndexJobOptions(only_verifies=True))
    assert made.verified[-1].files == files
    assert "no file of the table is indexed" in run(made, options=IndexJobOptions(2, only_verifies=True)).reason
    control.stop_after = 0
    stopped = run(made, control, options=IndexJobOptions(only_verifies=True))
    assert (stopped.is_complete, dict(stopped.figures)) == (False, {})


def test_the_bytes_of_one_job_are_limited() -> None:
    made = index()
    done = run(made, policy=replace(POLICY, max_bytes_per_job=1), options=IndexJobOptions(budget_bytes=0))
    assert (len(done.commits), done.is_complete) == (1, False)


def test_the_bytes_of_an_iteration_come_from_the_request_or_from_the_table() -> None:
    asked, owned = index(), index()
    owned.properties["use.optimization.bytes-per-iter"] = "0"
    run(asked, options=IndexJobOptions(budget_bytes=0))
    run(owned)
    everything = index()
    run(everything)
    assert [call.files for call in asked.calls] == [call.files for call in owned.calls]
    assert len(asked.calls) > len(everything.calls)


def test_a_lost_lease_ends_the_job_before_anything_is_written() -> None:
    made, control = index(), Control()

    def lose(_count: int) -> None:
        raise LeaseLost("gone")

    control.before_change = lose
    with pytest.raises(LeaseLost):
        run(made, control)
    assert not made.calls


def test_a_rewrite_that_changes_nothing_is_not_repeated() -> None:
    made = index(ignores=True)
    with pytest.raises(PermanentError, match="did not get better"):
        run(made)
    assert len(made.calls) == 1


def test_a_job_has_nothing_to_do_once_the_owner_changed_the_properties() -> None:
    made = index()
    decided = policy_digest(made.snapshot().metadata.configuration)
    made.properties["use.optimization.bytes-per-iter"] = "200 MB"
    done = run(made, policy_digest=decided)
    assert (done.commits, done.is_complete, "changed" in done.reason) == ((), True, True)
    off = index()
    off.properties["lakewright.enabled"] = "false"
    assert not run(off).commits
    assert run(off, even_if_disabled=True).commits


def test_a_property_that_changes_during_a_job_ends_it_after_the_iteration() -> None:
    made = index()
    decided = policy_digest(made.snapshot().metadata.configuration)
    made.after = lambda: made.properties.update({"use.optimization.bytes-per-iter": "1 GB"})
    done = run(made, policy_digest=decided, options=IndexJobOptions(budget_bytes=0))
    assert (len(done.commits), done.is_complete) == (1, True)


def test_a_partitioned_table_is_refused() -> None:
    made = index(partition_columns=(PartitionColumn("p", "p", "string"),))
    with pytest.raises(Unsupported, match="partitioned"):
        run(made)
    assert not made.calls


def test_files_of_the_legacy_format_are_refused() -> None:
    made = index()
    path, file = next(iter(made.tree.files.items()))
    made.tree.files[path] = replace(file, tags={"cube": "", "state": "FLOODED"})
    with pytest.raises(Unsupported, match="before version"):
        run(made)


def test_another_table_at_the_place_and_one_without_an_index_are_left_alone() -> None:
    with pytest.raises(OtherTable):
        run(index(), table_uuid="other")
    plain = index()
    plain.properties["qbeast.lastRevisionID"] = ""
    snapshot = plain.snapshot()
    bare = replace(snapshot, metadata=replace(snapshot.metadata, configuration=ON))
    plain.snapshot = lambda: bare  # type: ignore[method-assign]
    with pytest.raises(Unsupported, match="no Qbeast index"):
        run(plain)


def unindexed(made: MemoryIndex) -> list[str]:
    return [file.path for file in made.tree.read().of_class(FileClass.UNINDEXED)]


def test_files_of_other_writers_are_indexed_by_the_weights_that_their_rows_leave() -> None:
    made = index(appends=3)
    made.tree.append_plainly(made.tree.new_rows(30))
    rows, (path,) = rows_of(made), unindexed(made)
    done = run(made, options=IndexJobOptions(revision=0))
    assert (done.is_complete, unindexed(made), rows_of(made)) == (True, [], rows)
    (wanted,) = made.calls
    assert ([file.path for file in wanted.files], wanted.revision.id, made.described) == ([path], 1, [])
    assert wanted.added is not None
    assert wanted.added.domains[""] == 3 * 60
    assert (made.marks[0].index_selection, made.verified) == ("unindexed", [])


def test_the_revision_that_values_need_is_set_before_their_files_are_indexed() -> None:
    made = index(appends=0)
    made.tree.append_plainly(made.tree.new_rows(30))
    (path,) = unindexed(made)
    made.values[path] = {"price": ValueRange(0.5, 7.0)}
    control = Control()
    done = run(made, control, options=IndexJobOptions(revision=0))
    assert [sorted(one) for one in made.described] == [["qbeast.lastRevisionID", "qbeast.revision.2"]]
    assert [(mark.mode, mark.round) for mark in made.marks] == [("set_properties", None), (INDEX, 1)]
    assert (made.calls[0].revision.id, control.changes, len(done.commits)) == (2, 2, 2)
    assert [point for point, *_ in control.points] == ["describing", "optimizing", "committed"]


def test_a_revision_that_could_not_be_followed_is_never_set() -> None:
    made = index(appends=0)
    made.tree.append_plainly(made.tree.new_rows(30))
    made.values[unindexed(made)[0]] = {"price": ValueRange(-1.6e308, 1.6e308)}
    with pytest.raises(RefusedFiles, match="is no length"):
        run(made)
    assert (made.described, made.calls) == ([], [])


def test_files_without_a_place_stay_and_the_job_goes_on_without_them() -> None:
    made = index(appends=3)
    for _ in range(2):
        made.tree.append_plainly(made.tree.new_rows(30))
    odd, other = unindexed(made)
    made.values[odd] = None
    done = run(made)
    assert (done.is_complete, unindexed(made)) == (True, [odd])
    assert [file.path for file in made.calls[0].files] == [other]
    with pytest.raises(RefusedFiles, match=f"such as {odd}") as refused:
        run(made)
    assert refused.value.reason is RefusalReason.INDEX


@pytest.mark.parametrize("bytes_of_files", [1, 10**6])
def test_rules_that_depend_on_a_zone_are_proved_before_files_are_indexed_by_them(bytes_of_files: int) -> None:
    made = index(appends=2)
    days = configuration(5)["qbeast.revision.1"].replace("DoubleDataType", "DateDataType").replace("0.0", "0")
    made.properties["qbeast.revision.1"] = days
    snapshot = made.snapshot()
    own = made.tree.read().of_revision(1)
    new = (IndexFile("new", bytes_of_files, FileClass.UNINDEXED),)
    made.values["new"] = {}
    with pytest.raises(RefusedFiles, match="index-zone"):
        NewFiles(made, "").prepared(QbeastIndex.of_snapshot(snapshot), new, 5)
    made.ranges = lambda *_given: {"new": {}}  # type: ignore[method-assign]
    assert NewFiles(made, "UTC").prepared(QbeastIndex.of_snapshot(snapshot), new, 5) == (new, {})
    (proved,) = made.verified
    assert len(proved.files) == (1 if bytes_of_files == 1 else len(own))


def test_a_table_without_a_revision_gets_its_first_one() -> None:
    made = index(appends=0)
    made.properties["qbeast.lastRevisionID"] = "0"
    new = (IndexFile("new", 1, FileClass.UNINDEXED),)
    made.values["new"] = {"price": ValueRange(1.0, 2.0), "user": ValueRange(3.0, 3.0)}
    files, properties = NewFiles(made, "").prepared(QbeastIndex.of_snapshot(made.snapshot()), new, 5)
    assert (files, sorted(properties)) == (new, ["qbeast.lastRevisionID", "qbeast.revision.1"])
    assert made.verified == []
    made.column_types = lambda: {"price": "date", "user": "double"}  # type: ignore[method-assign]
    with pytest.raises(RefusedFiles, match="index-zone"):
        NewFiles(made, "").prepared(QbeastIndex.of_snapshot(made.snapshot()), new, 5)
