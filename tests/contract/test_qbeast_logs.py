"""Logs of tables in Qbeast's own repository are read as its library and its visualizer read them.

`tests/data/qbeast.md` names the sources. What is expected comes from outside of the index: rows that the
commits count, the formula of weights, and figures that the visualizer of that repository prints.
"""

import asyncio
import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from decider.formats.delta.format import DeltaFormat
from decider.formats.delta.table import DeltaTable
from decider.formats.table_format import StorageAccess
from decider.storage.object_reads import ReadMeter
from shared.formats.qbeast.cubes import ROOT
from shared.formats.qbeast.files import MIN_WEIGHT, FileClass, IndexFile
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.status import index_status
from shared.formats.qbeast.weights import cube_weights
from shared.index.status import IndexQuery, IndexStatus
from shared.table import Position, Snapshot
from tests.support.qbeast_data import qbeast_data
from tests.support.stack import commits_of

LOGS = qbeast_data() / "qbeast_logs"
INDEXED = ("two_writes", "deep_tree", "string_histogram")

VISUALIZED: Mapping[str, Mapping[str, float]] = {
    "two_writes": {"cubes": 21, "blocks": 42, "rows": 8_000_000, "height": 3, "fanout": 20 / 5, "bytes": 454_072_430},
    "deep_tree": {"cubes": 129, "blocks": 192, "rows": 600_000, "height": 7, "fanout": 128 / 36, "bytes": 18_969_439},
    "string_histogram": {"cubes": 1, "blocks": 1, "rows": 100_000, "height": 1, "fanout": 0, "bytes": 2_275_245},
}
"""The tree that the visualizer of v0.7.1 makes of a log."""

SAMPLED = {
    ("two_writes", 0.02): (2, 751_130, 42_730_416),  # The example in the visualizer's README.
    ("two_writes", 0.1): (6, 4_500_689, 255_512_271),
    ("two_writes", 0.5): (10, 8_000_000, 454_072_430),
    ("deep_tree", 0.02): (2, 25_392, 897_872),
    ("deep_tree", 0.1): (12, 235_708, 7_430_332),
    ("deep_tree", 0.5): (31, 589_675, 18_643_395),
    ("string_histogram", 0.02): (1, 100_000, 2_275_245),
}
"""Files of a sample, their rows and bytes, as the visualizer counts them."""


def reader(name: str) -> DeltaTable:
    return DeltaFormat(StorageAccess(ReadMeter())).open((LOGS / name).as_uri())


def snapshot(name: str, version: int) -> Snapshot:
    return asyncio.run(reader(name).snapshot(Position(version)))


def status(name: str, version: int, query: IndexQuery | None = None) -> IndexStatus:
    found = index_status(snapshot(name, version), query or IndexQuery())
    assert found is not None
    return found


def last_version(name: str) -> int:
    return max(int(file.stem) for file in (LOGS / name / "_delta_log").glob("*.json"))


def written_rows(commit: list[dict[str, Any]]) -> int:
    (info,) = (action["commitInfo"] for action in commit if "commitInfo" in action)
    return int(info["operationMetrics"]["numOutputRows"])


def files_by_commit(name: str) -> list[tuple[IndexFile, ...]]:
    """Return the indexed files that each commit added."""
    before: set[str] = set()
    found = []
    for version in range(last_version(name) + 1):
        files = QbeastIndex.of_snapshot(snapshot(name, version)).of_revision(1)
        found.append(tuple(file for file in files if file.path not in before))
        before |= {file.path for file in files}
    return found


@pytest.mark.parametrize("name", INDEXED)
def test_the_tree_is_the_one_that_the_visualizer_makes(name: str) -> None:
    found = status(name, last_version(name))
    (revision,) = found.revisions
    assert {field: getattr(revision.metrics, field) for field in VISUALIZED[name]} == VISUALIZED[name]
    assert {kind for kind, count in found.files_by_class.items() if count} == {FileClass.INDEXED}
    assert found.refusal is None


@pytest.mark.parametrize(("name", "fraction"), SAMPLED)
def test_a_sample_opens_the_files_that_the_visualizer_counts(name: str, fraction: float) -> None:
    files, rows, size = SAMPLED[name, fraction]
    sample = status(name, last_version(name), IndexQuery(sample=fraction)).rewrites.sample
    assert sample is not None
    assert (sample.files, sample.bytes) == (files, size)
    weight = MIN_WEIGHT + fraction * 2**32
    index = QbeastIndex.of_snapshot(snapshot(name, last_version(name)))
    read = [file for file in index.files if any(block.min_weight < weight for block in file.blocks)]
    assert sum(file.rows for file in read) == rows


@pytest.mark.parametrize(
    ("name", "columns", "cube_size"),
    [
        ("two_writes", ("id:linear", "name:hashing"), 500_000),
        ("deep_tree", ("user_id:linear", "brand:histogram"), 10_000),
        ("string_histogram", ("brand:histogram",), 5_000_000),
    ],
)
def test_revisions_name_the_columns_and_the_cube_size_of_the_write(
    name: str, columns: tuple[str, ...], cube_size: int
) -> None:
    found = status(name, 0)
    assert found.last_revision == 1
    assert [(one.id, one.columns, one.desired_cube_size) for one in found.revisions] == [(1, columns, cube_size)]


@pytest.mark.parametrize("name", INDEXED)
def test_blocks_hold_every_row_that_the_commits_count(name: str) -> None:
    commits = commits_of(LOGS / name)
    counted = {file.path: file.rows for file in snapshot(name, last_version(name)).files}
    for commit, files in zip(commits, files_by_commit(name), strict=True):
        assert sum(file.rows for file in files) == written_rows(commit)
        assert all(file.rows == counted[file.path] for file in files)


@pytest.mark.parametrize("name", ["two_writes", "deep_tree"])
def test_the_weight_of_the_root_is_the_cube_size_over_the_rows_written_so_far(name: str) -> None:
    (revision,) = status(name, 0).revisions
    totals = itertools.accumulate(written_rows(commit) for commit in commits_of(LOGS / name))
    for version, rows in enumerate(totals):
        weights = cube_weights(QbeastIndex.of_snapshot(snapshot(name, version)).of_revision(1))
        assert (weights[ROOT] - MIN_WEIGHT) / 2**32 == pytest.approx(revision.desired_cube_size / rows, rel=1e-6)


@pytest.mark.parametrize("name", ["two_writes", "deep_tree"])
def test_rows_of_a_cube_are_heavier_than_the_weight_of_its_parent_in_the_same_write(name: str) -> None:
    space = QbeastIndex.of_snapshot(snapshot(name, 0)).revisions.by_id[1].space
    for files in files_by_commit(name):
        weights = cube_weights(files)
        below = [block for file in files for block in file.blocks if block.cube]
        assert len(below) > 10
        for block in below:
            parent = space.parent(block.cube)
            assert parent is not None
            assert block.min_weight > weights[parent]


def test_a_second_write_lowers_weights_and_leaves_offsets_in_the_blocks_of_the_first() -> None:
    # All five inner cubes of the one; of the other also leaves of the first write that the second split.
    for name, blocks in (("two_writes", 5), ("deep_tree", 36)):
        before, after = (status(name, version).revisions[0].metrics for version in (0, 1))
        assert (before.overhang_blocks, before.offset_rows) == (0, 0)
        assert after.overhang_blocks == blocks
        assert after.offset_rows > 0
        assert (before.hidden_blocks, after.hidden_blocks) == (0, 0), "the library's samples miss no row"


def test_a_converted_table_that_was_never_indexed_has_no_revision_and_nothing_to_do() -> None:
    assert index_status(snapshot("converted", 0), IndexQuery()) is None, "before its conversion it has no index"
    found = status("converted", 1, IndexQuery(is_forecast=True))
    assert (found.last_revision, found.revisions, found.refusal) == (0, (), None)
    assert (found.rewrites.next, found.rewrites.forecasts) == (None, ())


@pytest.mark.parametrize(("name", "version"), [("legacy", 0), ("legacy", 1), ("legacy", 2), ("legacy_checkpoint", 10)])
def test_files_of_versions_before_0_6_are_recognized_and_refused(name: str, version: int) -> None:
    found = status(name, version)
    assert found.files_by_class[FileClass.LEGACY] == len(snapshot(name, version).files) > 0
    assert sum(found.files_by_class.values()) == found.files_by_class[FileClass.LEGACY]
    assert found.refusal is not None
    assert found.refusal.subject == "legacy-format"
    assert "version 0.6" in found.refusal.reason
    assert found.rewrites.next is None


def test_legacy_files_are_read_from_a_checkpoint_with_all_their_tags() -> None:
    assert not (LOGS / "legacy_checkpoint" / "_delta_log" / f"{9:020d}.json").exists()
    names = (LOGS / "legacy_checkpoint" / "_delta_log" / f"{10:020d}.json").read_text("utf-8").splitlines()
    added = [json.loads(line)["add"] for line in names if '"add"' in line[:10]]
    tags = {file.path: dict(file.tags) for file in snapshot("legacy_checkpoint", 10).files}
    assert added
    assert all(tags[one["path"]] == one["tags"] for one in added)
