"""What the benchmark of cells stands on: the curve, the layouts that are compared, every rule on a short stream."""

import pytest

from tests.bench.cells.playing import Case, Played, play
from tests.bench.cells.policies import RULES
from tests.bench.cells.reads import compare, evenly, optimized, queries
from tests.support.clustered_streams import MAKERS, stream

SHORT = Case("short", commits=80)


@pytest.fixture(scope="module")
def played() -> dict[str, Played]:
    return play(SHORT, RULES, points=4)


def test_a_layout_compared_with_itself_reads_the_same_and_one_without_order_more() -> None:
    made = stream("uniform", 64, 64, 2)
    rows = range(64 * 64)
    best, asked = optimized(made.points, rows, 512), queries(made.points, rows)
    same = compare(best, best, asked)
    assert (same.bytes, same.files, same.point_bytes) == (1, 1, 1)
    mixed = [(tuple((0, 1 << 30) for _ in range(2)), len(part)) for part in evenly(rows, 512)]
    assert compare(mixed, best, asked).bytes > 1.5


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_a_stream_is_the_same_each_time_and_deletes_no_row_twice(kind: str) -> None:
    one, two = (stream(kind, 20, 16, 3, updated=4) for _ in range(2))
    assert one == two
    deleted = [row for commit in one.commits for row in commit.deleted]
    assert len(deleted) == len(set(deleted)) > 0
    assert all(row < commit.added.start for commit in one.commits for row in commit.deleted)


def test_each_rule_writes_the_rows_that_the_stream_has(played: dict[str, Played]) -> None:
    assert {one.written_bytes for one in played.values()} == {80 * 64 * 1024}
    assert all(one.runs and len(one.checks) == 4 for one in played.values())


def test_each_rule_plays_a_stream_whose_writer_copies_files() -> None:
    found = play(Case("copied", commits=60, updated=3, is_copied=True), RULES, points=2)
    assert all(one.written_bytes > 60 * 64 * 1024 for one in found.values())
