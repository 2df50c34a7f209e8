"""A group is copied by one task where nothing speaks against it, and its output says what its inputs said."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.caches import DeltaCaches
from actor.formats.delta.columns import Column
from actor.formats.delta.copy_choice import DeltaCopier, SpelledGroup
from actor.formats.delta.footers import Storage
from actor.formats.delta.late_rows import RowHider
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog
from actor.formats.delta.output_format import OutputFormat
from actor.formats.delta.output_paths import OutputPaths
from actor.formats.delta.parquet_task import ParquetTasks
from actor.formats.delta.row_tasks import LeftToSpark
from actor.formats.delta.write import DeltaWriter
from actor.formats.delta.written_group import WrittenGroup
from actor.formats.parquet.classes import ParquetClasses
from actor.formats.parquet.copy_rules import CopyLimits, CopyRule, EncodeReason, NotCopied
from shared.errors import Corrupt
from shared.layout.planner import RewriteMode
from tests.support.fake_copies import FOOTER, UNREAD, FakeCopies
from tests.support.fake_delta import FakeTable, live_group
from tests.support.fake_delta_table import PREFIX, add, vector
from tests.support.java_errors import JavaError

ANY_SIZE = CopyLimits(0, 0)
NEVER_FULL = 1 << 40


class Bench:
    """Two files of ten rows with statistics, and what the JVM says of them; `end`: of the task."""

    def __init__(self, end: dict[str, Any] | Exception | None = None, **second: Any) -> None:
        self.table = FakeTable()
        bounds = [{"minValues": {"v": n}, "maxValues": {"v": n + 5}, "nullCount": {"v": n}} for n in (1, 2)]
        stats = [json.dumps({"numRecords": 10} | found) for found in bounds]
        self.table.commit(add("x", stats=stats[0]), add("y", stats=stats[1]))
        self.scala = FakeCopies(self.table, (FOOTER, FOOTER | second), {} if end is None else end)
        self.live = live_group(self.table, "x", "y")
        self.log = TableLog(self.scala, self.table.log().session, "file:///lake/t")  # type: ignore[arg-type]
        txn = self.log.transaction()
        self.paths = OutputPaths(self.scala, self.log, txn.snapshot(), self.log.shape(txn.snapshot()), PREFIX)  # type: ignore[arg-type]
        self.classes = ParquetClasses()
        self.tasks = ParquetTasks(self.scala, self.log, self.paths, DeltaCaches(classes=self.classes))  # type: ignore[arg-type]
        self.hider = RowHider(self.scala, self.log, self.paths.shape, UNREAD)  # type: ignore[arg-type]

    def copy(self, rule: CopyRule, live: LiveGroup | None = None) -> LoggedFile | EncodeReason:
        end = DeltaCopier(self.tasks, rule, self.hider.may_carry).copy(SpelledGroup(live or self.live, {"p": "a"}))
        return end.reason if isinstance(end, NotCopied) else end

    def written(self, rule: CopyRule) -> WrittenGroup:
        writer = DeltaWriter(self.scala, self.log.snapshot(), self.tasks, rule, self.hider)
        return writer.write(self.live)


def test_footers_that_were_read_to_choose_are_handed_to_the_task_once() -> None:
    bench = Bench()
    for copies in (1, 2):
        assert isinstance(bench.copy(CopyRule(limits=ANY_SIZE)), LoggedFile)
        assert len(bench.scala.handed_over) == 1, f"after copy {copies}: a copy changes the footers that it gets"


def test_an_output_has_the_rows_and_the_statistics_of_its_inputs_and_changes_no_data() -> None:
    bench = Bench()
    tagged = replace(bench.live, group=replace(bench.live.group, tags={"lakewright.level": "3"}))
    output = bench.copy(CopyRule(limits=ANY_SIZE), tagged)
    assert isinstance(output, LoggedFile)
    body = json.loads(output.json)
    stats = {"numRecords": 20, "minValues": {"v": 1}, "maxValues": {"v": 7}, "nullCount": {"v": 3}}
    assert json.loads(body.pop("stats")) == stats
    path = f"p=a/{bench.paths.prefix}part.c000.snappy.parquet"
    assert body == {
        "path": path,
        "partitionValues": {"p": "a"},
        "size": 100,
        "modificationTime": 7,
        "dataChange": False,
        "tags": {"lakewright.level": "3"},
    }
    assert bench.scala.summaries_read == [[f"{bench.log.root}/x", f"{bench.log.root}/y"]]
    (_, inputs, sizes, *_), *more = bench.scala.tasks
    assert [json.loads(inputs), json.loads(sizes)] == [[f"{bench.log.root}/x", f"{bench.log.root}/y"], [100, 100]]
    assert not more
    assert not bench.paths.has_lost_attempts


def test_an_output_without_tags_has_none_and_files_without_rows_have_no_codec() -> None:
    bench = Bench(codecs=["gzip"])
    bench.scala.footers = [FOOTER | {"codecs": [""], "row_groups": 0}] * 2
    output = bench.copy(CopyRule(limits=ANY_SIZE))
    assert isinstance(output, LoggedFile)
    assert "tags" not in json.loads(output.json)
    assert output.file.path.endswith("part.c000.parquet")


def test_a_copy_whose_rows_differ_is_deleted() -> None:
    bench = Bench({"rows": 19})
    with pytest.raises(Corrupt, match="20 rows in by the log statistics, 19 rows out"):
        bench.written(CopyRule(limits=ANY_SIZE))
    assert bench.table.deleted == [f"p=a/{bench.paths.prefix}part.c000.snappy.parquet"]


@pytest.mark.parametrize("mode", [RewriteMode.IDLE, RewriteMode.FULL, RewriteMode.MINOR])
def test_the_mode_of_a_group_decides_whether_its_output_is_final(mode: RewriteMode) -> None:
    bench = Bench()
    live = replace(bench.live, group=replace(bench.live.group, mode=mode))
    end = bench.copy(CopyRule(full_bytes=NEVER_FULL), live)
    assert (end is EncodeReason.SMALL_ROW_GROUPS) == (mode is not RewriteMode.MINOR)
    assert len(bench.scala.tasks) == (mode is RewriteMode.MINOR)


@pytest.mark.parametrize(("limits", "end_bytes"), [(CopyLimits(), 250), (ANY_SIZE, 0)])
def test_the_task_keeps_an_output_of_small_row_groups_below_the_full_size(limits: CopyLimits, end_bytes: int) -> None:
    bench = Bench()
    assert isinstance(bench.copy(CopyRule(full_bytes=250, limits=limits)), LoggedFile)
    assert bench.scala.tasks[0][-1] == end_bytes


@pytest.mark.parametrize(
    ("limits", "reason"),
    [(CopyLimits(), EncodeReason.SMALL_ROW_GROUPS), (CopyLimits(0, 128), EncodeReason.SMALL_COLUMN_CHUNKS)],
)
def test_an_output_that_grew_to_the_full_size_names_the_bound_that_it_misses(
    limits: CopyLimits, reason: EncodeReason
) -> None:
    assert Bench({"obstacle": "full"}).copy(CopyRule(full_bytes=250, limits=limits)) is reason


def test_what_is_found_while_copying_sends_the_group_to_the_encoder() -> None:
    assert Bench({"obstacle": "damaged"}).copy(CopyRule(limits=ANY_SIZE)) is EncodeReason.DAMAGED


def test_what_is_known_before_costs_no_footer_and_what_footers_say_no_task() -> None:
    bench = Bench()
    assert bench.copy(CopyRule(is_allowed=False)) is EncodeReason.SWITCHED_OFF
    bench.table.commit(add("z", deletionVector=vector(2)))
    hidden = live_group(bench.table, "z")
    assert bench.copy(CopyRule(limits=ANY_SIZE), hidden) is EncodeReason.DELETION_VECTOR
    assert bench.scala.summaries_read == []
    bench.scala.footers[1] = FOOTER | {"columns": "t"}
    assert bench.copy(CopyRule(limits=ANY_SIZE)) is EncodeReason.SCHEMA
    assert bench.scala.tasks == []


def with_vector(bench: Bench) -> None:
    """Have two rows of the first file be hidden, in a table whose vectors are not carried."""
    gone = [{"remove": {"path": name, "dataChange": True}} for name in "xy"]
    bench.table.commit(*gone, add("x", deletionVector=vector(2)), add("y"))
    bench.table.rows |= {"x": 10, "y": 10}
    bench.live = live_group(bench.table, "x", "y")
    bench.hider = cast("RowHider", SimpleNamespace(proofs=UNREAD, may_carry=lambda _live: False))


@pytest.mark.parametrize("end", ["written", "left to Spark", "not exact"])
def test_hidden_rows_are_left_out_by_a_task_where_that_is_exact(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, asked = Bench(), list[tuple[Any, ...]]()
    with_vector(bench)
    bench.live = replace(bench.live, group=replace(bench.live.group, tags={"lakewright.level": "3"}))
    bench.table.rows["out"] = 18
    made = {"path": "p=a/out", "size": 90, "partitionValues": {"p": "a"}, "stats": '{"numRecords": 18}'}

    def merge(live: LiveGroup) -> list[LoggedFile]:
        asked.append((live,))
        if end == "left to Spark":
            raise LeftToSpark
        return [LoggedFile(decode_add(made, ()), encode(made))]

    def find(*given: Any) -> Any:
        asked.append((given[2], given[-1]))
        return None if end == "not exact" else SimpleNamespace(merge=merge)

    monkeypatch.setattr("actor.formats.delta.write.find_row_tasks", find)
    written = bench.written(CopyRule(limits=ANY_SIZE))
    assert (written.rows, written.encoded_because) == (18, EncodeReason.DELETION_VECTOR)
    assert written.by_column is (end == "written")
    assert asked[0] == ((), {"p": "a"})
    assert asked[1:] == ([] if end == "not exact" else [(bench.live,)])
    assert (written.outputs[0].file.path == "p=a/out") is (end == "written")
    assert (json.loads(written.outputs[0].json).get("tags") == {"lakewright.level": "3"}) is (end != "written")
    asked.clear()
    bench.written(CopyRule(is_allowed=False))
    assert asked == [], "Spark alone is permitted"


@pytest.mark.parametrize("is_compared", [True, False])
def test_inputs_with_vectors_are_copied_whole_if_their_hidden_rows_are_found_in_the_copy(
    is_compared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actor.formats.delta.write.find_row_tasks", lambda *_, **__: None)
    bench = Bench()
    with_vector(bench)
    seen = list[WrittenGroup]()

    def carried(group: WrittenGroup) -> WrittenGroup | None:
        seen.append(group)
        return replace(group, carried=[[1, 2], []]) if is_compared else None

    bench.hider = cast("RowHider", SimpleNamespace(proofs=UNREAD, may_carry=lambda _live: True, carried=carried))
    written = bench.written(CopyRule(limits=ANY_SIZE))
    (copy,) = seen
    assert (copy.rows, copy.input_rows, copy.outputs[0].file.dv_id) == (20, (10, 10), None)
    assert (written.encoded_because, bool(written.carried)) == (
        (None, True) if is_compared else (EncodeReason.DELETION_VECTOR, False)
    )
    assert bench.table.deleted == ([] if is_compared else [copy.outputs[0].file.path])


def test_without_the_classes_no_footer_is_read() -> None:
    bench = Bench()
    bench.classes._are_usable = False
    assert bench.copy(CopyRule(limits=ANY_SIZE)) is EncodeReason.UNAVAILABLE
    assert bench.scala.summaries_read == []


def test_an_executor_that_refuses_the_classes_sends_the_group_to_the_encoder_and_other_failures_are_raised() -> None:
    refused = JavaError("SparkException", message="ClassNotFoundException: io.lakewright.parquet.RowGroupCopy")
    assert Bench(refused).copy(CopyRule(limits=ANY_SIZE)) is EncodeReason.UNAVAILABLE
    with pytest.raises(JavaError, match="No space left"):
        Bench(JavaError("SparkException", message="No space left on device")).copy(CopyRule(limits=ANY_SIZE))


@pytest.mark.parametrize("end", [{"attempt": 1}, {"attempt": 1, "obstacle": "damaged"}])
def test_a_task_that_was_begun_again_may_have_left_a_file(end: dict[str, Any]) -> None:
    bench = Bench(end)
    bench.copy(CopyRule(limits=ANY_SIZE))
    assert bench.paths.has_lost_attempts


def test_a_copy_whose_statistics_cannot_be_completed_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise JavaError("IOException", message="no footer")

    bench = Bench()
    monkeypatch.setattr(OutputFormat, "complete", fail)
    with pytest.raises(JavaError, match="no footer"):
        bench.copy(CopyRule(limits=ANY_SIZE))
    assert bench.table.deleted == [f"p=a/{bench.paths.prefix}part.c000.snappy.parquet"]


def test_bounds_of_floating_point_columns_never_come_from_a_footer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other writers leave not-a-number out of them, which readers of Delta take for the greatest value."""
    bench = Bench()
    numbers = (
        Column(("v",), "INT64", "int", (64,)),
        Column(("f",), "FLOAT", "float"),
        Column(("d",), "DOUBLE", "double"),
    )
    bench.table.storage["x"] = Storage((numbers,), {"snappy": 100})
    seen: list[Storage] = []

    def note(_self: OutputFormat, _inputs: object, outputs: list[LoggedFile], written: Storage) -> list[LoggedFile]:
        seen.append(written)
        return outputs

    monkeypatch.setattr(OutputFormat, "complete", note)
    bench.copy(CopyRule(limits=ANY_SIZE))
    assert [one.schemas for one in seen] == [(numbers[:1],)]
