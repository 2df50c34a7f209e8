"""Delete files of Iceberg tables are merged: every reader sees the rows that it saw, and others lose no delete.

The tables are written by Iceberg's own classes, in the ways of streams and of engines that merge on read.
"""

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from pyiceberg.table import StaticTable

from actor.formats.iceberg.java_deletes import JavaDeletes
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.merge_deletes_job import NOTHING, MergeDeletesJob
from actor.ports import TableJob, TableJobOutcome
from actor.proofread.proofreader import Proofreader
from shared.errors import Conflict, Corrupt, RefusedFiles
from shared.formats.iceberg import delete_merges
from shared.formats.iceberg.names import COMMIT_KEY
from shared.layout.upkeep import MERGE_DELETES
from shared.partitions import WHOLE_TABLE
from shared.paths.boundary import Boundary
from shared.policy.policy import Policy, Proofread
from shared.table import CommitOrigin, DeleteKind, PartitionKey
from tests.iceberg_stress.readers import EQUALITY_UNKNOWN, _DuckDb
from tests.support.iceberg_jvm import IcebergJvm
from tests.support.local_vacuum import Control

pytestmark = [pytest.mark.spark, pytest.mark.long("iceberg")]

PROOFS = Proofreader()
G0 = PartitionKey('{"g":"0"}')
VERSIONS = pytest.mark.parametrize("version", [2, 3])


@pytest.fixture(scope="module")
def ice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergJvm]:
    running = IcebergJvm(tmp_path_factory.mktemp("iceberg"))
    yield running
    running.close()
    PROOFS.close()


def merge(ice: IcebergJvm, table: Any, *meanwhile: Callable[[], object]) -> TableJobOutcome:
    """Merge; meanwhile: what happens between look and commit of each attempt, one after the other."""
    classes: Any = ice.classes
    loaded = JavaTable(classes, table, str(table.location()))
    control, others = Control(), iter(meanwhile)

    def change(_count: int) -> None:
        next(others, lambda: None)()

    control.before_change = change
    job = TableJob(MERGE_DELETES.kind, str(table.location()), Policy(), CommitOrigin("job", 7))
    prove = partial(PROOFS.check_deletes, mode=Proofread.STRICT, tag="job")
    within = Boundary((ice.folder.as_uri(),), allows_external_files=True).for_literal_paths()
    return MergeDeletesJob(loaded, JavaDeletes(classes, loaded), job, control, lambda _head: None, within, prove).run()


def upgrade(table: Any) -> None:
    table.updateProperties().set("format-version", "3").commit()


def applied(ice: IcebergJvm, table: Any) -> dict[str, list[DeleteKind]]:
    """Return the kinds of the delete files of each data file."""
    return {path: [delete.kind for delete in one.deletes] for path, one in ice.inputs(table).items() if one.deletes}


def others_see(table: Any, ids: list[int]) -> None:
    """Check that DuckDB and pyiceberg read these ids, where they can: pyiceberg does not where rows go by value."""
    newest = str(table.operations().current().metadataFileLocation())
    path = unquote(urlsplit(newest).path)
    found = _DuckDb()._connection.execute(f"SELECT id FROM iceberg_scan('{path}')").fetchall()
    assert sorted(row[0] for row in found) == ids
    read = by_pyiceberg(newest)
    assert read is None or sorted(read) == ids


def by_pyiceberg(newest: str) -> list[int] | None:
    try:
        found: list[int] = StaticTable.from_metadata(newest).scan().to_arrow()["id"].to_pylist()
    except ValueError as error:
        if EQUALITY_UNKNOWN in str(error):
            return None
        raise
    return found


def version_of(table: Any) -> int:
    return int(table.operations().current().formatVersion())


def delete_places(ice: IcebergJvm, table: Any, paths: list[str], random: Random) -> None:
    if version_of(table) > 2:
        ice.delete_by_vector(table, paths[0], random.sample(range(3), k=2))
    else:
        ice.delete_places(table, [(path, random.randrange(3)) for path in paths])


def play(ice: IcebergJvm, table: Any, random: Random, *, by_g: bool, upgraded_at: int | None) -> None:
    """Let writers do this and that; vectors replace files of positions once the table is of version 3."""
    for step in range(14):
        if step == upgraded_at:
            upgrade(table)
            table.refresh()
        paths = sorted(path for path, one in ice.inputs(table).items() if not by_g or one.file.partition == G0)
        match random.choice(["append", *["places"] * 4, "values", "drop", "rewrite", "others", "merge", "upsert"]):
            case "places" if paths:
                delete_places(ice, table, random.sample(paths, k=min(len(paths), random.randint(1, 3))), random)
            case "values":
                ice.delete_values(table, random.sample(range(30), k=2))
            case "drop" if len(paths) > 1:
                ice.drop(table, random.choice(paths))
            case "others" if paths:
                ice.rewrite_as_others(table, random.choice(paths))
            case "rewrite" if paths:
                ice.rewrite(table, G0 if by_g else WHOLE_TABLE, random.sample(paths, k=min(len(paths), 2)))
            case "merge":
                rows = ice.rows(table)
                merge(ice, table)
                assert ice.rows(table) == rows
            case "upsert" if not by_g and version_of(table) == 2:
                ice.upsert(table, random.sample(range(30), k=4))
            case _:
                ice.append(table, *random.sample([0, 10, 20], k=random.randint(1, 2)))


@pytest.mark.parametrize("by_g", [False, True])
@VERSIONS
def test_after_any_commits_every_reader_sees_the_same_rows_and_nothing_is_left_to_merge(
    ice: IcebergJvm, version: int, by_g: bool
) -> None:
    for number in range(4):
        random = Random(100 * version + 10 * by_g + number)
        table = ice.create(f"any-{version}-{by_g}-{number}", by_g=by_g)
        ice.append_files(table, range(900, 910), to="g=1")
        play(ice, table, random, by_g=by_g, upgraded_at=random.choice([5, 10, 13]) if version > 2 else None)
        table.refresh()
        rows = ice.rows(table)
        merge(ice, table)
        assert ice.rows(table) == rows
        others_see(table, rows)
        assert merge(ice, table).reason == NOTHING
        assert ice.delete_files_left(table) == set()
        for kinds in applied(ice, table).values():
            places = [one for one in kinds if one is not DeleteKind.EQUALITY]
            assert version == 2 or DeleteKind.POSITION not in places
            assert len(places) <= 2, "one of its own, and one that names rows of several files"


@VERSIONS
def test_delete_files_of_a_partition_become_one_of_each_data_file_and_what_hides_nothing_goes(
    ice: IcebergJvm, version: int
) -> None:
    table = ice.create(f"shapes-{version}", by_g=True)
    ice.append_files(table, range(900, 910), to="g=1")
    one, two, three, gone = ice.append(table, 0, 10, 20, 30)
    for place in range(3):
        ice.delete_places(table, [(one, place), (two, place), (gone, place)])
    ice.delete_places(table, [(two, 7)])
    ice.delete_places(table, [(three, 7)])
    ice.delete_places(table, [(gone, 7)])
    ice.drop(table, gone)
    if version > 2:
        upgrade(table)
    table.refresh()
    rows, files = ice.rows(table), ice.delete_files(table)
    done = merge(ice, table)
    assert files == 6
    assert done.figures == {"replaced": 5, "written": 3, "removed": 1}
    assert len(done.commits) == 1
    kind = DeleteKind.POSITION if version == 2 else DeleteKind.VECTOR
    assert applied(ice, table) == {path: [kind] for path in (one, two, three)}
    assert ice.rows(table) == rows
    others_see(table, rows)
    assert dict(table.currentSnapshot().summary())[COMMIT_KEY]


def test_a_merged_file_hides_rows_of_files_that_are_as_new_as_what_it_replaces(ice: IcebergJvm) -> None:
    """A stream deletes rows of what it adds by position in the same commit: a lesser number hides none of them."""
    table = ice.create("stream")
    for start in (0, 4, 8):
        ice.upsert(table, range(start, start + 4))
    rows = ice.rows(table)
    assert rows == list(range(12))
    done = merge(ice, table)
    assert done.figures == {"replaced": 3, "written": 6, "removed": 1}
    assert ice.rows(table) == rows
    assert ice.numbers_of_deletes(table) == [2, *[3] * 7], "two by value, of which the first hid nothing"
    ice.upsert(table, [0, 5])
    assert ice.rows(table) == rows


@VERSIONS
def test_rows_that_others_delete_between_look_and_commit_stay_deleted(ice: IcebergJvm, version: int) -> None:
    """Each commit of others takes an attempt; in version 3 one file gets a vector of theirs, which holds all."""
    table = ice.create(f"late-{version}")
    one, two = ice.append(table, 0, 10)
    for place in range(3):
        ice.delete_places(table, [(one, place)])
        ice.delete_places(table, [(two, place)])
    if version > 2:
        upgrade(table)
    table.refresh()
    other = ice.loaded(table)
    late = [
        lambda: ice.delete_places(other, [(one, 8)]) if version == 2 else ice.delete_by_vector(other, one, [8]),
        lambda: ice.append(other, 20),
        lambda: ice.delete_values(other, [19]),
    ]
    done = merge(ice, table, *late)
    expected = [*range(3, 8), 9, *range(13, 19), *range(20, 30)]
    assert ice.rows(table) == expected
    # In version 2 theirs is merged with the others in the next commit of the same run.
    assert (done.figures["written"], len(done.commits)) == ((2, 2) if version == 2 else (1, 1))
    assert merge(ice, table).reason == NOTHING
    assert ice.rows(table) == expected
    assert ice.delete_files_left(table) == set()
    kinds = applied(ice, table)
    assert [len([one for one in kinds[path] if one is not DeleteKind.EQUALITY]) for path in (one, two)] == [1, 1]


def test_a_group_of_which_others_took_a_file_is_read_again_and_the_others_land(ice: IcebergJvm) -> None:
    table = ice.create("taken")
    one, two, three = ice.append(table, 0, 10, 20)
    for path in (one, two, three):
        for place in range(2):
            ice.delete_places(table, [(path, place)])
    other = ice.loaded(table)
    done = merge(ice, table, lambda: ice.drop(other, one), lambda: ice.bring_back(other, two))
    assert ice.rows(table) == [*range(10, 20), *range(22, 30)]
    assert done.figures == {"replaced": 2, "written": 1, "removed": 2}
    assert applied(ice, table) == {three: [DeleteKind.POSITION]}
    assert ice.delete_files_left(table) == set()


def test_a_rollback_that_brings_a_data_file_back_keeps_its_delete_files(ice: IcebergJvm) -> None:
    """What hides nothing at the look hides rows at the commit."""
    table = ice.create("back")
    one, two = ice.append(table, 0, 10)
    ice.delete_places(table, [(one, 1)])
    before = int(table.currentSnapshot().snapshotId())
    ice.drop(table, one)
    for place in range(2):
        ice.delete_places(table, [(two, place)])
    after = int(table.currentSnapshot().snapshotId())
    other = ice.loaded(table)
    merge(ice, table, lambda: other.manageSnapshots().setCurrentSnapshot(before).commit())
    table.refresh()
    assert int(table.currentSnapshot().snapshotId()) == before
    assert ice.rows(table) == [0, *range(2, 20)]
    other.refresh()
    other.manageSnapshots().setCurrentSnapshot(after).commit()
    assert merge(ice, table).figures == {"replaced": 2, "written": 1, "removed": 1}
    assert ice.rows(table) == list(range(12, 20))
    assert ice.delete_files_left(table) == set()


def test_a_format_version_that_was_raised_meanwhile_is_a_conflict_and_leaves_nothing(ice: IcebergJvm) -> None:
    table = ice.create("raised")
    (one,) = ice.append(table, 0)
    for place in range(2):
        ice.delete_places(table, [(one, place)])
    other = ice.loaded(table)
    with pytest.raises(Conflict, match="format version"):
        merge(ice, table, lambda: upgrade(other))
    assert ice.delete_files_left(table) == set()
    assert ice.rows(table) == list(range(2, 10))
    assert merge(ice, table).figures == {"replaced": 2, "written": 1, "removed": 0}
    assert (ice.rows(table), applied(ice, table)) == (list(range(2, 10)), {one: [DeleteKind.VECTOR]})


def test_a_rewrite_beside_a_merge_lands_and_hides_the_same_rows(ice: IcebergJvm) -> None:
    table = ice.create("beside")
    one, two = ice.append(table, 0, 10)
    for place in range(3):
        ice.delete_places(table, [(one, place), (two, place)])
    other = ice.loaded(table)
    ice.rewrite(table, WHOLE_TABLE, [one], lambda: merge(ice, other))
    assert ice.rows(table) == [*range(3, 10), *range(13, 20)]
    assert len(applied(ice, table)) == 1
    assert ice.delete_files_left(table) == set()


def test_a_statement_that_read_the_table_before_a_merge_and_commits_after_it_deletes_its_rows(ice: IcebergJvm) -> None:
    table = ice.create("stale")
    (one,) = ice.append(table, 0)
    for place in range(3):
        ice.delete_places(table, [(one, place)])
    stale = ice.loaded(table)
    read = int(stale.currentSnapshot().snapshotId())
    deletes = ice.of_places(stale, [(one, 5)])
    assert merge(ice, table).figures["replaced"] == 3
    stale.newRowDelta().validateFromSnapshot(read).validateDeletedFiles().addDeletes(deletes).commit()
    assert ice.rows(table) == [3, 4, 6, 7, 8, 9]
    others_see(table, ice.rows(table))


def test_beside_a_vector_no_position_is_left_out(ice: IcebergJvm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers ignore all files of positions of a data file that has a vector, those that are not merged, too."""
    monkeypatch.setattr(delete_merges, "MOST_ROWS", 3)
    table = ice.create("large", by_g=True)
    ice.append_files(table, range(900, 910), to="g=1")
    one, two = ice.append(table, 0, 10)
    ice.delete_places(table, [(one, 0), (two, 0)])
    ice.delete_places(table, [(one, place) for place in (1, 2)] + [(two, place) for place in (1, 2)])
    ice.delete_places(table, [(one, 5)])
    upgrade(table)
    table.refresh()
    rows = ice.rows(table)
    with pytest.raises(RefusedFiles, match="3 delete files stay"):
        merge(ice, table)
    assert ice.rows(table) == rows
    monkeypatch.undo()
    assert merge(ice, table).figures == {"replaced": 3, "written": 2, "removed": 0}
    assert ice.rows(table) == rows
    others_see(table, rows)


@VERSIONS
def test_positions_in_any_order_twice_or_behind_the_last_row_delete_the_same_rows(
    ice: IcebergJvm, version: int
) -> None:
    table = ice.create(f"odd-{version}")
    one, two = ice.append(table, 0, 10)
    ice.delete_places(table, [(two, 7), (one, 9), (one, 3), (two, 7), (one, 3), (one, 12)])
    ice.delete_places(table, [(one, 3), (one, 0), (one, 40), (two, 2)])
    ice.delete_places(table, [(two, 11), (two, 2)])
    if version > 2:
        upgrade(table)
    table.refresh()
    rows = ice.rows(table)
    assert rows == [1, 2, 4, 5, 6, 7, 8, 10, 11, 13, 14, 15, 16, 18, 19]
    assert merge(ice, table).figures == {"replaced": 3, "written": 2, "removed": 0}
    assert ice.rows(table) == rows
    others_see(table, rows)


def test_a_file_that_is_live_twice_ends_the_job(ice: IcebergJvm) -> None:
    """A data file with two sequence numbers, of which a delete file counts for one; and a delete file with two."""
    table = ice.create("twice")
    one, two = ice.append(table, 0, 10)
    for place in range(2):
        ice.delete_places(table, [(one, place)])
    deletes = ice.of_places(table, [(two, 1)])
    table.newRowDelta().addDeletes(deletes).commit()
    before = ice.delete_files(table)
    table.newRowDelta().addDeletes(deletes).commit()
    with pytest.raises(Corrupt, match="is live twice"):
        merge(ice, table)
    assert ice.delete_files(table) == before + 1
    table = ice.create("data-twice")
    (one,) = ice.append(table, 0)
    for place in range(2):
        ice.delete_places(table, [(one, place)])
    table.newFastAppend().appendFile(ice._live(table, one).task.file()).commit()
    with pytest.raises(Corrupt, match="is live twice"):
        merge(ice, table)
    assert ice.delete_files(table) == 2


def test_a_delete_file_whose_bounds_are_cut_stays_until_it_can_name_no_row(ice: IcebergJvm) -> None:
    """Iceberg takes equal bounds for the path of the one data file; other readers go by the rows."""
    table = ice.create("cut")
    one, two = ice.append(table, 0, 10)
    cut = one[:12]
    change = table.newRowDelta().addDeletes(ice.of_places(table, [(one, 1)], (cut, cut)))
    change.addDeletes(ice.of_places(table, [(two, 1)], (two, two))).commit()
    ice.drop(table, two)
    assert merge(ice, table).figures == {"replaced": 0, "written": 0, "removed": 1}
    with pytest.raises(RefusedFiles, match="1 delete files that apply to no data file stay"):
        merge(ice, table)
    assert ice.delete_files(table) == 1


@VERSIONS
def test_a_table_that_began_as_version_1_and_changed_its_partitions(ice: IcebergJvm, version: int) -> None:
    table = ice.create(f"old-{version}", version=1, by_g=True)
    one, two = ice.append(table, 0, 10)
    table.updateProperties().set("format-version", "2").commit()
    for place in range(2):
        ice.delete_places(table, [(one, place), (two, place)])
    table.updateSpec().removeField("g").commit()
    (three,) = ice.append_files(table, range(20, 30), to="")
    ice.delete_places(table, [(three, 0)])
    ice.delete_places(table, [(three, 1)])
    ice.delete_values(table, [5, 25])  # Of the spec without fields: wherever they are.
    rows = ice.rows(table)
    table.manageSnapshots().createTag("before", table.currentSnapshot().snapshotId()).commit()
    if version > 2:
        upgrade(table)
    table.refresh()
    done = merge(ice, table)
    assert (done.figures["replaced"], done.figures["written"]) == (4, 3)
    assert ice.rows(table) == rows == sorted({*range(30)} - {0, 1, 10, 11, 20, 21, 5, 25})
    others_see(table, rows)
    assert merge(ice, table).reason == NOTHING
    table.manageSnapshots().setCurrentSnapshot(table.refs().get("before").snapshotId()).commit()
    assert ice.rows(table) == rows, "a tag still has all of its delete files"


def test_deletes_by_value_go_only_if_no_data_file_is_old_enough(ice: IcebergJvm) -> None:
    """One of a partition by the data files of this one, one of a spec without fields by all."""
    table = ice.create("values", by_g=True)
    table.updateSpec().removeField("g").commit()
    ice.delete_values(table, [5])
    ice.delete_values(table, [5], spec=0)
    table.updateSpec().addField("g").commit()
    ice.append_files(table, range(900, 910), to="g=1")
    ice.delete_values(table, [77], spec=1)
    ice.delete_values(table, [78], spec=0)
    numbers = ice.numbers_of_deletes(table)
    assert merge(ice, table).figures == {"replaced": 0, "written": 0, "removed": 3}
    assert ice.numbers_of_deletes(table) == [numbers[2]]


def test_tables_without_delete_files_are_left_alone(ice: IcebergJvm) -> None:
    for version in (1, 2, 3):
        table = ice.create(f"none-{version}", version=version)
        assert merge(ice, table).reason == NOTHING
        ice.append(table, 0)
        assert merge(ice, table).reason == NOTHING
