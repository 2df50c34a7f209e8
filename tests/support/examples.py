"""How many random examples a property gets that costs more, or finds less, than others: a share of the profile's."""

from hypothesis import settings


def examples(share: float) -> int:
    """Return a share of the examples that the profile of Hypothesis names (dev 25, ci 100, nightly 1,000)."""
    return max(1, round(settings.default.max_examples * share))
