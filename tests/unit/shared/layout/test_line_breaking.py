"""Breaking a row of files: what a reader of the plan can check by hand."""

from shared.layout.line_breaking import EXACT_FILES, break_row
from shared.policy.levels import build_size_levels
from shared.policy.policy import Policy

TEN = Policy(target_bytes=100, fan_in=10)
LEVELS = TEN.size_levels


def anything(*_: int) -> bool:
    return True


def test_nothing_to_merge_gives_no_runs() -> None:
    assert break_row([], LEVELS, anything) == []
    assert break_row([10], LEVELS, anything) == []
    assert break_row([10, 10], LEVELS, lambda *_: False) == []


def test_an_output_is_measured_by_the_size_that_its_table_leads_to_expect() -> None:
    halved = build_size_levels(100, 10, TEN.full_file_threshold, TEN.learned.shrink / 2, TEN.learned.full_shrink / 2)
    assert break_row([50] * 4, halved, anything) == [range(4)]
    assert break_row([50] * 4, LEVELS, anything) == [range(2), range(2, 4)]


def test_a_long_row_of_tiny_files_is_broken_into_outputs_of_the_target() -> None:
    levels = build_size_levels(1 << 20, 8, TEN.full_file_threshold)
    found = break_row([1_000] * 10_000, levels, anything)
    assert found[0].start == 0
    assert [run.stop for run in found[:-1]] == [run.start for run in found[1:]]
    sizes = [1_000 * len(run) for run in found]
    assert all(0.94 * (1 << 20) < size < 1.02 * (1 << 20) for size in sizes), sizes
    assert len(found) <= 10_000 / EXACT_FILES
