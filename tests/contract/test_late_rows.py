"""Others delete rows of the files that a rewrite replaces: it lands, and the same rows are gone in what it wrote."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

from actor.formats.parquet.copy_rules import EncodeReason
from actor.ports import GroupStatus, RewriteOutcome
from actor.proofread.model import DeleteForm, Deletes
from actor.proofread.vectors import read_vector
from actor.rewrite.late_rows import RowMap
from shared.errors import Conflict, Difference
from shared.formats.delta_references import vector_path
from shared.layout.planner import RewriteMode
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab
from tests.support.delta_tables import HandTable
from tests.support.long_suites import beyond, pairs_first
from tests.support.steering import Steering, at_commit, when_written

pytestmark = pytest.mark.spark

LANDED, STALE = GroupStatus.COMMITTED, GroupStatus.CONFLICTED


MOMENTS = (when_written, at_commit)
WAYS = ("copied", "by column")


class World:
    """A table with deletion vectors; statements on it are Spark's."""

    def __init__(self, lab: DeltaLab, files: int = 5) -> None:
        self.lab = lab
        self.table: HandTable = tables.table(lab.directory / "t", files=files, deletion_vectors=True)
        self.path: Path = self.table.path
        self.location = self.table.location
        self.before = self.by_hand()

    def statement(self, text: str) -> Callable[[], object]:
        return lambda: self.lab.sql(text.format(t=f"delta.`{self.location}`"))

    def rows(self) -> list[tuple[Any, ...]]:
        """Return all rows as Spark finds them; who replays the log by hand finds the same."""
        found = sorted(tuple(row) for row in self.lab.sql(f"SELECT id, v, x FROM delta.`{self.location}`"))
        assert found == self.by_hand()
        return found

    def by_hand(self) -> list[tuple[Any, ...]]:
        """Return all rows without Spark, which takes seconds."""
        return sorted(self._by_hand())

    def _by_hand(self) -> Iterator[tuple[Any, ...]]:
        for add in tables.live(self.path).values():
            vector = add.get("deletionVector")
            form = Deletes(DeleteForm.DELTA_VECTOR, text=json.dumps(vector))
            gone = set(read_vector(form, str(self.path), _read)) if vector else set()
            data = pq.ParquetFile(self.path / add["path"]).read().select(["id", "v", "x"]).to_pylist()
            yield from (tuple(row.values()) for place, row in enumerate(data) if place not in gone)

    def rewrite(
        self,
        control: Steering | None = None,
        way: str = "copied",
        mode: RewriteMode = RewriteMode.MINOR,
        below: Fraction = Fraction(1, 10),
    ) -> RewriteOutcome:
        group = replace(self.lab.group(self.location, count=5), mode=mode)
        lab = self.lab.copying() if way == "copied" else self.lab
        return lab.rewrite(self.location, [group], control, may_copy=way != "encoded", carry_below=below)

    def data_files(self) -> set[str]:
        return tables.parquet_files(self.path)

    def vectors(self) -> set[str]:
        return {file.name for file in self.path.glob("deletion_vector_*.bin")}

    def named_vectors(self) -> set[str]:
        """Return the files of vectors that any version names."""
        versions = range(tables.newest(self.path) + 1)
        named = (vector_path(add.get("deletionVector")) for one in versions for add in tables.added(self.path, one))
        return {name for name in named if name is not None}


def _read(path: str, offset: int, size: int) -> bytes:
    return Path(path).read_bytes()[offset : offset + size]


@pytest.fixture
def world(lab: DeltaLab) -> World:
    return World(lab)


@pytest.mark.parametrize(("moment", "way", "hidden"), beyond(4, pairs_first(MOMENTS, WAYS, ((), (3, 40, 41))), "care"))
def test_rows_that_are_deleted_meanwhile_are_gone_in_what_was_written(
    world: World, moment: Callable[..., Steering], way: str, hidden: tuple[int, ...]
) -> None:
    for row in hidden:
        world.statement(f"DELETE FROM {{t}} WHERE id = {row}")()
    outcome = world.rewrite(moment(world.statement("DELETE FROM {t} WHERE id IN (0, 3, 19, 41, 99)")), way)
    (end,) = outcome.groups
    gone = {0, 3, 19, 41, 99, *hidden}
    left = 100 - len(gone)
    assert (end.status, end.rows, end.is_copied, end.by_column) == (LANDED, left, way == "copied", way == "by column")
    assert outcome.conflicts == (moment is at_commit)
    (output,) = end.outputs
    assert (output.rows, output.deleted_rows) == (100, len(gone))
    assert world.rows() == [row for row in world.before if row[0] not in gone]
    (add,) = tables.added(world.path, outcome.version or 0)
    assert json.loads(add["stats"])["tightBounds"] is False
    (live,) = world.lab.engine.read_partition(world.location, end.group.partition).files
    assert (live.key, live.deleted_rows) == (output.key, len(gone))


@pytest.mark.parametrize("way", beyond(1, WAYS, "care"))
def test_few_rows_that_were_hidden_before_stay_hidden_in_what_is_copied(world: World, way: str) -> None:
    world.statement("DELETE FROM {t} WHERE id IN (0, 19, 40)")()
    outcome = world.rewrite(way=way)
    (end,) = outcome.groups
    assert (end.status, end.rows, [(file.rows, file.deleted_rows) for file in end.outputs]) == (LANDED, 97, [(100, 3)])
    assert (world.rows(), world.vectors()) == (
        [row for row in world.before if row[0] not in (0, 19, 40)],
        world.named_vectors(),
    )
    world.statement("DELETE FROM {t} WHERE id = 1")()
    world.statement("REORG TABLE {t} APPLY (PURGE)")()
    assert world.rows() == [row for row in world.before if row[0] not in (0, 1, 19, 40)]
    world.statement(f"RESTORE TABLE {{t}} TO VERSION AS OF {outcome.version}")()
    assert world.rows() == [row for row in world.before if row[0] not in (0, 19, 40)]


def test_files_whose_rows_are_hidden_have_one_row_group_as_delta_rs_reads_no_others_right(world: World) -> None:
    """By default; it hides rows where a filter skips a row group, or two partitions of a query read them."""
    world.statement("DELETE FROM {t} WHERE id IN (0, 19, 40, 77)")()
    group = replace(world.lab.group(world.location, count=5), mode=RewriteMode.MINOR)
    outcome = world.lab.rewrite(world.location, [group], full_bytes=1 << 30, carry_below=Fraction(1, 10))
    (end,) = outcome.groups
    assert (end.status, end.by_column, end.encoded_because) == (LANDED, True, EncodeReason.SEVERAL_ROW_GROUPS)
    (add,) = tables.added(world.path, outcome.version or 0)
    assert add["deletionVector"]["cardinality"] == 4
    assert pq.read_metadata(world.path / add["path"]).num_row_groups == 1
    query = QueryBuilder().register("t", DeltaTable(world.location)).execute("SELECT id FROM t WHERE id >= 30")
    assert {row["id"] for row in pa.table(query.read_all()).to_pylist()} == {*range(30, 100)} - {40, 77}


@pytest.mark.parametrize(
    ("deleted", "mode"),
    beyond(
        2,
        [(3, RewriteMode.FULL), (10, RewriteMode.MINOR), (3, RewriteMode.IDLE), (3, RewriteMode.PURGE)],
        "care",
    ),
)
def test_many_hidden_rows_or_any_that_are_to_go_are_left_out(world: World, deleted: int, mode: RewriteMode) -> None:
    world.statement(f"DELETE FROM {{t}} WHERE id % 10 = 0 AND id < {deleted * 10}")()
    (end,) = world.rewrite(mode=mode).groups
    assert (end.status, end.encoded_because) == (LANDED, EncodeReason.DELETION_VECTOR)
    assert [(file.rows, file.deleted_rows) for file in end.outputs] == [(100 - deleted, 0)]
    assert world.rows() == [row for row in world.before if row[0] % 10 or row[0] >= deleted * 10]


@pytest.mark.parametrize(("moment", "way"), beyond(2, pairs_first(MOMENTS, WAYS), "care"))
def test_an_input_that_is_removed_meanwhile_costs_its_own_rows_alone(
    world: World, moment: Callable[..., Steering], way: str
) -> None:
    world.statement("DELETE FROM {t} WHERE id = 3")()
    theirs = world.statement("DELETE FROM {t} WHERE id BETWEEN 20 AND 39")
    outcome = world.rewrite(moment(theirs), way, below=Fraction(1, 4))
    (end,) = outcome.groups
    assert (end.status, end.rows, [file.deleted_rows for file in end.outputs]) == (LANDED, 79, [21])
    assert world.rows() == [row for row in world.before if row[0] != 3 and not 20 <= row[0] <= 39]
    assert len(tables.removed(world.path, outcome.version or 0)) == 4, "the fifth was removed before"


@pytest.mark.parametrize("moment", MOMENTS)
def test_rows_that_come_back_meanwhile_are_not_lost(world: World, moment: Callable[..., Steering]) -> None:
    world.statement("DELETE FROM {t} WHERE id IN (0, 40)")()

    def undo() -> None:
        """As a RESTORE that changes no metadata."""
        hidden = [add for add in tables.live(world.path).values() if add.get("deletionVector")]
        removes = [{**{name: add[name] for name in ("path", "deletionVector")}, "dataChange": True} for add in hidden]
        adds = [{name: value for name, value in add.items() if name != "deletionVector"} for add in hidden]
        lines = [*({"remove": one} for one in removes), *({"add": one} for one in adds)]
        file = world.path / "_delta_log" / f"{tables.newest(world.path) + 1:020}.json"
        file.write_text("\n".join(map(json.dumps, lines)))

    assert [end.status for end in world.rewrite(moment(undo)).groups] == [STALE]
    assert (world.rows(), world.vectors()) == (world.before, world.named_vectors())


def test_one_that_deletes_again_before_each_attempt_costs_attempts_and_no_row(world: World) -> None:
    statements = [world.statement(f"DELETE FROM {{t}} WHERE id IN ({number}, {number + 50})") for number in range(3)]
    outcome = world.rewrite(at_commit(*statements))
    assert ([end.status for end in outcome.groups], outcome.conflicts) == ([LANDED], 3)
    assert world.rows() == [row for row in world.before if row[0] % 50 not in range(3)]
    assert world.vectors() == world.named_vectors(), "vectors of attempts that were refused are deleted"


def test_an_update_and_a_merge_meanwhile_keep_their_effect_and_so_does_what_comes_after(world: World) -> None:
    before = {row[0]: row for row in world.before}
    merge = (
        "MERGE INTO {t} t USING (SELECT explode(array(7, 1000)) AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (id, v, x) VALUES (1000, 'n', 0)"
    )
    statements = [world.statement("UPDATE {t} SET v = 'u' WHERE id IN (5, 70)"), world.statement(merge)]
    outcome = world.rewrite(when_written(*statements))
    assert [end.status for end in outcome.groups] == [LANDED]
    model = before | {5: (5, "u", before[5][2]), 70: (70, "u", before[70][2]), 7: (7, "m", before[7][2])}
    model |= {1000: (1000, "n", 0)}
    assert world.rows() == sorted(model.values())
    world.statement("DELETE FROM {t} WHERE id BETWEEN 10 AND 12")()
    world.statement("REORG TABLE {t} APPLY (PURGE)")()
    assert world.rows() == sorted(row for number, row in model.items() if number not in (10, 11, 12))
    world.statement(f"RESTORE TABLE {{t}} TO VERSION AS OF {outcome.version}")()
    assert world.rows() == sorted(model.values())


@pytest.mark.parametrize(
    ("statement", "way"),
    [
        ("DELETE FROM {t} WHERE id < 100", "copied"),  # Delta removes the files.
        ("DELETE FROM {t} WHERE id BETWEEN 20 AND 39", "copied"),
        ("OPTIMIZE {t}", "copied"),
        ("DELETE FROM {t} WHERE id = 3", "encoded"),  # Spark states no order of rows.
        ("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')", "copied"),
    ],
)
def test_what_cannot_be_hidden_is_planned_again(world: World, statement: str, way: str) -> None:
    theirs, after = world.statement(statement), list[object]()
    with suppress(Conflict):
        outcome = world.rewrite(when_written(theirs, lambda: after.append(world.by_hand())), way)
        assert [end.status for end in outcome.groups] == [STALE]
    assert [world.rows()] == after
    versions = range(tables.newest(world.path) + 1)
    assert world.data_files() == {add["path"] for one in versions for add in tables.added(world.path, one)}


@pytest.mark.parametrize("is_late", [True, False])
def test_an_output_that_holds_its_inputs_in_another_order_is_never_committed(
    world: World, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    places = RowMap.places
    monkeypatch.setattr(RowMap, "places", lambda rows, chosen: ((place + 20) % 100 for place in places(rows, chosen)))
    delete = world.statement("DELETE FROM {t} WHERE id IN (3, 41)")
    before, version = world.data_files(), world.table.version
    if is_late:
        with pytest.raises(Difference, match="values differ in the columns id, v, x"):
            world.rewrite(when_written(delete), "by column")
    else:
        delete()
        (end,) = world.rewrite(way="by column").groups
        assert (end.status, type(end.error)) == (GroupStatus.REFUSED, Difference)
    assert (tables.newest(world.path), world.data_files()) == (version + 1, before)
    assert world.vectors() == world.named_vectors()
