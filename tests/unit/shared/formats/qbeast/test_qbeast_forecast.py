"""A forecast of an index against what a simulated table really does."""

import random
from fractions import Fraction

import pytest

from shared.formats.qbeast.forecast import MAX_STEPS, forecasts
from shared.formats.qbeast.index import QbeastIndex
from shared.formats.qbeast.iterations import IndexOptions, run_iterations
from shared.formats.qbeast.status import index_status
from shared.formats.qbeast.weights import cube_weights
from shared.index.status import ForecastStep, IndexQuery
from tests.support.qbeast_tree import QbeastTree


def grown(seed: int, appends: int = 12, rows: int = 60) -> QbeastTree:
    made = QbeastTree(random.Random(seed), cube_size=12)
    for _ in range(appends):
        made.append(made.new_rows(rows))
    return made


def fragmentation(index: QbeastIndex) -> float:
    blocks = [block for file in index.of_revision(1) for block in file.blocks]
    return len(blocks) / len({block.cube for block in blocks})


def test_iterations_bytes_and_fragmentation_are_near_those_that_follow() -> None:
    errors: list[tuple[float, float]] = []
    for seed in range(8):
        for budget in (0, 10**9):
            tree = grown(seed)
            index = tree.read()
            found = forecasts(index.of_revision(1), index.revisions.by_id[1], budget)[0]
            before = {file.path: file.size_bytes for file in index.files}
            run = run_iterations(tree, IndexOptions(budget_bytes=budget), lambda: False)
            rewritten = sum(file.size_bytes for one in run.iterations for file in one.files)
            estimated = sum(step.bytes for step in found.steps)
            assert found.is_complete
            # The first iteration is no estimate.
            assert found.steps[0].bytes == sum(before[path] for path in run.iterations[0].paths)
            errors.append((estimated / rewritten, found.steps[-1].fragmentation / fragmentation(tree.read())))
    means = [sum(one) / len(errors) for one in zip(*errors, strict=True)]
    print(
        "estimated by real: mean bytes, mean fragmentation",
        means,
        "worst",
        [max(one) for one in zip(*errors, strict=True)],
    )
    assert all(0.8 < mean < 1.25 for mean in means)


def test_each_selection_is_forecast_once_and_everything_leaves_one_block_for_each_cube() -> None:
    index = grown(3).read()
    revision = index.revisions.by_id[1]
    found = forecasts(index.of_revision(1), revision, 2_000)
    assert [(one.selection, one.budget_bytes) for one in found] == [
        ("leveled", 2_000),
        ("leveled", 0),
        ("leveled", sum(file.size_bytes for file in index.files)),
        ("everything", None),
    ]
    assert found[-1].steps[0].fragmentation == 1.0
    assert found[-1].steps[0].overhang_blocks == 0
    assert len(forecasts(index.of_revision(1), revision, 0)) == 3


def test_the_pair_that_every_iteration_lowers_falls_in_a_forecast_as_well() -> None:
    for seed in range(10):
        index = grown(seed).read()
        for one in forecasts(index.of_revision(1), index.revisions.by_id[1], 3_000):
            pairs = [(step.overhang_blocks, step.blocks) for step in one.steps]
            assert pairs == sorted(pairs, reverse=True)


def test_a_forecast_ends() -> None:
    index = grown(1, appends=60, rows=40).read()
    found = forecasts(index.of_revision(1), index.revisions.by_id[1], 0)[0]
    assert 0 < len(found.steps) <= MAX_STEPS


def test_an_empty_index_has_an_empty_forecast() -> None:
    tree = QbeastTree(random.Random(1), cube_size=12)
    index = tree.read()
    assert all(one.steps == () for one in forecasts((), index.revisions.by_id[1], 0))
    status = index_status(tree.snapshot(), IndexQuery(is_forecast=True))
    assert status is not None
    assert status.rewrites.forecasts[0].is_complete


def test_a_run_for_a_sample_is_forecast_where_one_is_known() -> None:
    tree = grown(4)
    index = tree.read()
    found = forecasts(index.of_revision(1), index.revisions.by_id[1], 0, 0.2)
    assert [one.selection for one in found] == ["leveled", "leveled", "sampling", "everything"]
    sampling = found[2]
    assert (sampling.budget_bytes, sampling.is_complete) == (1, True)
    assert sampling.steps[-1].overhang_blocks < sum(
        block.max_weight > cube_weights(index.of_revision(1))[block.cube]
        for file in index.of_revision(1)
        for block in file.blocks
    )
    for query in (
        IndexQuery(is_forecast=True, sample=0.2),
        IndexQuery(is_forecast=True, optimized_sample=Fraction(1, 5)),
    ):
        status = index_status(tree.snapshot(), query)
        assert status is not None
        assert "sampling" in {one.selection for one in status.rewrites.forecasts}


def test_the_status_has_a_forecast_where_one_is_requested() -> None:
    tree = grown(4)
    plain, asked = (index_status(tree.snapshot(), IndexQuery(is_forecast=one)) for one in (False, True))
    assert plain is not None
    assert asked is not None
    assert plain.rewrites.forecasts == ()
    assert isinstance(asked.rewrites.forecasts[0].steps[0], ForecastStep)


@pytest.mark.parametrize("limit", [1, 2])
def test_a_forecast_with_too_many_iterations_says_so(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr("shared.formats.qbeast.forecast.MAX_STEPS", limit)
    index = grown(5, appends=20).read()
    found = forecasts(index.of_revision(1), index.revisions.by_id[1], 0, 0.2)
    assert (len(found[0].steps), found[0].is_complete) == (limit, False)
    assert (len(found[2].steps), found[2].is_complete) == (limit, False)
