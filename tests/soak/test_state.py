"""The rebuild finds a stored state that is off by one, and takes spellings of one value for one partition."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from decider.state.level_fit import LevelFit
from decider.store.tables.table_state import TableState
from shared.layout.partition_stats import PartitionStats, file_stats
from shared.queue import keys
from shared.table import TableMetadata, TableProtocol
from tests.soak.log import TableLog
from tests.soak.state import count_files, state_differences
from tests.soak.tables import spec_of
from tests.soak.test_log import file, write
from tests.support.outside import POLICY

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


def test_an_empty_partition_is_no_difference(tmp_path: Path) -> None:
    partitions = {'{"ts":"2024-01-01T00:00:00.000000"}': PartitionStats()}
    assert state_differences(FakeStack(partitions), spec_of("stamps"), log_of(tmp_path)) == []  # type: ignore[arg-type]


def test_deletion_vectors_are_counted(tmp_path: Path) -> None:
    vector = {"storageType": "i", "pathOrInlineDv": "x", "cardinality": 3}
    (state,) = count_files(spec_of("stamps"), log_of(tmp_path, add("a", "", 9, deletionVector=vector))).values()
    assert (state.dv_files, state.deleted_rows) == (1, 3)
