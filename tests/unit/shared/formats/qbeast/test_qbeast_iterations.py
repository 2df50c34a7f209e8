"""When an optimization goes on and when it ends, against a table that does as it is told, or does not."""

import json
import random
from dataclasses import replace
from fractions import Fraction

import pytest

from shared.errors import Conflict, InvalidInput
from shared.formats.qbeast.cubes import CubeSpace
from shared.formats.qbeast.files import MIN_WEIGHT, Block, FileClass, IndexFile
from shared.formats.qbeast.groups import eligible_groups
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.iterations import (
    MAX_CONFLICTS,
    MAX_IDLE,
    IndexOptions,
    Iteration,
    IterationEnd,
    Strategy,
    next_iteration,
    run_iterations,
)
from shared.table import TableMetadata
from tests.support.qbeast_tree import QbeastTree, configuration

SAMPLE = Fraction(1, 4)


def tree(appends: int = 6) -> QbeastTree:
    made = QbeastTree(random.Random(7), cube_size=20)
    for _ in range(appends):
        made.append(made.new_rows(25))
    return made


class Idle:
    """A table whose library ignores every list, as it does with unknown paths; others may append meanwhile."""

    def __init__(self, made: QbeastTree, *, others: bool = False) -> None:
        self.made, self.others = made, others

    def read(self) -> QbeastIndex:
        return self.made.read()

    def optimize(self, iteration: Iteration) -> None:
        for _ in range(2 if self.others else 0):
            self.made.append(self.made.new_rows(5))


class Taken:
    """A table of which others take every input first, `times` in a row."""

    def __init__(self, made: QbeastTree, times: int) -> None:
        self.made, self.times = made, times

    def read(self) -> QbeastIndex:
        return self.made.read()

    def optimize(self, iteration: Iteration) -> None:
        if self.times:
            self.times -= 1
            self.made.drop(iteration.paths[0])
            raise Conflict("taken", kind="ConcurrentDeleteDeleteException")
        self.made.optimize(iteration)


class Same:
    """A table whose rewrite commits the same blocks under other names, which lowers nothing."""

    def __init__(self, made: QbeastTree) -> None:
        self.made = made

    def read(self) -> QbeastIndex:
        return self.made.read()

    def optimize(self, iteration: Iteration) -> None:
        made = self.made
        made._commit(
            iteration.paths, [made._file(made.rows[path], dict(made.files[path].tags)) for path in iteration.paths]
        )


class Turning:
    """A table whose rewrites change the blocks each time and never lower their number."""

    def __init__(self, made: QbeastTree) -> None:
        self.made, self.times = made, 0

    def read(self) -> QbeastIndex:
        return self.made.read()

    def optimize(self, iteration: Iteration) -> None:
        made, added = self.made, []
        self.times += 1
        for path in iteration.paths:
            tags = dict(made.files[path].tags)
            blocks = [block | {"minWeight": MIN_WEIGHT + self.times} for block in json.loads(tags["blocks"])]
            added.append(made._file(made.rows[path], tags | {"blocks": json.dumps(blocks)}))
        made._commit(iteration.paths, added)


def never() -> bool:
    return False


@pytest.mark.parametrize("others", [False, True])
def test_an_iteration_that_changed_nothing_is_not_repeated(others: bool) -> None:
    found = run_iterations(Idle(tree(), others=others), IndexOptions(), never, max_iterations=20)
    assert found.end is IterationEnd.NO_PROGRESS
    assert found.iterations == ()


def test_a_commit_that_lowered_nothing_ends_the_optimization() -> None:
    assert run_iterations(Same(tree()), IndexOptions(), never).end is IterationEnd.NO_PROGRESS


def for_a_sample() -> QbeastTree:
    """Return a table whose only eligible files are those that a sample reads too much of."""
    made = tree(30)
    run_iterations(made, IndexOptions(), never)
    found = next_iteration(made.read(), IndexOptions(sample=SAMPLE))
    assert found is not None
    assert found.strategy is Strategy.SAMPLING
    return made


def test_a_rewrite_for_a_sample_that_changed_nothing_or_lowered_nothing_ends_the_optimization() -> None:
    options = IndexOptions(sample=SAMPLE)
    assert run_iterations(Idle(for_a_sample()), options, never).end is IterationEnd.NO_PROGRESS
    assert run_iterations(Same(for_a_sample()), options, never).end is IterationEnd.NO_PROGRESS
    assert run_iterations(for_a_sample(), options, never).end is IterationEnd.DONE


def test_rewrites_that_lower_nothing_many_times_in_a_row_end_the_optimization() -> None:
    table = Turning(tree())
    found = run_iterations(table, IndexOptions(), never)
    assert (found.end, table.times) == (IterationEnd.NO_PROGRESS, MAX_IDLE)


def test_after_a_conflict_the_files_are_selected_again() -> None:
    assert run_iterations(Taken(tree(), MAX_CONFLICTS - 1), IndexOptions(), never).end is IterationEnd.DONE


def test_too_many_conflicts_in_a_row_are_the_jobs() -> None:
    with pytest.raises(Conflict):
        run_iterations(Taken(tree(30), MAX_CONFLICTS), IndexOptions(), never)


def test_a_stop_ends_before_the_next_iteration() -> None:
    made = tree()
    assert run_iterations(made, IndexOptions(), lambda: True).end is IterationEnd.STOPPED
    assert made.version == 6


def test_the_number_of_iterations_is_bounded() -> None:
    found = run_iterations(tree(30), IndexOptions(budget_bytes=1), never, max_iterations=1)
    assert (found.end, len(found.iterations)) == (IterationEnd.MAX_ITERATIONS, 1)


@pytest.mark.parametrize(
    ("options", "strategies"),
    [
        (IndexOptions(), [Strategy.UNINDEXED, Strategy.LEVELED]),
        (IndexOptions(indexes_first=False), [Strategy.LEVELED, Strategy.UNINDEXED]),
        (IndexOptions(indexes_files=False), [Strategy.LEVELED]),
        (IndexOptions(revision=0), [Strategy.UNINDEXED]),
        (IndexOptions(revision=1), [Strategy.UNINDEXED, Strategy.LEVELED]),
        (IndexOptions(sample=SAMPLE), [Strategy.UNINDEXED, Strategy.LEVELED, Strategy.SAMPLING]),
        (IndexOptions(sample=SAMPLE, indexes_first=False), [Strategy.LEVELED, Strategy.UNINDEXED, Strategy.SAMPLING]),
        (IndexOptions(sample=SAMPLE, indexes_files=False), [Strategy.LEVELED, Strategy.SAMPLING]),
        (IndexOptions(sample=SAMPLE, revision=0), [Strategy.UNINDEXED]),
        (IndexOptions(sample=SAMPLE, only=Strategy.LEVELED), [Strategy.LEVELED]),
    ],
)
def test_the_order_of_strategies_is_the_owners(options: IndexOptions, strategies: list[Strategy]) -> None:
    made = tree()
    made.append_plainly(made.new_rows(5))
    assert list(options.strategies) == strategies
    first = next_iteration(made.read(), options)
    assert first is not None
    assert first.strategy is strategies[0]


def test_where_the_first_strategy_finds_nothing_the_next_one_is_asked() -> None:
    found = next_iteration(tree().read(), IndexOptions())
    assert found is not None
    assert found.strategy is Strategy.LEVELED


def test_to_index_nothing_of_the_revision_without_an_index_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not to be indexed"):
        next_iteration(tree().read(), IndexOptions(revision=0, indexes_files=False))


def test_an_unknown_revision_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no revision 7"):
        next_iteration(tree().read(), IndexOptions(revision=7))


def test_a_table_that_was_converted_has_only_files_to_index() -> None:
    made = QbeastTree(random.Random(7), cube_size=20)
    made.append_plainly(made.new_rows(5))
    metadata = TableMetadata("u", configuration=configuration(20, last=0))
    converted = QbeastIndex.of_snapshot(replace(made.snapshot(), metadata=metadata))
    found = next_iteration(converted, IndexOptions())
    assert found is not None
    assert found.strategy is Strategy.UNINDEXED
    assert next_iteration(converted, IndexOptions(indexes_files=False)) is None


def test_files_that_are_indexed_become_files_of_the_revision() -> None:
    made = tree(1)
    made.append_plainly(made.new_rows(60))
    assert run_iterations(made, IndexOptions(), never).end is IterationEnd.DONE
    assert made.read().of_class(FileClass.UNINDEXED) == ()
    assert sum(file.rows for file in made.read().of_revision(1)) == 85


def test_blocks_without_rows_are_in_no_group() -> None:
    files = [IndexFile(name, 1, FileClass.INDEXED, 1, (Block("", 0, 1, 0), Block("A", 0, 1, 5))) for name in "ab"]
    (group,) = eligible_groups(files, CubeSpace(2))
    assert (group.cube, group.rows, group.blocks) == ("A", 10, 2)
