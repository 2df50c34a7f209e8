"""An actor reads nothing outside of a table for that table: neither by the log's paths nor by links."""

from dataclasses import replace

import pytest

from actor.formats.delta.engine import EngineSettings
from shared.errors import Unsupported
from shared.layout.planner import FileGroup
from shared.paths.boundary import Boundary
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
