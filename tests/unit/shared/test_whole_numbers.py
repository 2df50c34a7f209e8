"""Numbers in texts of others: none of them is an error of Python, and none is beyond what engines hold."""

import pytest

from shared.policy.parsers import duration_or_zero, interval, parse_duration
from shared.whole_numbers import MAX_LONG, whole_number


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), (str(MAX_LONG), MAX_LONG)])
def test_ascii_digits_are_a_number(text: str, number: int) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["", " 1", "-1", "1.0", "²", "٣", str(MAX_LONG + 1), "9" * 5_000])
def test_any_other_text_is_none(text: str) -> None:
    assert whole_number(text) is None


@pytest.mark.parametrize("read", [parse_duration, duration_or_zero, interval])
def test_a_duration_beyond_what_an_engine_holds_is_refused(read: object) -> None:
    assert callable(read)
    assert read("interval 100000000 days") == 100_000_000 * 86_400
    with pytest.raises(ValueError, match="less than 292,000 years"):
        read(f"interval {'9' * 400} days")
