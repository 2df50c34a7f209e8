"""The laws of rewrites for a sample: which files they take, that they end run after run, and what they lower."""

import os
import random
from collections import Counter, defaultdict
from fractions import Fraction

import pytest

from shared.formats.qbeast.cubes import CubeSpace, cube_order
from shared.formats.qbeast.files import MAX_WEIGHT, MIN_WEIGHT, Block, FileClass, IndexFile
from shared.formats.qbeast.groups import eligible_groups
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.iterations import (
    IndexOptions,
    Iteration,
    IterationEnd,
    Strategy,
    next_iteration,
    progress_of,
    run_iterations,
)
from shared.formats.qbeast.revisions import IndexedColumn, Revision
from shared.formats.qbeast.sampling import Worklist, rows_read, select_sampling
from shared.formats.qbeast.weights import weight_of_fraction
from tests.support.qbeast_tree import QbeastTree

TREES = int(os.environ.get("LAKEWRIGHT_QBEAST_EXAMPLES", "8"))
"""Simulated tables; `make test-qbeast` takes 1,000."""

RUNS = 40
"""Runs after which a table that is left alone must have nothing to do."""

SPACE = CubeSpace(2)
CUBES = ("", "A", "Q", "g", "w", "AA", "Ag", "Qw", "ww", "AAA", "wwg")
FRACTIONS = (Fraction(1, 100), Fraction(1, 20), Fraction(1, 5), Fraction(1, 2))


def random_files(rng: random.Random) -> list[IndexFile]:
    """Return files of one revision with blocks of any weights."""
    made = []
    for number in range(rng.randint(0, 20)):
        blocks = []
        for _ in range(rng.randint(1, 4)):
            low, high = sorted((rng.randint(MIN_WEIGHT, MAX_WEIGHT), rng.randint(MIN_WEIGHT, MAX_WEIGHT)))
            blocks.append(Block(rng.choice(CUBES), low, high, rng.randint(1, 60)))
        made.append(IndexFile(f"f{number}", rng.randint(1, 900), FileClass.INDEXED, 1, tuple(blocks), number))
    return made


def test_a_batch_holds_the_first_wasteful_files_and_stops_at_its_bytes() -> None:
    taken = 0
    for number in range(1_000):
        rng = random.Random(f"batch {number}")
        files = random_files(rng)
        fraction, batch_bytes = rng.choice((0.01, 0.2, 0.7)), rng.choice((1, 500, 10**6))
        revision = Revision(1, rng.choice((1, 50, 10**6)), (IndexedColumn("a", "linear"), IndexedColumn("b", "linear")))
        found = select_sampling(files, revision, fraction, batch_bytes, Worklist())
        shuffled = list(files)
        rng.shuffle(shuffled)
        assert select_sampling(shuffled, revision, fraction, batch_bytes, Worklist()) == found
        # As plainly as the rule is written.
        limit = weight_of_fraction(fraction)
        weights: dict[str, int] = {}
        for file in files:
            for block in file.blocks:
                weights[block.cube] = min(block.max_weight, weights.get(block.cube, MAX_WEIGHT))
        partly = {
            file.path
            for file in files
            if any(b.min_weight < limit < b.max_weight and b.max_weight > weights[b.cube] for b in file.blocks)
        }
        mixed = {file.path for file in files if {block.min_weight < limit for block in file.blocks} == {True, False}}
        assert {file.path for file in found} <= partly | mixed
        order = sorted(files, key=lambda file: (min(cube_order(block.cube) for block in file.blocks), file.path))
        assert list(found) == [file for file in order if file in found]
        assert sum(file.size_bytes for file in found[:-1]) < batch_bytes
        taken += bool(found)
    assert taken > 100


def grown(rng: random.Random) -> QbeastTree:
    tree = QbeastTree(rng, cube_size=rng.choice((5, 12, 40)))
    for _ in range(rng.randint(2, 9)):
        tree.append(tree.new_rows(rng.randint(1, 60)))
    return tree


class Watched:
    """A simulated table that checks each rewrite: rows stay, and what its strategy promises is lowered."""

    def __init__(self, tree: QbeastTree, sample: Fraction) -> None:
        self.tree, self.sample = tree, sample
        self.inputs: list[tuple[str, ...]] = []
        self.appends = 0

    def read(self) -> QbeastIndex:
        return self.tree.read()

    def optimize(self, iteration: Iteration) -> None:
        if iteration.strategy is Strategy.SAMPLING:
            assert eligible_groups(self.tree.read().of_revision(1), SPACE) == [], "compaction comes first"
        if self.appends:
            self.appends -= 1
            self.tree.append(self.tree.new_rows(20))
        rows = Counter(row for some in self.tree.rows.values() for row in some)
        before = progress_of(self.tree.read().of_revision(1), self.sample)
        self.tree.optimize(iteration)
        after = progress_of(self.tree.read().of_revision(1), self.sample)
        assert Counter(row for some in self.tree.rows.values() for row in some) == rows
        if iteration.strategy is Strategy.SAMPLING:
            assert after < before, "(overhanging blocks, blocks, rows that the sample reads) falls"
            self.inputs.append(iteration.paths)


@pytest.mark.parametrize("seed", range(TREES))
@pytest.mark.parametrize("budget_bytes", [0, 3_000, 10**9])
def test_runs_with_all_strategies_end_and_so_do_runs_upon_runs(seed: int, budget_bytes: int) -> None:
    rng = random.Random(f"sampling runs {seed}")
    table = Watched(grown(rng), rng.choice(FRACTIONS))
    options = IndexOptions(budget_bytes=budget_bytes, sample=table.sample)
    runs = 0
    while next_iteration(table.read(), options) is not None:
        runs += 1
        assert runs < RUNS
        before = set(table.tree.files)
        table.inputs.clear()
        done = run_iterations(table, options, lambda: False)
        assert done.end is IterationEnd.DONE
        compacted = {path for one in done.iterations if one.strategy is Strategy.LEVELED for path in one.paths}
        if not compacted:
            assert {path for paths in table.inputs for path in paths} <= before, "outputs never join the list"
    assert eligible_groups(table.read().of_revision(1), SPACE) == []


@pytest.mark.parametrize("seed", range(TREES))
def test_appends_meanwhile_have_the_list_made_again_once_and_then_end_the_run(seed: int) -> None:
    rng = random.Random(f"sampling appends {seed}")
    table = Watched(grown(rng), rng.choice(FRACTIONS))
    table.appends = 4
    done = run_iterations(table, IndexOptions(budget_bytes=0, sample=table.sample), lambda: False)
    assert done.end is IterationEnd.DONE


def test_a_rewrite_that_moves_rows_up_again_is_not_taken_for_one_that_did_nothing() -> None:
    # Found by the test above: an append lowered the weight of a cube without a block of it.
    rng = random.Random("sampling appends 21")
    table = Watched(grown(rng), rng.choice(FRACTIONS))
    table.appends = 4
    done = run_iterations(table, IndexOptions(budget_bytes=0, sample=table.sample), lambda: False)
    assert done.end is IterationEnd.DONE


def test_samples_read_fewer_bytes_after_all_runs() -> None:
    before: defaultdict[Fraction, int] = defaultdict(int)
    after: defaultdict[Fraction, int] = defaultdict(int)
    alone: defaultdict[Fraction, int] = defaultdict(int)
    for seed in range(max(24, TREES)):
        sample = FRACTIONS[seed % len(FRACTIONS)]
        tree, compacted = (grown(random.Random(f"sampling bytes {seed}")) for _ in range(2))
        before[sample] += rows_read(tree.read().of_revision(1), float(sample))
        run_iterations(tree, IndexOptions(sample=sample), lambda: False)
        run_iterations(compacted, IndexOptions(), lambda: False)
        after[sample] += rows_read(tree.read().of_revision(1), float(sample))
        alone[sample] += rows_read(compacted.read().of_revision(1), float(sample))
    print("rows that samples read: before, after compaction alone, after compaction and rewrites for the sample")
    for sample in FRACTIONS:
        print(f"  {float(sample):.0%}: {before[sample]}, {alone[sample]}, {after[sample]}")
    assert sum(after.values()) < sum(alone.values()) < sum(before.values())
