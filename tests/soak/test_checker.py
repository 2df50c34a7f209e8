"""Each fault that the checker and the rebuild name is planted here, and found."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from decider.state.level_fit import LevelFit
from decider.store.tables.table_state import TableState
from shared.layout.partition_stats import PartitionStats, file_stats
from shared.queue import keys
from shared.table import TableMetadata, TableProtocol
from tests.soak.checker import broken_answers, compare, lost_answers, state_differences
from tests.soak.deltalake_writer import DeltalakeEngine, arrow
from tests.soak.journal import Answer, Journal, Journals
from tests.soak.log import TableLog, newest_version
from tests.soak.model import Model
from tests.soak.operations import WEIGHTS, Action, Chooser, Operation
from tests.soak.tables import TABLES, TableSpec, spec_of
from tests.soak.test_journal import Story, row
from tests.soak.test_log import file, write
from tests.soak.values import Row
from tests.soak.watch import Watch
from tests.support.outside import POLICY

OPERATIONS = 40
ALL = {"deltalake (pyarrow)", "deltalake (DataFusion)", "DuckDB"}


class Lab:
    """One table, written by deltalake in this process, and watched."""

    def __init__(self, folder: Path, spec: TableSpec) -> None:
        self.spec, self.tables = spec, folder / "tables"
        self.tables.mkdir()
        self.path = self.tables / spec.place
        DeltaTable.create(
            self.path.as_uri(),
            arrow(spec, ()).schema,
            partition_by=list(spec.by),
            configuration=spec.configuration,
            raise_if_key_not_exists=False,
            commit_properties=CommitProperties(custom_metadata={"soak": "create"}),
        )
        self.engine = DeltalakeEngine(self.tables)
        self.chooser = Chooser(Random(11), "w-1", 10**9)
        self.journal = Journal(folder / "w.journal")
        self.watch = Watch(self.tables, folder, Journals(folder))

    def do(self, action: Action) -> bool:
        spec = self.spec
        operation = self.chooser.choose(spec, action, self.engine.view(spec, action), spec.partitions)
        if operation is None:
            return False
        self.journal.intend(operation)
        self.journal.committed(operation.nonce, self.engine.run(spec, operation))
        return True

    def check(self) -> None:
        self.watch.check_all(self.spec)


@pytest.fixture
def name() -> str:
    return "signs"


@pytest.fixture
def lab(tmp_path: Path, name: str) -> Iterator[Lab]:
    made = Lab(tmp_path, spec_of(name))
    for _ in range(5):
        made.do(Action.APPEND)
    yield made
    made.journal.close()


@pytest.mark.parametrize("name", [spec.name for spec in TABLES if spec.deltalake])
def test_all_readers_agree_with_the_model_after_every_kind_of_operation(lab: Lab, name: str) -> None:
    done = {action for _ in range(OPERATIONS // len(WEIGHTS)) for action in WEIGHTS if lab.do(action)}
    lab.check()
    assert lab.watch.differences == []
    assert lab.watch.unreadable == []
    assert lab.watch.models[name].problems == []
    assert broken_answers(lab.watch.journals, lab.watch.models) == []
    assert len(lab.watch.models[name].rows_at(lab.watch.models[name].version)) > 20
    assert len(done) >= len(WEIGHTS) - 2, "an unpartitioned table has no partition to write over"


def plant(lab: Lab, *actions: dict[str, object]) -> None:
    """Commit actions that no operation of a writer explains, as a commit of ours would."""
    info = {"commitInfo": {"userMetadata": json.dumps({"lakewright": {"job": "j"}})}}
    file = lab.path / "_delta_log" / f"{newest_version(lab.path) + 1:020d}.json"
    file.write_text("\n".join(map(json.dumps, [info, *actions])))


def some_add(lab: Lab) -> dict[str, object]:
    lab.watch.refresh(lab.spec)
    return dict(next(iter(lab.watch.logs[lab.spec.name].live.values())).add)


def test_each_reader_sees_a_file_whose_rows_are_there_twice(lab: Lab) -> None:
    add = some_add(lab)
    live = next(iter(lab.watch.logs["signs"].live.values()))
    shutil.copy(lab.path / live.path, lab.path / "again.parquet")
    plant(lab, {"add": {**add, "path": "again.parquet", "dataChange": False}})
    lab.check()
    assert {one.reader for one in lab.watch.differences if one.twice} >= ALL


def test_each_reader_sees_a_file_that_is_lost(lab: Lab) -> None:
    add = some_add(lab)
    remove = {name: add[name] for name in ("path", "partitionValues", "size")}
    plant(lab, {"remove": {**remove, "dataChange": False, "deletionTimestamp": 0, "extendedFileMetadata": True}})
    lab.check()
    assert {one.reader for one in lab.watch.differences if one.missing and not one.unexpected} >= ALL


def test_a_reader_that_cannot_read_is_a_finding(lab: Lab) -> None:
    some_add(lab)
    live = next(iter(lab.watch.logs["signs"].live.values()))
    (lab.path / live.path).unlink()
    lab.check()
    assert lab.watch.unreadable


def test_rows_that_no_operation_explains_are_found(lab: Lab) -> None:
    """A writer outside the journals: its commit is a problem, and its rows are there unexpectedly."""
    stranger = arrow(lab.spec, [{"id": 5, "value": "x", "at": 0, "p": "plain"}])
    write_deltalake(DeltaTable(lab.path.as_uri()), stranger, mode="append")
    lab.check()
    assert lab.watch.models["signs"].problems
    assert all(one.unexpected == 1 for one in lab.watch.differences)
    assert lab.watch.differences


PLACE = ("t", 7, "reader")
EXPECTED = {1: row(1), 2: row(2)}


@pytest.mark.parametrize(
    ("found", "field"),
    [
        ([row(1), row(1), row(2)], "twice"),
        ([row(1)], "missing"),
        ([row(1), row(2), row(3)], "unexpected"),
        ([row(1), row(2, "other")], "changed"),
        ([row(1), row(2, partition="b")], "changed"),
        ([row(1), {**row(2), "extra_0": "x"}], "changed"),
    ],
)
def test_every_difference_is_found_and_counted_once(found: list[Row], field: str) -> None:
    difference = compare(PLACE, EXPECTED, found)
    assert difference
    counts = {name: getattr(difference, name) for name in ("twice", "missing", "unexpected", "changed")}
    assert counts == {name: int(name == field) for name in counts}
    assert field in str(difference)


def test_a_row_that_is_there_twice_with_two_values_is_found_twice() -> None:
    difference = compare(PLACE, EXPECTED, [row(1), row(2), row(2, "old")])
    assert (difference.twice, difference.changed) == (1, 1)


def journals(model: Model, *operations: Operation, **answers: Answer) -> tuple[Journals, dict[str, Model]]:
    made = Journals(Path("nowhere"), {one.nonce: one for one in operations}, dict(answers))
    return made, {"t": model}


def test_an_accepted_operation_that_is_not_in_the_log_is_a_lost_commit() -> None:
    story = Story()
    append = Operation("lost", "t", Action.APPEND, 0, rows=(row(1),))
    known = journals(story.model, append, lost=Answer(1))
    assert broken_answers(*known) == ["t: lost (append) was accepted and is not in the log"]


def test_an_operation_that_lies_behind_the_version_it_was_accepted_as_is_found() -> None:
    """Its commit was written a second time, or the log was set back."""
    story = Story()
    story.append(row(1))
    story.append(row(2))
    known = journals(story.model, *story.operations.values(), **{"n-2": Answer(1)})
    assert broken_answers(*known) == ["t: n-2 was accepted as 1 and is version 2"]


def test_operations_whose_answer_was_lost_are_counted() -> None:
    story = Story()
    for key in range(3):
        story.append(row(key))
    known = journals(story.model, *story.operations.values(), **{"n-1": Answer(1), "n-2": Answer(None, "timeout")})
    assert lost_answers(*known) == 2
    assert broken_answers(*known) == []


FIELDS = [{"name": name, "metadata": {}} for name in ("id", "value", "at", "ts")]

STATE = TableState(1, TableMetadata(""), TableProtocol(1, 2), "")


class FakeStack:
    """A decider that stores these partitions."""

    def __init__(self, partitions: dict[str, PartitionStats], typical_bytes: int = 0) -> None:
        self._partitions, self._typical_bytes = partitions, typical_bytes

    def get(self, path: str) -> dict[str, str]:
        return {"id": "t-1"}

    @property
    def redis(self) -> "FakeStack":
        return self

    def client(self) -> "FakeStack":
        return self

    def hgetall(self, key: str) -> dict[bytes, bytes]:
        if key == keys.partitions("default", "t-1"):
            return {partition.encode(): state.encode().encode() for partition, state in self._partitions.items()}
        assert key == keys.table_state("default", "t-1")
        fitted = replace(STATE, level_fit=LevelFit(self._typical_bytes))
        return {name.encode(): value.encode() for name, value in fitted.encode().items()}


def log_of(folder: Path, *adds: dict[str, Any]) -> TableLog:
    write(folder, {"metaData": {"schemaString": json.dumps({"fields": FIELDS})}}, *({"add": add} for add in adds))
    log = TableLog(folder)
    log.read_to(0)
    return log


def add(path: str, ts: str, size: int, **more: Any) -> dict[str, Any]:
    return {**file(path, **more), "partitionValues": {"ts": ts}, "size": size}


def test_a_state_that_is_off_by_one_file_is_found(tmp_path: Path) -> None:
    spec, one = spec_of("stamps"), file_stats(POLICY.size_levels, 5_000)
    log = log_of(tmp_path, add("a", "2024-01-01 00:00:00", 5_000), add("b", "2024-01-01T00:00:00.000000Z", 5_000))
    partition = '{"ts":"2024-01-01T00:00:00.000000"}'
    assert state_differences(FakeStack({partition: one + one}), spec, log) == []  # type: ignore[arg-type]
    assert len(state_differences(FakeStack({partition: one}), spec, log)) == 1  # type: ignore[arg-type]
    assert len(state_differences(FakeStack({}), spec, log)) == 1  # type: ignore[arg-type]


def test_files_are_counted_by_the_levels_that_are_fitted_to_the_table(tmp_path: Path) -> None:
    spec, size = spec_of("stamps"), 1_500
    log = log_of(tmp_path, add("a", "2024-01-01 00:00:00", size))
    fitted = POLICY.fitted_to(size).size_levels
    partitions = {'{"ts":"2024-01-01T00:00:00.000000"}': file_stats(fitted, size)}
    assert file_stats(fitted, size) != file_stats(POLICY.size_levels, size)
    assert state_differences(FakeStack(partitions, size), spec, log) == []  # type: ignore[arg-type]
    assert len(state_differences(FakeStack(partitions), spec, log)) == 1  # type: ignore[arg-type]
