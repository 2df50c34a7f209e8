"""Vacuums remove delete files that apply to no data file: Iceberg's own scan says which, and no row comes back or goes.

The tables are written by Iceberg's own classes, in the ways of writers that leave such files behind.
"""

import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.vacuum import IcebergVacuum
from actor.formats.iceberg.vacuum_table import JavaVacuumTable
from actor.odd_files import local_boundary
from actor.ports import TableJob, TableJobOutcome
from shared.errors import Conflict, Corrupt
from shared.formats.iceberg.manifests import Entry, EntryStatus
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import VACUUM
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.table import CommitOrigin, DeleteKind, PartitionKey
from tests.support.iceberg_jvm import IcebergJvm
from tests.support.local_vacuum import Control
from tests.support.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.long("iceberg")]

G0 = PartitionKey('{"g":"0"}')


@pytest.fixture(scope="module")
def ice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergJvm]:
    running = IcebergJvm(tmp_path_factory.mktemp("iceberg"))
    yield running
    running.close()


def opened(ice: IcebergJvm, table: Any) -> JavaVacuumTable:
    classes: Any = ice.classes
    loaded = JavaTable(classes, table, str(table.location()))
    return JavaVacuumTable(classes, loaded, lambda _head: None, local_boundary())


def vacuum(ice: IcebergJvm, table: Any, retain_s: int = 0) -> TableJobOutcome:
    """Vacuum a table a moment after its newest commit."""
    table.refresh()
    newest = int(table.currentSnapshot().timestampMillis())
    until("the clock moved on", lambda: time.time() * 1000 > newest + 50)
    options = VacuumOptions(force=True, retain_s=retain_s)
    policy = Policy(vacuum=True, min_retain_s=0)
    job = TableJob(VACUUM, str(table.location()), policy, CommitOrigin("job", 7), options=options.encode())
    return IcebergVacuum(opened(ice, table), job, Control()).run()


def needed(ice: IcebergJvm, table: Any) -> set[str]:
    """Return the delete files that Iceberg's scan applies, less those that name no row of an output of ours."""
    return {one.path for file in ice.inputs(table).values() for one in file.deletes if not one.is_of_earlier}


def upgrade(table: Any) -> None:
    table.updateProperties().set("format-version", "3").commit()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("by_g", [False, True])
def test_after_any_commits_exactly_what_a_scan_applies_stays(ice: IcebergJvm, version: int, by_g: bool) -> None:
    random = Random(version + 2 * by_g)
    for number in range(3):
        table = ice.create(f"any-{version}-{by_g}-{number}", by_g=by_g)
        ice.append_files(table, range(900, 910), to="g=1")
        for _ in range(8):
            paths = sorted(path for path, one in ice.inputs(table).items() if not by_g or one.file.partition == G0)
            match random.choice(["append", "places", "places", "values", "drop", "drop", "rewrite", "others"]):
                case "places" if paths:
                    some = random.sample(paths, k=min(len(paths), random.randint(1, 2)))
                    ice.delete_places(table, [(path, random.randrange(3)) for path in some])
                case "values":
                    ice.delete_values(table, random.sample(range(30), k=2))
                case "drop" if len(paths) > 1:
                    ice.drop(table, random.choice(paths))
                case "others" if paths:
                    ice.rewrite_as_others(table, random.choice(paths))
                case "rewrite" if paths:
                    ice.rewrite(table, G0 if by_g else WHOLE_TABLE, random.sample(paths, k=min(len(paths), 2)))
                case _:
                    ice.append(table, *random.sample([0, 10, 20], k=random.randint(1, 2)))
        (last,) = ice.append(table, 40)
        ice.delete_places(table, [(last, 1)])
        ice.drop(table, last)
        if version > 2:
            upgrade(table)
        table.refresh()
        rows, before, stay = ice.rows(table), ice.delete_files(table), needed(ice, table)
        done = vacuum(ice, table)
        assert done.is_complete
        assert done.figures["delete_files_removed"] == before - len(stay) == before - ice.delete_files(table)
        assert ice.rows(table) == rows
        assert needed(ice, table) == stay
        assert before > len(stay)
        assert vacuum(ice, table).figures["delete_files_removed"] == 0


def test_places_that_only_an_output_of_ours_could_seem_to_need_go(ice: IcebergJvm) -> None:
    """An output keeps the sequence number of its inputs; the other file that the delete file applied to is gone."""
    table = ice.create("ours", by_g=True)
    ice.append_files(table, range(900, 910), to="g=1")
    first, other = ice.append(table, 0, 10)
    ice.delete_places(table, [(first, 1), (other, 2)])
    assert ice.rewrite(table, G0, [first]).version is not None
    assert ice.delete_files(table) == 1
    ice.drop(table, other)
    rows = ice.rows(table)
    # Ours is known by its snapshot, as long as that is retained.
    assert vacuum(ice, table, retain_s=3_600).figures["delete_files_removed"] == 1
    assert (ice.delete_files(table), ice.rows(table)) == (0, rows)


def test_places_that_a_scan_applies_to_an_output_of_others_stay(ice: IcebergJvm) -> None:
    """Nothing is known of the paths that other writers choose."""
    table = ice.create("others", by_g=True)
    ice.append_files(table, range(900, 910), to="g=1")
    first, other = ice.append(table, 0, 10)
    ice.delete_places(table, [(first, 1), (other, 2)])
    ice.rewrite_as_others(table, first)
    ice.drop(table, other)
    assert len(needed(ice, table)) == 1
    assert vacuum(ice, table, retain_s=3_600).figures["delete_files_removed"] == 0
    assert ice.delete_files(table) == 1


@pytest.mark.parametrize("version", [2, 3])
def test_a_removal_upon_another_snapshot_is_refused(ice: IcebergJvm, version: int) -> None:
    table = ice.create(f"refused-{version}", version=version, by_g=True)
    ice.append_files(table, range(900, 910), to="g=1")
    (path,) = ice.append(table, 0)
    ice.delete_values(table, [3])
    with_data = int(table.currentSnapshot().snapshotId())
    ice.append(table, 10)
    ice.drop(table, path)
    read = opened(ice, table)
    current = read.refresh().current
    (delete,) = live_deletes(ice, table)
    assert current is not None
    table.manageSnapshots().setCurrentSnapshot(with_data).commit()
    with pytest.raises(Conflict, match="is no longer the newest one"):
        read.remove_deletes(current, [delete], {})
    assert (ice.delete_files(table), len(ice.rows(table))) == (1, 19)
    table.manageSnapshots().setCurrentSnapshot(current).commit()
    with pytest.raises(Corrupt, match="0 of 1 delete files were found again"):
        read.remove_deletes(current, [Entry(*(EntryStatus.ADDED, 1, 1, "lost", WHOLE_TABLE, 1, 1, delete.kind))], {})
    read.remove_deletes(current, [delete], {"key": "value"})
    table.refresh()
    assert ice.delete_files(table) == 0
    assert dict(table.currentSnapshot().summary())["key"] == "value"


def live_deletes(ice: IcebergJvm, table: Any) -> list[Entry]:
    """Return the live delete files as entries with their paths alone."""
    lists = ice.classes.resolve("org.apache.iceberg.relocated.com.google.common.collect.Lists")
    manifests = table.currentSnapshot().deleteManifests(table.io())
    files = [
        one
        for manifest in manifests
        for one in lists.newArrayList(ice.iceberg.ManifestFiles.readDeleteManifest(manifest, table.io(), table.specs()))
    ]
    return [
        Entry(EntryStatus.ADDED, 1, 1, str(one.location()), WHOLE_TABLE, 1, 1, DeleteKind.EQUALITY) for one in files
    ]
