"""Seeded streams of rows as points, for rules of clustering: how the keys of commits spread."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from shared.layout.cells.boxes import Point

Maker = Callable[[random.Random, int, int, int], list[Point]]
RANGE = 1 << 30


def uniform(dice: random.Random, commits: int, rows: int, columns: int) -> list[Point]:
    """Each row anywhere."""
    return [tuple(dice.randrange(RANGE) for _ in range(columns)) for _ in range(commits * rows)]


def zipf(dice: random.Random, commits: int, rows: int, columns: int) -> list[Point]:
    """Two columns with heavy keys (exponent 1.3), scattered over the range; others uniform."""
    ranks = range(1, 100_000)
    weights = list(accumulate(rank**-1.3 for rank in ranks))
    count = commits * rows
    heavy = [
        [rank * 2_654_435_761 % 1_000_003 for rank in dice.choices(ranks, cum_weights=weights, k=count)]
        for _ in range(min(2, columns))
    ]
    other = [[dice.randrange(RANGE) for _ in range(count)] for _ in range(columns - len(heavy))]
    return list(zip(*heavy, *other, strict=True))


def ascending(dice: random.Random, commits: int, rows: int, columns: int) -> list[Point]:
    """The first column is a time: a commit's rows follow those of the commit before, a little mixed."""
    step = RANGE // (commits + 2)
    return [
        (commit * step + dice.randrange(2 * step), *(dice.randrange(RANGE) for _ in range(columns - 1)))
        for commit in range(commits)
        for _ in range(rows)
    ]


def together(dice: random.Random, commits: int, rows: int, columns: int) -> list[Point]:
    """All columns are times, and ascend together."""
    step = RANGE // (commits + 2)
    return [
        tuple(commit * step + dice.randrange(2 * step) for _ in range(columns))
        for commit in range(commits)
        for _ in range(rows)
    ]


def drifting(dice: random.Random, commits: int, rows: int, columns: int) -> list[Point]:
    """Each commit's rows lie near one center, which jumps now and then."""
    center = [dice.random() for _ in range(columns)]
    points: list[Point] = []
    for _ in range(commits):
        if dice.random() < 0.05:
            center = [dice.random() for _ in range(columns)]
        points += [tuple(int(min(1, max(0, dice.gauss(at, 0.03))) * RANGE) for at in center) for _ in range(rows)]
    return points


MAKERS: dict[str, Maker] = {one.__name__: one for one in (uniform, zipf, ascending, together, drifting)}


@dataclass(frozen=True, slots=True)
class Commit:
    """Rows that a commit adds, and earlier rows that it replaces by the first of them."""

    added: range
    deleted: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stream:
    """All rows of a stream, and its commits."""

    points: list[Point]
    commits: list[Commit]


def stream(kind: str, commits: int, rows: int, columns: int, *, updated: int = 0, seed: int = 1) -> Stream:
    """Return a stream whose commits replace up to `updated` random earlier rows, which keep their keys."""
    dice = random.Random(seed)
    points = MAKERS[kind](dice, commits, rows, columns)
    is_live = bytearray(b"\1") * len(points)
    made = []
    for first in range(0, commits * rows, rows):
        drawn = sorted({dice.randrange(first) for _ in range(updated)}) if first else []
        deleted = tuple(row for row in drawn if is_live[row])
        for new, old in enumerate(deleted, first):
            points[new] = points[old]
            is_live[old] = 0
        made.append(Commit(range(first, first + rows), deleted))
    return Stream(points, made)
