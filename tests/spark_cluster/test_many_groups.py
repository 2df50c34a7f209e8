"""A job of many groups uses all executors that there are: its groups are written at once, on each of them."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import pytest

from tests.support import spark_events
from tests.support.large_files import contents, everything, large_table, left_behind
from tests.support.outside import own_commits
from tests.support.spark_world import World
from tests.support.stack import Process
from tests.support.waiting import until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.redis,
    pytest.mark.long("spark-cluster"),
]

GROUPS, FILES_OF_GROUP, GROUPS_OF_COMMIT = 64, 4, 8
ROWS_OF_FILE = 2**14
TARGET = "4mb"
"""More than three files of that many rows, and less than four: 1.2 MB each."""


@pytest.fixture(scope="module")
def many(world: World) -> Iterator[Process]:
    """Run one actor that copies row groups of any size; it asks for executors as actors do by default."""
    any_size = {"LAKEWRIGHT_MIN_ROW_GROUP_MIB": "0", "LAKEWRIGHT_MIN_COLUMN_CHUNK_KIB": "0"}
    with world.actor("many", **any_size) as process:
        yield process


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("row_group_copy", "counter"), [("auto", "groups_copied"), ("never", "encoded_switched_off")]
)
def test_a_job_of_64_groups_is_spread_over_both_executors(world: World, row_group_copy: str, counter: str) -> None:
    path = world.stack.tables / f"many-{row_group_copy}"
    table = large_table(path, files=GROUPS * FILES_OF_GROUP, rows_of_file=ROWS_OF_FILE).path
    before, rows = everything(table), contents(table)
    world.register(table, row_group_copy=row_group_copy, target_file_size=TARGET)
    until("the table is compacted", lambda: world.is_done(table), seconds=300)
    (run,) = world.runs(table)
    assert (run["result"], run["attempts"]) == ("done", 0), run
    assert run["measured"][counter] == GROUPS, run
    assert run["measured"]["files_replaced"] == GROUPS * FILES_OF_GROUP
    assert len(own_commits(table)) == GROUPS // GROUPS_OF_COMMIT
    ended = spark_events.of_job(world.events, run["id"])
    assert {one.reason for one in ended} == {"Success"}
    spread = Counter(one.executor for one in ended)
    print(f"{row_group_copy}: tasks by executor {dict(spread)}")
    assert len(spread) == 2, spread
    assert "driver" not in spread
    assert min(spread.values()) >= GROUPS // 8, spread
    assert any(
        one.executor != other.executor and one.is_beside(other) for one, other in combinations(ended, 2)
    ), "no two groups were written at once"
    assert contents(table) == rows
    assert left_behind(table, before) == []
