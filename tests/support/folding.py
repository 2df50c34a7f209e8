"""Files, removals and commits as tests of folding write them: only what a test is about is named."""

from typing import Any

from shared.partitions import WHOLE_TABLE
from shared.policy.policy import MIB
from shared.table import Commit, DataFile, PartitionKey, RemovedFile


def file(path: str, size: int = MIB, partition: PartitionKey = WHOLE_TABLE, **more: Any) -> DataFile:
    return DataFile(path, size, partition, **more)


def removed(of: DataFile, **more: Any) -> RemovedFile:
    return RemovedFile(of.path, of.dv_id, of.size_bytes, of.partition, of.deleted_rows, **{"tags": of.tags, **more})


def commit(version: int = 1, operation: str = "WRITE", **more: Any) -> Commit:
    return Commit(version, 0, operation, **more)
