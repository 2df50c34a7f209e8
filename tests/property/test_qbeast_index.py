"""The laws of a Qbeast index: what folding keeps, what a selection takes, and that every optimization ends."""

import os
import random
from collections import Counter, defaultdict
from dataclasses import dataclass

import pytest

from shared.errors import Conflict
from shared.formats.qbeast.cubes import CubeSpace, cube_order
from shared.formats.qbeast.domains import count_domains
from shared.formats.qbeast.files import MAX_WEIGHT, MIN_WEIGHT, Block, FileClass, IndexFile
from shared.formats.qbeast.groups import eligible_groups
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.iterations import (
    IndexOptions,
    Iteration,
    IterationEnd,
    Strategy,
    progress_of,
    run_iterations,
)
from shared.formats.qbeast.leveled import select_leveled
from shared.formats.qbeast.rollup import rollup
from shared.formats.qbeast.unindexed import select_unindexed
from shared.formats.qbeast.weights import cube_that_lacks, cube_weights, weight_of_fraction
from tests.support.qbeast_tree import QbeastTree, places

INDEXES = 1_000
TREES = int(os.environ.get("LAKEWRIGHT_QBEAST_EXAMPLES", "8"))
"""Simulated tables; `make test-qbeast` takes 1,000."""

SPACE = CubeSpace(2)
CUBES = ("", "A", "Q", "g", "w", "AA", "Ag", "Qw", "ww", "AAA", "wwg")


def random_files(rng: random.Random) -> list[IndexFile]:
    """Return files of one revision whose blocks have any number of rows; some have two blocks of one cube, or none."""
    made = []
    for number in range(rng.randint(0, 25)):
        blocks = tuple(
            Block(rng.choice(CUBES), MIN_WEIGHT, rng.randint(MIN_WEIGHT, MAX_WEIGHT), rows_of(rng))
            for _ in range(rng.randint(0, 4))
        )
        made.append(IndexFile(f"f{number}", rng.randint(0, 1000), FileClass.INDEXED, 1, blocks, number))
    return made


def rows_of(rng: random.Random) -> int:
    return rng.choice((0, rng.randint(1, 9), rng.randint(10, 99), rng.randint(100, 999), 10 ** rng.randint(0, 3)))


@dataclass(frozen=True)
class PlainGroup:
    """A group counted as plainly as the rule is written, sharing no code with the product."""

    level: int
    cube: str
    rows: int
    blocks: int
    paths: frozenset[str]


def plain_groups(files: list[IndexFile]) -> list[PlainGroup]:
    found = defaultdict(list)
    for file in files:
        largest = max((block.rows for block in file.blocks), default=0)
        if largest == 0:
            continue
        level = next(power for power in range(20) if 10**power <= largest < 10 ** (power + 1))
        for block in file.blocks:
            if block.rows:
                found[level, block.cube].append((file.path, block.rows))
    groups = [
        PlainGroup(level, cube, sum(r for _, r in some), len(some), frozenset(p for p, _ in some))
        for (level, cube), some in found.items()
    ]
    kept = [group for group in groups if group.rows >= 10 ** (group.level + 1)]
    return sorted(kept, key=lambda g: (g.level, len(g.cube), g.blocks, cube_order(g.cube)))


@pytest.mark.parametrize("seed", range(INDEXES // 100))
def test_a_leveled_selection_takes_the_first_groups_of_the_lowest_level_within_its_budget(seed: int) -> None:
    taken = 0
    for number in range(100):
        rng = random.Random(f"leveled {seed} {number}")
        files = random_files(rng)
        sizes = {file.path: file.size_bytes for file in files}
        groups = plain_groups(files)
        # A block is below the next level of its file, so that one alone never makes a group.
        assert all(group.blocks > 1 for group in groups)
        assert [(g.level, g.cube) for g in eligible_groups(files, SPACE)] == [(g.level, g.cube) for g in groups]

        budget_bytes = rng.choice((0, 1, 500, 2000, 10**9))
        found = select_leveled(files, SPACE, budget_bytes)
        shuffled = list(files)
        rng.shuffle(shuffled)
        assert select_leveled(shuffled, SPACE, budget_bytes) == found, "the order of the files does not matter"
        if not groups:
            assert found.files == ()
            continue
        taken += 1
        lead = groups[0]
        same_level = [group for group in groups if group.level == lead.level]
        chosen = set(found.paths)
        assert len(chosen) == len(found.paths)
        assert list(found.cubes) == [group.cube for group in same_level[: len(found.cubes)]], "none is skipped"
        if budget_bytes == 0:
            assert chosen == lead.paths
        elif sum(sizes[path] for path in lead.paths) <= budget_bytes:
            assert chosen == frozenset().union(*(group.paths for group in same_level[: len(found.cubes)]))
            assert sum(sizes[path] for path in chosen) <= budget_bytes
            if len(found.cubes) < len(same_level):
                more = chosen | same_level[len(found.cubes)].paths
                assert sum(sizes[path] for path in more) > budget_bytes, "the next group did not fit"
        else:
            part = [file for file in files if file.path in chosen]
            is_oversized = sum(sizes[path] for path in chosen) > budget_bytes
            assert chosen < lead.paths or is_oversized
            assert any((g.level, g.cube) == (lead.level, lead.cube) for g in plain_groups(part)), "it is eligible"
            if is_oversized:
                fewer = [file for file in part if file.path != found.paths[-1]]
                assert not any((g.level, g.cube) == (lead.level, lead.cube) for g in plain_groups(fewer))
    assert taken > 10


def test_files_that_are_not_indexed_are_taken_once_oldest_first_with_the_file_that_reaches_the_batch() -> None:
    for number in range(INDEXES):
        rng = random.Random(f"unindexed {number}")
        kinds = (FileClass.UNINDEXED, FileClass.UNINDEXED, FileClass.INDEXED, FileClass.FOREIGN_TAGS)
        files = [
            IndexFile(f"f{n}", rng.randint(0, 50), rng.choice(kinds), modified_ms=rng.randint(0, 9)) for n in range(12)
        ]
        batch, from_ms = rng.randint(1, 200), rng.randint(0, 9)
        order: list[IndexFile] = []
        left = list(files)
        while found := select_unindexed(left, batch, from_ms):
            assert sum(file.size_bytes for file in found[:-1]) < batch
            order += found
            left = [file for file in left if file not in found]
            assert not select_unindexed(left, batch, from_ms) or sum(file.size_bytes for file in found) >= batch
        wanted = [file for file in files if file.kind is FileClass.UNINDEXED and file.modified_ms >= from_ms]
        assert order == sorted(wanted, key=lambda file: (file.modified_ms, file.path))


def plain_rollup(rows: dict[str, int], limit: int) -> dict[str, str]:
    """Return the rollup as the library computes it: the deepest cube of a queue first, parents join the queue."""
    groups = {cube: ({cube}, size) for cube, size in rows.items()}
    queue = list(groups)
    while queue:
        cube = queue.pop(queue.index(max(queue, key=len)))
        cubes, size = groups[cube]
        if size < limit and cube:
            parent = cube[:-1]
            if parent in groups:
                groups[parent] = (groups[parent][0] | cubes, groups[parent][1] + size)
            else:
                groups[parent] = (cubes, size)
                queue.append(parent)
            del groups[cube]
    return {cube: group for group, (cubes, _) in groups.items() for cube in cubes}


def test_the_rollup_is_the_librarys() -> None:
    for number in range(INDEXES):
        rng = random.Random(f"rollup {number}")
        rows = {cube: rng.randint(1, 30) for cube in rng.sample(CUBES, rng.randint(0, len(CUBES)))}
        assert rollup(rows, SPACE, 20) == plain_rollup(rows, 20)


def grown(rng: random.Random, *, with_drops: bool) -> QbeastTree:
    tree = QbeastTree(rng, cube_size=rng.choice((5, 12, 40)))
    for _ in range(rng.randint(2, 9)):
        tree.append(tree.new_rows(rng.randint(1, 60)))
        if with_drops and rng.random() < 0.3:
            tree.drop(rng.choice(list(tree.files)))
    return tree


class Watched:
    """A simulated table that checks at each iteration that rows stay and that a compaction makes progress."""

    def __init__(self, tree: QbeastTree, rng: random.Random, *, foreign: bool = False) -> None:
        self.tree, self.rng, self.foreign = tree, rng, foreign
        self.left = 3 if foreign else 0

    def read(self) -> QbeastIndex:
        return self.tree.read()

    def optimize(self, iteration: Iteration) -> None:
        if self.left and self.rng.random() < 0.3:
            self.left -= 1
            self.tree.append(self.tree.new_rows(20))
            if self.rng.random() < 0.3:
                self.tree.drop(iteration.paths[0])
        rows = Counter(row for some in self.tree.rows.values() for row in some)
        before = progress_of(self.tree.read().of_revision(1))
        self.tree.optimize(iteration)
        assert Counter(row for some in self.tree.rows.values() for row in some) == rows
        if iteration.strategy in (Strategy.LEVELED, Strategy.REVISION):
            assert progress_of(self.tree.read().of_revision(1)) < before, "(overhanging blocks, blocks) falls"


@pytest.mark.parametrize("seed", range(TREES))
@pytest.mark.parametrize("budget_bytes", [0, 3_000, 10**9])
def test_every_optimization_ends_and_every_compaction_lowers_overhang_then_blocks(seed: int, budget_bytes: int) -> None:
    rng = random.Random(f"loop {seed}")
    tree = grown(rng, with_drops=seed % 2 == 0)
    table = Watched(tree, rng)
    done = run_iterations(table, IndexOptions(budget_bytes=budget_bytes), lambda: False)
    assert done.end is IterationEnd.DONE
    assert eligible_groups(tree.read().of_revision(1), SPACE) == []


@pytest.mark.parametrize("seed", range(TREES))
def test_a_whole_revision_is_rewritten_once_and_then_each_cube_has_one_block(seed: int) -> None:
    rng = random.Random(f"whole {seed}")
    tree = grown(rng, with_drops=seed % 2 == 0)
    table, whole = Watched(tree, rng), IndexOptions(budget_bytes=0, whole_revision=True, indexes_files=False)
    before = tree.read().of_revision(1)
    done = run_iterations(table, whole, lambda: False)
    assert done.end is IterationEnd.DONE
    assert [one.files for one in done.iterations] in ([before], [])
    files = tree.read().of_revision(1)
    blocks = [block for file in files for block in file.blocks]
    assert len(blocks) == len({block.cube for block in blocks})
    weights = cube_weights(files)
    assert [block for block in blocks if cube_that_lacks(block, weights, SPACE) is not None] == []
    assert progress_of(tree.read().of_revision(1)).overhang_blocks == 0
    assert run_iterations(table, whole, lambda: False).iterations == ()


def require_exact_samples(tree: QbeastTree) -> None:
    """Every sample finds all of its rows by the rule of the library's reader: from the root down, as far as needed."""
    files = tree.read().of_revision(1)
    weights = cube_weights(files)
    blocks = {(file.path, block.cube): block for file in files for block in file.blocks}
    for fraction in (0.01, 0.05, 0.2, 0.5, 0.9):
        limit = weight_of_fraction(fraction)
        read = {
            path
            for (path, cube), block in blocks.items()
            if block.min_weight < limit and all(limit > weights.get(one, limit - 1) for one in SPACE.path(cube)[1:])
        }
        sampled = [(weight, file.path) for file in files for weight, _ in tree.rows[file.path] if weight < limit]
        assert [one for one in sampled if one[1] not in read] == [], fraction


@pytest.mark.parametrize("seed", range(TREES))
def test_samples_of_an_index_that_is_made_of_files_of_other_writers_find_every_row(seed: int) -> None:
    rng = random.Random(f"new files {seed}")
    tree = QbeastTree(rng, cube_size=rng.choice((1, 5, 12, 40)))
    for _ in range(rng.randint(2, 6)):
        for _ in range(rng.randint(1, 3)):
            tree.append_plainly(tree.new_rows(rng.randint(1, 150)))
            if rng.random() < 0.5:
                tree.unindex(rng.choice(sorted(tree.files)))
        budget = rng.choice((0, 3_000, 10**9))
        options = IndexOptions(indexes_first=rng.random() < 0.5, budget_bytes=budget, batch_bytes=rng.randint(1, 4_000))
        assert run_iterations(Watched(tree, rng), options, lambda: False).end is IterationEnd.DONE
        assert tree.read().of_class(FileClass.UNINDEXED) == ()
        require_exact_samples(tree)


@pytest.mark.parametrize("seed", range(TREES))
def test_rows_are_counted_by_cube_down_to_those_that_want_all_of_theirs(seed: int) -> None:
    rng = random.Random(f"domains {seed}")
    tree = QbeastTree(rng, cube_size=rng.choice((1, 5, 40)))
    rows, revision = tree.new_rows(rng.randint(1, 400)), tree.read().revisions.by_id[1]
    found = count_domains(lambda levels: places(rows, levels), len(rows), revision)
    assert found == {cube: sum(place.startswith(cube) for _, place in rows) for cube in found}
    leaves = {cube for cube in found if not any(other != cube and other.startswith(cube) for other in found)}
    deepest = len(rows[0][1])
    assert all(found[cube] <= revision.desired_cube_size or len(cube) == deepest for cube in leaves)


@pytest.mark.parametrize("seed", range(TREES))
def test_appends_and_deletes_meanwhile_lose_no_row_and_the_optimization_still_ends(seed: int) -> None:
    rng = random.Random(f"foreign {seed}")
    tree = grown(rng, with_drops=False)
    tree.append_plainly(tree.new_rows(5))
    try:
        done = run_iterations(Watched(tree, rng, foreign=True), IndexOptions(), lambda: False)
    except Conflict:
        return
    assert done.end is IterationEnd.DONE
    assert tree.read().of_class(FileClass.UNINDEXED) == ()
