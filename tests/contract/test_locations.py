"""Tables whose folders have awkward names lie side by side, and each rewrite changes its own table only."""

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from actor.formats.delta.engine import DeltaEngine
from actor.formats.delta.optimize_fallback import OptimizeExecutor
from actor.ports import RewriteRequest
from shared.errors import OtherTable
from shared.locations import canonical_location, decoded_path, deltalake_location, hadoop_path
from shared.partitions import WHOLE_TABLE
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab, mark
from tests.support.long_suites import beyond
from tests.support.steering import Steering

pytestmark = pytest.mark.spark

NAMES = ("a b", "a%20b", "a%2520b", "a+b", "Z\u00fcrich", "Zu\u0308rich", "100%", "x#y", "q?z", "p=1:2", "g[a]{b}")
FILES = 4


def state(path: Path) -> dict[str, bytes]:
    """Every file of a table and what is in it."""
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def fallback(lab: DeltaLab) -> DeltaEngine:
    engine = DeltaEngine(lab.spark)
    engine.use_optimize()
    assert isinstance(engine.executor, OptimizeExecutor)
    return engine


@pytest.mark.long("contracts")
@pytest.mark.parametrize(("way", "names"), beyond(1, [("exact", NAMES[:4]), ("exact", NAMES), ("optimize", NAMES[:3])]))
def test_each_of_many_folders_with_awkward_names_is_rewritten_and_no_other(
    lab: DeltaLab, way: str, names: tuple[str, ...]
) -> None:
    made = {name: tables.table(lab.directory / name, files=FILES) for name in names}
    assert {folder.name for folder in lab.directory.iterdir()} == set(names)
    if way == "optimize":
        lab.engine = fallback(lab)
    for name in names:
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
    assert {folder.name for folder in lab.directory.iterdir()} == set(names)


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


@pytest.mark.parametrize("way", ["exact", "optimize"])
def test_a_table_of_another_id_than_the_jobs_is_left_alone(lab: DeltaLab, way: str) -> None:
    made = tables.table(lab.directory / "t", files=FILES)
    identity = str(made.metadata()["id"])
    group = lab.group(made.location, count=FILES)
    if way == "optimize":
        lab.engine = fallback(lab)
    assert lab.engine.read_partition(made.location, WHOLE_TABLE, table_uuid=identity).version == 1
    with pytest.raises(OtherTable, match=identity):
        lab.engine.read_partition(made.location, WHOLE_TABLE, table_uuid="another")
    with pytest.raises(OtherTable, match="created again"):
        lab.engine.rewrite(RewriteRequest(made.location, (group,), mark("job", 1), "another"), Steering())
    assert tables.newest(made.path) == 1
    request = RewriteRequest(made.location, (group,), mark("job", 2), identity)
    assert lab.engine.rewrite(request, Steering()).version == 2
