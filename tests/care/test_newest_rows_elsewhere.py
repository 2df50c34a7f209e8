"""Removals of older rows beside other engines: what they wrote before, meanwhile and after, and what they read then.

An engine that does not support a table's features is left out where it also fails on the table as it was before the
removal; everything else is a difference that the removal made.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")
pytest.importorskip("duckdb", reason="DuckDB and Polars are in the group `dev`")

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.interop.engines.protocol import Reader
from tests.interop.keyed import CASES, Dice
from tests.interop.keyed_world import KeyedWorld, Race, keyed_readers
from tests.support.delta_lab import DeltaLab

pytestmark = pytest.mark.spark

ENGINES = ("deltalake", "spark")
KINDS = 4
"""Kinds of changes: append, delete, merge, compact."""


@pytest.fixture(scope="module")
def readers(spark: SparkSession) -> Sequence[Reader]:
    return keyed_readers(spark)


def change_all(world: KeyedWorld, dice: Dice, control: Path | None = None) -> None:
    """Each engine makes each kind of change."""
    for engine in ENGINES:
        for choice in range(KINDS):
            world.do(world.engines.choose(engine, dice, world.model, choice), control=control)


@pytest.mark.parametrize("name", CASES)
def test_engines_read_what_a_replay_leaves_and_go_on_writing(
    lab: DeltaLab, readers: Sequence[Reader], name: str
) -> None:
    seed = 5
    case, dice = CASES[name], Dice(seed)
    world = KeyedWorld(lab, case, readers)
    for engine in ENGINES:
        world.do(world.engines.append(engine, dice.rows(60, ties=True)))
    change_all(world, dice)
    untouched = world.copy()
    world.removed()
    world.check(untouched)
    change_all(world, dice, control=untouched)
    world.check(untouched)
    for choice in range(KINDS):
        world.do(world.engines.append("spark", dice.rows(20)))
        if case.is_written_by_deltalake:
            held = DeltaTable(str(world.place))
            world.removed()
            # It read the table before the removal: it is refused, or does exactly what it is to do.
            world.do(world.engines.choose("deltalake", dice, world.model, choice), held=held)
    world.check(untouched)
    print(f"\nseed {seed}, {name}: read by {sorted(world.read_by)}; not offered: {sorted(world.refused)}")
    assert {"Spark", "Delta Kernel (Java)"} <= world.read_by
    if case.creator == "deltalake":
        assert len(world.read_by) == len(readers)


@pytest.mark.parametrize("writer", ENGINES)
@pytest.mark.parametrize("name", CASES)
def test_a_writer_in_the_middle_of_a_removal_loses_and_doubles_nothing(
    lab: DeltaLab, readers: Sequence[Reader], name: str, writer: str
) -> None:
    if writer == "deltalake" and not CASES[name].is_written_by_deltalake:
        pytest.skip("deltalake does not write tables with column mapping")
    seed = 11
    dice, world = Dice(seed), KeyedWorld(lab, CASES[name], readers[:1])
    conflicts = 0
    for choice in range(KINDS):
        for _ in range(3):
            world.do(world.engines.append("spark", dice.rows(25)))
        change = world.engines.choose(writer, dice, world.model, choice)
        race = Race(change, at=1 + choice % len(world.dirty()))
        world.raced(race)
        world.check()
        conflicts += bool(race.touched)
    world.removed()
    world.check()
    print(f"\nseed {seed}, {name}, {writer}: {conflicts} conflicts; not offered: {sorted(world.refused)}")
    refused = sum(one.startswith(f"{writer}, ") for one in world.refused)
    assert conflicts or refused == KINDS, "a writer that may write the table has met no removal"
