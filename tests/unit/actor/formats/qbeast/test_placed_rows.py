"""Rows are placed by rules that were proved on the blocks of their files, and lower weights that a block records."""

import random
from collections import defaultdict
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actor.formats.delta.actions import LoggedFile
from actor.formats.qbeast.index_rows import Places
from actor.formats.qbeast.index_table import IndexRewrite
from actor.formats.qbeast.placed_rows import PlacedRows
from actor.jvm.scala import Scala
from shared.errors import RefusedFiles
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.placement import RowCount, Rows, plan_outputs, require_lawful, rows_of_cubes
from shared.formats.qbeast.transformations import Coordinate
from tests.support.qbeast_tree import SPACE, QbeastTree, Row, cube_of, places


@dataclass
class TreeRows:
    """Rows of simulated files, counted in memory; of each file by its path."""

    rows: dict[str, list[Row]]

    def total(self) -> int:
        return sum(map(len, self.rows.values()))

    def ranges(self) -> Any:
        raise NotImplementedError

    def counted(self, where: Places) -> Rows:
        weights = defaultdict[tuple[str, str, str], list[int]](list)
        for name, rows in self.rows.items():
            for row in rows:
                weights[(name, self._block(name, row, where), self._cube(row, where))].append(row[0])
        return {key: RowCount(len(some), min(some)) for key, some in weights.items()}

    def _block(self, name: str, row: Row, where: Places) -> str:
        if where.blocks is None:
            return ""
        known = {block.cube: block.max_weight for block in where.blocks[name]}
        return next((cube for cube in SPACE.path(row[1])[::-1] if row[0] <= known.get(cube, -(2**31) - 1)), "?")

    def _cube(self, row: Row, where: Places) -> str:
        if where.levels:
            ((found, _),) = places([row], where.cubes).items()
            return found
        return cube_of(row, where.cubes)


def scala(zones: tuple[str, ...] = ("UTC",), release: int = 17) -> Scala:
    found: dict[str, Any] = {
        "java.time.ZoneId": SimpleNamespace(
            getAvailableZoneIds=lambda: SimpleNamespace(contains=lambda zone: zone in zones)
        ),
        "java.lang.Runtime": SimpleNamespace(version=lambda: SimpleNamespace(feature=lambda: release)),
    }
    return cast("Scala", SimpleNamespace(resolve=found.__getitem__))


def tree_of(appends: int) -> QbeastTree:
    tree = QbeastTree(random.Random(7), 20)
    for _ in range(appends):
        tree.append(tree.new_rows(150))
    return tree


def wanted_of(tree: QbeastTree, *, indexed: bool) -> IndexRewrite:
    files = [file for file in tree.read().files if bool(file.blocks) is indexed]
    return IndexRewrite.of(QbeastIndex.of_snapshot(tree.snapshot()), tuple(files), "")


def placed_by(
    wanted: IndexRewrite, columns: tuple[str, ...] = ("PRICE", "user"), of: Scala | None = None
) -> PlacedRows:
    return PlacedRows(of or scala(), "/lake/t", wanted, columns)


def logged(wanted: IndexRewrite, tree: QbeastTree) -> list[LoggedFile]:
    return [LoggedFile(tree.files[file.path], "{}") for file in wanted.files]


def test_rows_that_are_where_their_blocks_say_are_placed_by_the_weights_of_the_index() -> None:
    tree = tree_of(3)
    wanted = wanted_of(tree, indexed=True)
    rows = TreeRows({file.path: tree.rows[file.path] for file in wanted.files})
    found, where = placed_by(wanted).proved(rows, logged(wanted, tree))
    assert (sum(one.rows for one in found.values()), where.cubes) == (450, wanted.weights)
    require_lawful(plan_outputs(rows_of_cubes(found), where.cubes, wanted.revision), where.cubes, 450, SPACE)


def test_a_row_too_few_is_refused_unless_a_vector_hides_it() -> None:
    tree = tree_of(1)
    wanted = wanted_of(tree, indexed=True)
    rows = {file.path: list(tree.rows[file.path]) for file in wanted.files}
    name = wanted.files[0].path
    del rows[name][0]
    inputs = logged(wanted, tree)
    with pytest.raises(RefusedFiles, match="the blocks that tags of files say"):
        placed_by(wanted).proved(TreeRows(rows), inputs)
    inputs[0] = LoggedFile(replace(inputs[0].file, dv_id="v"), "{}")
    found, _ = placed_by(wanted).proved(TreeRows(rows), inputs)
    assert sum(one.rows for one in found.values()) == 149


@pytest.mark.parametrize("appends", [0, 2, 6])
def test_rows_that_are_added_lower_only_weights_that_a_block_of_theirs_records(appends: int) -> None:
    tree = tree_of(appends)
    for _ in range(2):
        tree.append_plainly(tree.new_rows(100))
    wanted = wanted_of(tree, indexed=False)
    assert wanted.added is not None
    rows = TreeRows({file.path: tree.rows[file.path] for file in wanted.files})
    found, where = placed_by(wanted).added(rows, wanted.added)
    counts = rows_of_cubes(found)
    changed = {cube for cube, weight in where.cubes.items() if wanted.weights.get(cube) != weight}
    assert changed <= counts.keys()
    require_lawful(plan_outputs(counts, where.cubes, wanted.revision), where.cubes, 200, SPACE)


def test_a_column_a_zone_or_a_java_that_does_not_fit_the_rules_is_refused() -> None:
    tree = tree_of(1)
    wanted = wanted_of(tree, indexed=True)
    inputs = logged(wanted, tree)
    with pytest.raises(RefusedFiles, match="no column 'user'"):
        placed_by(wanted, ("price",)).proved(TreeRows({}), inputs)
    known = Coordinate("linear", "user", "DateDataType", 0.0, 1.0, zone="UTC")
    with pytest.raises(RefusedFiles, match="the blocks that tags of files say"):
        placed_by(replace(wanted, coordinates=(known,))).proved(TreeRows({}), inputs)
    day = Coordinate("linear", "price", "DateDataType", 0.0, 1.0, zone="Europe/Nowhere")
    with pytest.raises(RefusedFiles, match="no time zone"):
        placed_by(replace(wanted, coordinates=(known, day))).proved(TreeRows({}), inputs)
    text = Coordinate("hashing", "price", "DoubleDataType")
    with pytest.raises(RefusedFiles, match="Java 21 spells otherwise"):
        placed_by(replace(wanted, coordinates=(text,)), of=scala(release=21)).proved(TreeRows({}), inputs)
