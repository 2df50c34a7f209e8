"""An actor reads nothing outside of a table for that table, and finds a table by any spelling of its place."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from actor.formats.delta.engine import EngineSettings
from shared.errors import Unsupported
from shared.layout.planner import FileGroup
from shared.paths.boundary import Boundary
from shared.paths.locations import canonical_location, decoded_path, deltalake_location, hadoop_path
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab

pytestmark = pytest.mark.spark


def borrow(lab: DeltaLab, path: str, victim: tables.HandTable) -> tables.HandTable:
    """A table whose log names, beside its own files, one of another table's."""
    thief = tables.table(lab.directory / "thief", files=2)
    stolen = victim.new_file(20, {})
    thief.commit([{"add": stolen | {"path": path.format(name=stolen["path"], folder=victim.path)}}])
    return thief


@pytest.mark.long("contracts")
@pytest.mark.parametrize(
    "path", ["file://{folder}/{name}", "{folder}/{name}", "../victim/{name}", "%2e%2e/victim/{name}"]
)
def test_a_file_of_another_table_is_not_copied_into_the_one_that_names_it(lab: DeltaLab, path: str) -> None:
    victim = tables.table(lab.directory / "victim", files=1)
    thief = borrow(lab, path, victim)
    before = tables.parquet_files(thief.path)
    with pytest.raises(Unsupported, match="outside of the table"):
        lab.files(thief.location)
    group = lab.group(victim.location, count=1)
    taken = replace(group.files[0], path=path.format(name=group.files[0].path, folder=victim.path))
    with pytest.raises(Unsupported, match="outside of the table"):
        lab.rewrite(thief.location, [FileGroup(group.partition, (taken,), group.mode)])
    assert (tables.newest(thief.path), tables.parquet_files(thief.path)) == (thief.version, before)


@pytest.mark.parametrize("what", ["file", "log"])
def test_a_link_out_of_the_table_is_not_followed(lab: DeltaLab, what: str) -> None:
    victim = tables.table(lab.directory / "victim", files=4)
    thief = tables.table(lab.directory / "thief", files=4)
    group = lab.group(thief.location)
    if what == "file":
        (thief.path / group.files[0].path).unlink()
        (thief.path / group.files[0].path).symlink_to(next(victim.path.glob("*.parquet")))
    else:
        (thief.path / "_delta_log").rename(thief.path / "log")
        (thief.path / "_delta_log").symlink_to(victim.path / "_delta_log")
    before = tables.parquet_files(thief.path)
    with pytest.raises(Unsupported, match="link"):
        lab.rewrite(thief.location, [group])
    assert tables.newest(victim.path) == victim.version
    assert tables.parquet_files(thief.path) == before


@pytest.mark.long("contracts")
def test_files_outside_are_rewritten_into_the_table_where_that_is_allowed(lab: DeltaLab) -> None:
    victim = tables.table(lab.directory / "victim", files=1)
    thief = borrow(lab, "file://{folder}/{name}", victim)
    allowed = Boundary((f"file://{lab.directory}",), allows_external_files=True)
    open_lab = lab.with_settings(EngineSettings(boundary=allowed))
    outcome = open_lab.rewrite(thief.location, [open_lab.group(thief.location, count=3)])
    assert [end.rows for end in outcome.groups] == [60]
    assert [path for path, _ in tables.live(thief.path)] == [outcome.groups[0].outputs[0].path]


NAMES = ("a b", "a%20b", "a%2520b", "a+b", "Z\u00fcrich", "Zu\u0308rich", "100%", "x#y", "q?z", "p=1:2", "g[a]{b}")
FILES = 4


def state(path: Path) -> dict[str, bytes]:
    """Every file of a table and what is in it."""
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.long("contracts")
def test_each_of_many_folders_with_awkward_names_is_rewritten_and_no_other(lab: DeltaLab) -> None:
    made = {name: tables.table(lab.directory / name, files=FILES) for name in NAMES}
    assert {folder.name for folder in lab.directory.iterdir()} == set(NAMES)
    for name in NAMES:
        location = canonical_location(str(made[name].path))
        others = {other: state(table.path) for other, table in made.items() if other != name}
        outcome = lab.rewrite(location, [lab.group(location, count=FILES)])
        assert outcome.version == 2, name
        assert len(tables.removed(made[name].path, 2)) == FILES
        assert {other: state(made[other].path) for other in others} == others, f"{name} changed another table"
        ids = sorted(row["id"] for row in lab.spark.read.format("delta").load(hadoop_path(location)).collect())
        assert ids == list(range(20 * FILES)), name
        (add,) = tables.added(made[name].path, 2)
        assert (made[name].path / add["path"]).is_file()
    assert {folder.name for folder in lab.directory.iterdir()} == set(NAMES)


@pytest.mark.parametrize("spelled", [lambda p: p.as_uri(), str, lambda p: f"{p}/", lambda p: f"file:{p.as_uri()[7:]}"])
def test_spark_hadoop_and_deltalake_agree_on_the_folder_however_its_location_was_spelled(
    lab: DeltaLab, spelled: Callable[[Path], str]
) -> None:
    made = tables.table(lab.directory / "a b Z\u00fcrich#1 100%", files=FILES)
    location = canonical_location(spelled(made.path))
    assert decoded_path(location) == str(made.path)
    assert len(lab.files(location)) == FILES
    assert DeltaTable(deltalake_location(location)).version() == 1
    assert lab.engine.find_commit(location, job="unknown", token=1, since_version=0) is None
