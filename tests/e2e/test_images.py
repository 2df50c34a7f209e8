"""The images do together what compose.yaml says: a table is compacted, no row changes, and all end when asked to.

`make test-images` builds them first, which takes minutes.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support.composed import START_S, Composed
from tests.support.waiting import until

WRITE = """
import pyarrow, deltalake
for n in range(12):
    rows = pyarrow.table({"id": range(n * 100, n * 100 + 100)})
    deltalake.write_deltalake("/lake/web/clicks", rows, mode="append")
"""
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.long("images"),
]


@pytest.fixture
def composed(tmp_path: Path) -> Iterator[Composed]:
    with Composed(tmp_path / "lake") as services:
        yield services


def test_the_images_compact_a_table_end_when_asked_and_remember_it(composed: Composed) -> None:
    until("all are healthy", lambda: set(composed.states("Health.Status").values()) == {"healthy"}, seconds=START_S)
    assert 'src="./page/index-' in composed.page(), "the image holds the built page"
    composed.as_actor("python", "-c", WRITE)
    place = composed.lake / "web" / "clicks"
    assert len(DeltaTable(place).file_uris()) == 12
    assert composed.call("/v1/events", {"table": "file:///lake/web/clicks"})["accepted"] == 1
    until("the table is compacted", lambda: len(DeltaTable(place).file_uris()) == 1, seconds=START_S)
    assert sorted(DeltaTable(place).to_pyarrow_table()["id"].to_pylist()) == list(range(1200))

    reported = composed.call("/v1/tables/web.clicks/decisions")["decisions"]
    composed.compose("stop")
    assert composed.states("ExitCode") == {"redis": "0", "decider": "0", "actor": "0"}

    composed.compose("start")
    until(
        "Redis and the decider are back", lambda: composed.states("Health.Status")["decider"] == "healthy", seconds=60
    )
    remembered = composed.call("/v1/tables/web.clicks/decisions")["decisions"]
    assert reported
    assert all(decision in remembered for decision in reported)
    composed.compose("stop")  # Spark may still be starting; both have to end well.
    assert composed.states("ExitCode")["actor"] == "0"
