"""Random policies for the laws of levels and plans: any target, ratio and tolerance that the promotion rule permits."""

from fractions import Fraction
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from shared.policy.policy import KIB, Policy


@st.composite
def policies(draw: st.DrawFn, **others: st.SearchStrategy[Any]) -> Policy:
    """Draw the fields that every law varies; `others` are those that one law varies, too."""
    fan_in = draw(st.integers(2, 16))
    ratio = Fraction(draw(st.integers(51, 100)), 100)
    assume(ratio * fan_in > 1)
    return Policy(
        target_bytes=draw(st.sampled_from([64 * KIB, 100_003, 1 << 20])),
        fan_in=fan_in,
        full_file_threshold=ratio,
        tolerance=Fraction(draw(st.integers(0, 50)), 100),
        min_input_files=draw(st.integers(2, 12)),
        **{name: draw(strategy) for name, strategy in others.items()},
    )
