"""Readers and model agree on what deltalake writes, and each reader sees what is planted: the whole chain but us."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from tests.soak.checker import broken_answers
from tests.soak.deltalake_writer import DeltalakeEngine, arrow
from tests.soak.journal import Journal, Journals
from tests.soak.log import newest_version
from tests.soak.operations import WEIGHTS, Action, Chooser
from tests.soak.tables import TABLES, TableSpec, spec_of
from tests.soak.watch import Watch

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
