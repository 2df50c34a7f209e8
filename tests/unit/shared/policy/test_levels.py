"""Parts of a policy: levels, filters, orders and rules of keys, as owners write them."""

from fractions import Fraction

import pytest

from shared.partitions import partition_key
from shared.policy.key_rule import KeyRule
from shared.policy.levels import FULL, build_size_levels, fitted_steps
from shared.policy.partition_filter import parse_filter, permits
from shared.policy.policy import KIB, MIB, KeyScope, Policy, PolicyLayer, apply
from shared.policy.row_order import MAX_SORT_COLUMNS, SortColumn, parse_sort_columns
from shared.table import PartitionColumn, PartitionKey


def test_bounds_at_128_mib_and_fan_in_8() -> None:
    assert Policy().size_levels.floors == (0, 4 * KIB, 32 * KIB, 256 * KIB, 2 * MIB, 16 * MIB, 96 * MIB)


def test_bounds_are_rounded_up_once_so_that_a_file_on_a_bound_is_above_it() -> None:
    size_levels = build_size_levels(100_003, 7, Fraction(3, 4))
    for level in range(1, FULL):
        assert size_levels.floors[level] * 7 ** (FULL - level) >= 100_003
        assert (size_levels.floors[level] - 1) * 7 ** (FULL - level) < 100_003
        assert size_levels.level(size_levels.floors[level]) == level
        assert size_levels.level(size_levels.floors[level] - 1) == level - 1


def test_fitted_levels_rise_from_the_typical_size_to_the_target_in_equal_steps() -> None:
    floors = build_size_levels(512 * MIB, 8, Fraction(3, 4), typical_file_bytes=4 * MIB).floors
    assert floors[-3:-1] == (4 * MIB, 47_453_133), "two steps of the root of 128"
    assert floors[1:4] == (8 * KIB, 64 * KIB, 512 * KIB), "below the typical size, the fan-in is 8"
    assert floors[FULL] == 384 * MIB


def test_every_bound_of_fitted_levels_is_rounded_up_once() -> None:
    target, typical = 100_003, 333
    size_levels = build_size_levels(target, 8, Fraction(3, 4), typical_file_bytes=typical)
    steps = fitted_steps(target, 8, typical)
    assert (steps, size_levels.floors[FULL - steps]) == (3, typical)
    for step in range(steps):
        bound = size_levels.floors[FULL - steps + step]
        assert bound**steps >= target**step * typical ** (steps - step) > (bound - 1) ** steps


@pytest.mark.parametrize(
    ("typical", "steps"),
    [(0, 0), (1 << 9, 6), (1 << 10, 6), (1 << 14, 5), (1 << 26, 1), (19_271_961, 1), (19_271_960, 2), (1 << 29, 0)],
)
def test_steps_are_the_logarithm_rounded_down_up_to_six_tenths_and_at_most_as_many_as_levels(
    typical: int, steps: int
) -> None:
    assert fitted_steps(1 << 29, 8, typical) == steps


def test_levels_are_not_fitted_to_a_size_at_which_files_are_full() -> None:
    fixed = build_size_levels(1_000, 8, Fraction(3, 4))
    assert build_size_levels(1_000, 8, Fraction(3, 4), typical_file_bytes=750) == fixed
    assert build_size_levels(1_000, 8, Fraction(3, 4), typical_file_bytes=749).floors[5] == 749
    assert build_size_levels(1_000, 8, Fraction(1, 7), typical_file_bytes=30) == build_size_levels(
        1_000, 8, Fraction(1, 7)
    ), "the step before the target would begin at more than a full file"


def test_a_policy_whose_fan_in_is_set_keeps_its_levels() -> None:
    fitted = Policy().fitted_to(3_000_000)
    assert fitted.size_levels.floors != Policy().size_levels.floors
    fixed = apply(fitted, PolicyLayer({"fan_in": 8}))
    assert (fixed.fits_levels, fixed.size_levels) == (False, Policy().size_levels)
    assert apply(fitted, PolicyLayer({"tolerance": Fraction(1)})).fits_levels


DAY, COUNTRY, NUMBER = (
    PartitionColumn("dt", "col-1", "date"),
    PartitionColumn("country", "col-2", "string"),
    PartitionColumn("n", "col-3", "integer"),
)
COLUMNS = (DAY, COUNTRY, NUMBER)
PARTITION = partition_key(COLUMNS, {"col-1": "2026-01-09", "col-2": None, "col-3": "10"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dt >= '2026-01-01'", True),
        ("dt < '2026-01-09'", False),
        ("DT <= '2026-01-09' AND n > 9", True),
        ("n < 9", False),
        ("n in (1, 10)", True),
        ("n == 10.0", True),
        ("n <> 10", False),
        ("country = 'de'", False),
        ("country != 'de'", False),
        ("country is null", True),
        ("`country` is not null and n = 10", False),
        ("region = 'x'", False),
        ("n < 'nan'", True),
        ("n > 'Infinity'", False),
    ],
)
def test_a_filter_lets_a_partition_through_or_not(text: str, expected: bool) -> None:
    assert permits(text, PARTITION, COLUMNS, 0) is expected


def test_a_partition_of_another_spec_is_not_null_in_a_column_that_it_is_not_partitioned_by() -> None:
    """A file of before the table had partitions may hold rows of any value."""
    assert not permits("country is null", PartitionKey("{}"), COLUMNS, 0)
    assert not permits("country is null", PartitionKey('{"col-1":"2026-01-09"}'), COLUMNS, 0)


def test_without_a_filter_everything_may_be_touched() -> None:
    assert permits(None, PARTITION, COLUMNS, 0)


def test_a_quote_in_a_text_is_doubled() -> None:
    assert parse_filter("country = 'o''hare and x'")[0].values == ("o'hare and x",)


@pytest.mark.parametrize(
    "text", ["", "dt", "dt = 2026-01-01", "dt = '1' or n = 2", "dt = '1' and", "dt = '1' n = 2", "x" * 3_000]
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_filter(text)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a", [("a", False)]),
        (" a ,b DESC, c asc", [("a", False), ("b", True), ("c", False)]),
        ("`odd name, really` desc, `tick``ed`", [("odd name, really", True), ("tick`ed", False)]),
        ("desc", [("desc", False)]),
    ],
)
def test_columns_are_read_with_their_directions(text: str, columns: list[tuple[str, bool]]) -> None:
    assert parse_sort_columns(text) == tuple(SortColumn(*column) for column in columns)


@pytest.mark.parametrize("text", ["", "a,", "a b", "a desc desc", "a, A", "`a", ", ".join("abcdefghi")])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_sort_columns(text)
    assert len("abcdefghi") > MAX_SORT_COLUMNS


def test_a_column_is_written_as_sql_names_it() -> None:
    assert [str(column) for column in parse_sort_columns("a, `b``c` desc")] == ["`a` ASC", "`b``c` DESC"]


def test_a_policy_has_a_rule_where_it_names_key_and_sequence() -> None:
    assert KeyRule.of(Policy()) is None
    named = Policy(primary_key="a, `b c`", sequence_by="ts, n", delete_marker="`is gone`", key_scope=KeyScope.PARTITION)
    assert KeyRule.of(named) == KeyRule(("a", "b c"), ("ts", "n"), "is gone", KeyScope.PARTITION)


@pytest.mark.parametrize("half", [{"primary_key": "id"}, {"sequence_by": "ts"}])
def test_a_key_without_a_sequence_is_no_rule_and_neither_is_the_other_half(half: dict[str, str]) -> None:
    policy = Policy(**half)
    assert (KeyRule.of(policy), policy.has_key) == (None, False)
