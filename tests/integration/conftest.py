"""A decider in this process, which most tests of what callers see need as it is."""

from collections.abc import Iterator

import pytest

from tests.support.live_decider import LiveDecider, decider_settings


@pytest.fixture
def decider(redis_url: str) -> Iterator[LiveDecider]:
    """A decider on an empty Redis; it sweeps once a day."""
    live = LiveDecider(decider_settings(redis_url)).start()
    yield live
    live.close()
