"""The log of a table that version 0.7.1 of Qbeast's library wrote, against the figures that the library gives of it.

Versions 0 to 4 append 200 rows each with a cube size of 40; 5 is an append by Delta alone; 6 optimizes three files; 7
optimizes the file of 5, which this release merges and does not index; 8 is a DELETE by Delta.
"""

import asyncio

import pytest

from decider.formats.delta.format import DeltaFormat
from decider.formats.delta.table import DeltaTable
from decider.formats.table_format import StorageAccess
from decider.storage.object_reads import ReadMeter
from shared.formats.qbeast.files import FileClass
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.iterations import progress_of
from shared.formats.qbeast.metrics import measure
from shared.table import Position, Snapshot
from tests.support.qbeast_data import qbeast_data

LOG = qbeast_data() / "qbeast"


def reader() -> DeltaTable:
    return DeltaFormat(StorageAccess(ReadMeter())).open(LOG.as_uri())


def snapshot(version: int) -> Snapshot:
    return asyncio.run(reader().snapshot(Position(version)))


def classes(version: int) -> dict[FileClass, int]:
    index = QbeastIndex.of_snapshot(snapshot(version))
    return {kind: found for kind in FileClass if (found := len(index.of_class(kind)))}


PRINTED = {
    4: {"rows": 1000, "cubes": 46, "blocks": 130, "files": 18, "height": 4, "min_height": 4},
    8: {"rows": 550, "cubes": 35, "blocks": 80, "files": 12, "height": 4, "min_height": 3},
}
"""What `getIndexMetrics` prints of a version."""


@pytest.mark.parametrize(("version", "fanout", "size_bytes"), [(4, 3.0, 32886), (8, 3.09, 19992)])
def test_the_figures_are_those_that_the_library_prints(version: int, fanout: float, size_bytes: int) -> None:
    index = QbeastIndex.of_snapshot(snapshot(version))
    found = measure(index.of_revision(1), index.revisions.by_id[1])
    assert {name: getattr(found, name) for name in PRINTED[version]} == PRINTED[version]
    assert int(found.fanout * 100) / 100 == fanout
    assert found.bytes // found.files * found.files == size_bytes, "the library cuts the mean size to a whole number"


def test_every_row_of_an_indexed_file_is_in_a_block() -> None:
    for version in range(9):
        found = snapshot(version)
        index = QbeastIndex.of_snapshot(found)
        rows = {file.path: file.rows for file in found.files}
        assert all(file.rows == rows[file.path] for file in index.of_class(FileClass.INDEXED))


def test_the_library_lowers_what_every_compaction_lowers() -> None:
    before, after = (progress_of(QbeastIndex.of_snapshot(snapshot(version)).of_revision(1)) for version in (5, 6))
    assert after < before


def test_files_of_other_writers_and_of_a_delete_are_not_indexed() -> None:
    assert classes(4) == {FileClass.INDEXED: 18}
    assert classes(5)[FileClass.UNINDEXED] == 1
    assert classes(7)[FileClass.UNINDEXED] == 1, "merged, with blocks, under revision 0"
    assert classes(8)[FileClass.UNINDEXED] > 1, "a DELETE writes files without tags"
