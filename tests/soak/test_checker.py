"""Each fault that the checker and the rebuild name is planted here, and found."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from decider.state.level_fit import LevelFit
from decider.store.tables.table_state import TableState
from shared.layout.partition_stats import PartitionStats, file_stats
from shared.queue import keys
from shared.table import TableMetadata, TableProtocol
from tests.soak.checker import broken_answers, compare, lost_answers
from tests.soak.journal import Answer, Journals
from tests.soak.log import TableLog
from tests.soak.model import Model
from tests.soak.operations import Action, Operation
from tests.soak.state import state_differences
from tests.soak.tables import spec_of
from tests.soak.test_log import file, write
from tests.soak.test_model import Story, row
from tests.soak.values import Row
from tests.support.outside import POLICY

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
