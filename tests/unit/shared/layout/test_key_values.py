"""Values of a key as whole numbers: the order of the values is that of the numbers, for each type."""

from itertools import pairwise
from typing import Any

import pytest

from shared.layout.key_values import is_sortable, key_range

ASCENDING = [
    ("long", [-(2**63), -1, 0, 7, 2**63 - 1]),
    ("decimal(38,18)", ["-1E+9", -1.5, 0, 0.1, 0.25, 10**20]),
    ("double", [-1e300, -2.5, -1, 0, 1e-300, 2.5, 1e300]),
    ("string", ["", "A", "a", "aa", "b", "ä", "\U0010ffff"]),
    ("date", ["0001-01-01", "1969-12-31", "2026-01-01"]),
    (
        "timestamp",
        ["1969-12-31T23:59:59.999Z", "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.001Z", "2026-01-01T02:00:00Z"],
    ),
    ("timestamp_ntz", ["2026-01-01T00:00:00", "2026-01-01T00:00:00.000001"]),
]


@pytest.mark.parametrize(("kind", "values"), ASCENDING, ids=[kind for kind, _ in ASCENDING])
def test_numbers_ascend_with_the_values(kind: str, values: list[Any]) -> None:
    assert is_sortable(kind)
    for low, high in pairwise(values):
        found = key_range(low, high, kind)
        assert found is not None
        assert found[0] < found[1], (low, high)
        assert key_range(high, low, kind) is None


def test_minus_zero_is_zero() -> None:
    assert key_range(-0.0, 0.0, "double") == (0, 0)


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (None, 1, "long"),
        (1, None, "long"),
        (1, 2, "binary"),
        (1, 2, "struct"),
        (1.5, 2, "long"),
        (True, True, "long"),
        ("x", "y", "decimal(3,1)"),
        ("1", "2", "double"),
        (float("nan"), 1.0, "double"),
        (1, 2, "string"),
        ("soon", "later", "date"),
        ("soon", "later", "timestamp"),
        (1, 2, "timestamp"),
    ],
)
def test_what_is_no_value_of_the_type_has_no_range(low: Any, high: Any, kind: str) -> None:
    assert key_range(low, high, kind) is None


def test_types_without_an_order_cannot_be_sorted_by() -> None:
    assert not is_sortable("binary")


def test_instants_with_a_zone_are_compared_as_instants() -> None:
    found = key_range("2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00Z", "timestamp")
    assert found is not None
    assert found[0] == found[1]
