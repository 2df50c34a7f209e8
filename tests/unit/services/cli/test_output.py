"""Figures are short and read well."""

import pytest

from services.cli.render import counted, time_span


@pytest.mark.parametrize(
    ("seconds", "stated"),
    [
        (0, "0 s"), (0.034, "0.034 s"), (1, "1 s"), (9.96, "10 s"), (59, "59 s"), (60, "1 min"), (74, "1.2 min"),
        (3_599, "60 min"), (3_600, "1 h"), (11_940, "3.3 h"), (45_000, "12 h"), (86_400, "1 d"), (108_000, "1.2 d"),
        (86_400 * 12_345, "12,345 d"),
    ],
)  # fmt: skip
def test_a_time_span_has_one_unit_and_no_more_digits_than_are_read(seconds: float, stated: str) -> None:
    assert time_span(seconds) == stated


def test_one_of_a_thing_is_in_the_singular() -> None:
    assert (counted(1, "file"), counted(2, "file"), counted(1_000, "file")) == ("1 file", "2 files", "1,000 files")
