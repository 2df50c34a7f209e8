"""Others delete rows of the files that a rewrite of an Iceberg table replaces: it lands, and the same rows are gone."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from actor.ports import GroupStatus, RewriteOutcome
from actor.rewrite.late_rows import RowMap
from shared.errors import Difference
from shared.partitions import WHOLE_TABLE
from tests.contract.test_iceberg_copy import forced, read_by_others
from tests.support.long_suites import beyond
from tests.support.steering import Steering, at_commit, when_written

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pytestmark = pytest.mark.spark

LANDED, STALE = GroupStatus.COMMITTED, GroupStatus.CONFLICTED
MODES = ("delete", "update", "merge")
MERGE_ON_READ = {f"write.{mode}.mode": "merge-on-read" for mode in MODES}


class World:
    """A table of four files with 20 rows each, whose statements are Spark's, merged on read."""

    def __init__(self, ice: "IcebergLab", version: int = 2, granularity: str = "file") -> None:
        self.ice = ice
        properties = MERGE_ON_READ | {"write.delete.granularity": granularity}
        self.table = ice.create("t", version=version, properties=properties)
        for number in range(4):
            ice.append(self.table, number)

    def statement(self, text: str) -> Callable[[], object]:
        return lambda: self.ice.sql(text.format(t=self.table))

    def delete(self, *ids: int) -> Callable[[], object]:
        return self.statement(f"DELETE FROM {{t}} WHERE id IN ({', '.join(map(str, ids))})")

    def files(self) -> dict[int, Any]:
        """Return the live files by the first of their ids."""
        first = {
            row[0]: row[1] for row in self.ice.sql(f"SELECT _file, min(id) FROM {self.table} GROUP BY 1").collect()
        }
        return {first[file.path]: file for file in self.ice.live(self.table, WHOLE_TABLE)}

    def rewrite(self, control: Steering, *firsts: int) -> RewriteOutcome:
        """Rewrite the files that begin with these ids; none: all."""
        files = self.files()
        chosen = tuple(files[first] for first in firsts or sorted(files))
        return self.ice.rewrite(self.table, chosen, control=control)

    def ids(self) -> list[int]:
        """Return the ids that every reader finds, and that no file is left which nothing refers to."""
        rows = [row[0] for row in self.ice.rows(self.table)]
        seen = read_by_others(self.ice, self.table)
        assert seen["pyiceberg"] == seen["duckdb"] == seen["spark"]
        assert self.ice.files_on_disk(self.table) == self.ice.known_files(self.table)
        return rows

    def deletes(self) -> list[tuple[int, int]]:
        """Return the rows of each live delete file, and how many files it names (of a vector, one)."""
        found = self.ice.sql(f"SELECT record_count, file_path, file_format FROM {self.table}.delete_files").collect()
        assert not any("//" in row[1].removeprefix("file://") for row in found), "as Iceberg's writers spell paths"
        return sorted((row[0], self._named(row[1]) if row[2] == "PARQUET" else 1) for row in found)

    def _named(self, path: str) -> int:
        return int(self.ice.session.read.parquet(path).select("file_path").distinct().count())


MOMENTS = pytest.mark.parametrize("moment", [when_written, at_commit])
VERSIONS = pytest.mark.parametrize("version", [2, 3])
GRANULARITIES = pytest.mark.parametrize("granularity", ["file", "partition"])


WAYS = [(2, "partition", "copied"), (3, "file", "encoded"), (2, "file", "copied"), (2, "file", "encoded")]
WAYS += [(2, "partition", "encoded"), (3, "file", "copied")]


@MOMENTS
@pytest.mark.parametrize(("version", "granularity", "way"), beyond(2, WAYS, "iceberg"))
def test_rows_that_are_deleted_meanwhile_are_gone_in_what_was_written(
    ice: "IcebergLab", moment: Callable[..., Steering], version: int, granularity: str, way: str
) -> None:
    world = World(forced(ice) if way == "copied" else ice, version, granularity)
    if (version, way) == (3, "copied"):  # Once files hold the ids of their rows.
        world.rewrite(Steering(), 0, 20)
        world.rewrite(Steering(), 40, 60)
    lineage = {row[0]: row[1:] for row in ice.lineage(world.table)} if version == 3 else {}
    outcome = world.rewrite(moment(world.delete(0, 3, 19, 41, 79)))
    (end,) = outcome.groups
    assert (end.status, end.rows, end.is_copied) == (LANDED, 75, way == "copied")
    assert outcome.conflicts == (moment is at_commit)
    (output,) = end.outputs
    assert (output.rows, output.deleted_rows) == (80, 5)
    assert world.ids() == [one for one in range(80) if one not in (0, 3, 19, 41, 79)]
    assert world.deletes() == [(5, 1)]
    (live,) = ice.live(world.table, WHOLE_TABLE)
    assert (live.key, live.deleted_rows) == (output.key, 5)
    if version == 3:
        assert {row[0]: row[1:] for row in ice.lineage(world.table)} == {
            one: ids for one, ids in lineage.items() if one not in (0, 3, 19, 41, 79)
        }
    # What was hidden is purged by the next rewrite, and its delete file goes.
    assert world.rewrite(Steering()).groups[0].rows == 75
    assert (world.deletes(), len(world.ids())) == ([], 75)


@VERSIONS
def test_rows_that_the_read_left_out_take_no_place(ice: "IcebergLab", version: int) -> None:
    world = World(ice, version)
    world.delete(1, 2, 18, 25, 61)()
    outcome = world.rewrite(when_written(world.delete(3, 19, 20, 26, 60, 79)))
    assert [(end.status, end.rows) for end in outcome.groups] == [(LANDED, 69)]
    assert world.ids() == [one for one in range(80) if one not in (1, 2, 3, 18, 19, 20, 25, 26, 60, 61, 79)]
    assert world.deletes() == [(6, 1)]


@VERSIONS
def test_one_that_deletes_again_before_each_attempt_costs_attempts_and_no_row(ice: "IcebergLab", version: int) -> None:
    world = World(ice, version)
    outcome = world.rewrite(at_commit(*(world.delete(number, number + 40) for number in range(3))))
    assert ([end.status for end in outcome.groups], outcome.conflicts) == ([LANDED], 3)
    assert world.ids() == [one for one in range(80) if one % 40 not in range(3)]


@GRANULARITIES
def test_rows_of_other_files_that_a_delete_file_names_stay_deleted(ice: "IcebergLab", granularity: str) -> None:
    """The file is written again with these alone, under its number; one of replaced files alone goes."""
    world = World(ice, granularity=granularity)
    outcome = world.rewrite(when_written(world.delete(5, 25, 45, 65)), 0, 20)
    assert [end.status for end in outcome.groups] == [LANDED]
    assert world.ids() == [one for one in range(80) if one not in (5, 25, 45, 65)]
    assert world.deletes() == ([(1, 1), (1, 1), (2, 1)] if granularity == "file" else [(2, 1), (2, 2)])
    world.rewrite(Steering(), 40, 60)
    assert world.ids() == [one for one in range(80) if one not in (5, 25, 45, 65)]
    assert world.deletes() == [(2, 1)]


@VERSIONS
def test_an_update_and_a_merge_meanwhile_keep_their_effect_and_so_does_what_comes_after(
    ice: "IcebergLab", version: int
) -> None:
    world = World(ice, version)
    model = {row[0]: row for row in ice.rows(world.table)}
    merge = (
        "MERGE INTO {t} t USING (SELECT explode(array(7, 1000)) AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET "
        "v = 'm' WHEN NOT MATCHED THEN INSERT (id, v, x, dt, ts) VALUES (1000, 'n', 0, date'2026-01-01', null)"
    )
    statements = [world.statement("UPDATE {t} SET v = 'u' WHERE id IN (5, 70)"), world.statement(merge)]
    outcome = world.rewrite(when_written(*statements))
    assert [end.status for end in outcome.groups] == [LANDED]
    model |= {one: (one, text, *model[one][2:]) for one, text in ((5, "u"), (70, "u"), (7, "m"))}
    model[1000] = (1000, "n", 0, model[0][3], None)

    def check() -> None:
        assert ice.rows(world.table) == sorted(model.values())
        world.ids()

    check()
    world.delete(10, 11, 12)()
    for one in (10, 11, 12):
        del model[one]
    check()
    actions = ice.engine._scala.resolve("org.apache.iceberg.spark.actions.SparkActions").get(ice.session._jsparkSession)
    if version < 3:
        actions.rewritePositionDeletes(ice.java(world.table)).option("rewrite-all", "true").execute()
        check()
    actions.rewriteDataFiles(ice.java(world.table)).option("rewrite-all", "true").execute()
    check()
    world.rewrite(Steering())
    check()
    assert len(ice.rows(f"{world.table} VERSION AS OF {_second(ice, world.table)}")) == 80
    last = ice.java(world.table).currentSnapshot().timestampMillis()
    actions.expireSnapshots(ice.java(world.table)).expireOlderThan(last).retainLast(1).execute()
    check()


def _second(ice: "IcebergLab", table: str) -> int:
    """Return the snapshot of the fourth append."""
    return int(ice.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()[3][0])


def test_delete_files_that_others_put_together_are_no_conflict(ice: "IcebergLab") -> None:
    """Not one row more is deleted, whatever the files are called."""
    world = World(ice)
    world.delete(0, 20)()
    world.delete(1, 21)()
    actions = ice.engine._scala.resolve("org.apache.iceberg.spark.actions.SparkActions").get(ice.session._jsparkSession)
    java = ice.java(world.table)
    outcome = world.rewrite(
        when_written(lambda: actions.rewritePositionDeletes(java).option("rewrite-all", "true").execute())
    )
    assert ([end.status for end in outcome.groups], outcome.conflicts) == ([LANDED], 0)
    assert world.ids() == [one for one in range(80) if one not in (0, 1, 20, 21)]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {t} WHERE id >= 0",  # Whole files go.
        "DELETE FROM {t} WHERE id BETWEEN 20 AND 39",
        "DELETE FROM {t} WHERE id != 80",
        "ROLLBACK",
    ],
)
def test_what_cannot_be_hidden_is_planned_again(ice: "IcebergLab", statement: str) -> None:
    world, after = World(ice), list[object]()
    world.delete(1)()
    java = ice.java(world.table)
    before = java.currentSnapshot().parentId()
    back = lambda: java.manageSnapshots().rollbackTo(before).commit()  # noqa: E731 - named by the parameter
    theirs = back if statement == "ROLLBACK" else world.statement(statement)
    outcome = world.rewrite(when_written(theirs, lambda: after.append(ice.rows(world.table))))
    assert [end.status for end in outcome.groups] == [STALE]
    assert [ice.rows(world.table)] == after
    assert ice.files_on_disk(world.table) == ice.known_files(world.table)


def test_an_output_that_holds_its_inputs_in_another_order_is_never_committed(
    ice: "IcebergLab", monkeypatch: pytest.MonkeyPatch
) -> None:
    places, world = RowMap.places, World(ice)
    monkeypatch.setattr(RowMap, "places", lambda rows, chosen: ((place + 20) % 80 for place in places(rows, chosen)))
    with pytest.raises(Difference, match="values differ in the columns"):
        world.rewrite(when_written(world.delete(3, 41)))
    assert world.ids() == [one for one in range(80) if one not in (3, 41)]
