"""Tables whose folders have awkward names lie side by side, and each rewrite changes its own table only."""

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from shared.paths.locations import canonical_location, decoded_path, deltalake_location, hadoop_path
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab

pytestmark = pytest.mark.spark

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
