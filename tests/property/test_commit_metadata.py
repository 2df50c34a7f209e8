"""Whatever a rewrite writes about itself into its commit is read back."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from shared.layout import commit_metadata
from shared.layout.commit_metadata import CommitMetadata
from shared.policy.levels import build_size_levels
from shared.table import CommitOrigin

counts = st.none() | st.integers(0, 2**53)


size_levels = st.builds(
    build_size_levels,
    st.integers(65_536, 2**34),
    st.integers(2, 64),
    st.fractions(Fraction(1, 4), 1, max_denominator=100),
)


@given(
    st.builds(
        CommitMetadata,
        origin=st.builds(CommitOrigin, st.text(min_size=1), st.integers(0, 2**63)),
        others=st.lists(st.builds(CommitOrigin, st.text(min_size=1), st.integers(0, 2**63)), max_size=3).map(tuple),
        partition=st.none() | st.text(),
        round=counts,
        mode=st.none() | st.sampled_from(["minor", "full"]),
        started_ms=counts,
        size_levels=st.none() | size_levels,
        partition_files=counts,
        partition_small_files=counts,
    )
)
def test_a_mark_is_read_back_as_it_was_written(mark: CommitMetadata) -> None:
    assert commit_metadata.decode(mark.encode()) == mark
