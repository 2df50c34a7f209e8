"""A job of many groups uses all executors that there are: its groups are written at once, on each of them."""

import random
from collections import Counter
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support import spark_events
from tests.support.iceberg_rest_lake import SCHEMA
from tests.support.large_files import contents, everything, left_behind, linked
from tests.support.outside import own_commits
from tests.support.spark_world import World
from tests.support.waiting import until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.redis,
    pytest.mark.long("spark-cluster"),
    # Of pyiceberg.
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning"),
]

GROUPS, FILES_OF_GROUP, GROUPS_OF_COMMIT = 64, 2, 8
ICEBERG_GROUPS, ICEBERG_ROWS = 16, 82_000
"""Files of about 0.65 MB, of which two reach a MiB, too."""
PLAIN = {"write.parquet.dict-size-bytes": "4096"}
"""Random numbers are not worth a dictionary, and files that consist of dictionaries are not copied."""


WAYS = [("auto", "groups_copied"), ("never", "encoded_switched_off")]
"""Values of `lakewright.row-group-copy`, with what is counted then."""


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(("row_group_copy", "counter"), WAYS)
def test_a_job_of_64_groups_is_spread_over_both_executors(
    world: World, many_files: Path, row_group_copy: str, counter: str
) -> None:
    table = linked(many_files, world.stack.tables / f"many-{row_group_copy}", files=GROUPS * FILES_OF_GROUP)
    before, rows = everything(table), contents(table, "name")
    world.register(table, row_group_copy=row_group_copy, target_file_size="1mb")
    until("the table is compacted", lambda: world.is_done(table), seconds=300)
    (run,) = world.runs(table)
    assert (run["result"], run["attempts"]) == ("done", 0), run
    assert run["measured"][counter] == GROUPS, run
    assert run["measured"]["files_replaced"] == GROUPS * FILES_OF_GROUP
    assert len(own_commits(table)) == GROUPS // GROUPS_OF_COMMIT
    assert_spread(world, run["id"], least=GROUPS // 8)
    assert contents(table, "name") == rows
    assert left_behind(table, before) == []


def assert_spread(world: World, job: str, *, least: int) -> None:
    """Check that both executors ran at least so many tasks of a job, some of them at once."""
    ended = spark_events.of_job(world.events, job)
    assert {one.reason for one in ended} == {"Success"}
    spread = Counter(one.executor for one in ended)
    print(f"{job}: tasks by executor {dict(spread)}")
    assert len(spread) == 2, spread
    assert "driver" not in spread
    assert min(spread.values()) >= least, spread
    pairs = combinations(ended, 2)
    assert any(one.executor != other.executor and one.is_beside(other) for one, other in pairs), "none ran at once"


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(("row_group_copy", "counter"), WAYS)
def test_groups_of_an_iceberg_table_are_spread_over_both_executors(
    world: World, row_group_copy: str, counter: str
) -> None:
    assert world.lake is not None
    name, rng = f"db.many_{row_group_copy}", random.Random(7)
    table = world.lake.catalog.create_table(name, SCHEMA, properties=PLAIN)
    for _ in range(ICEBERG_GROUPS * FILES_OF_GROUP):
        ids = pa.py_buffer(rng.randbytes(8 * ICEBERG_ROWS))
        table.append(pa.table([pa.Array.from_buffers(pa.int64(), ICEBERG_ROWS, [None, ids])], schema=SCHEMA))
    rows = sorted(table.scan().to_arrow()["id"].to_pylist())
    location = f"catalog://lake/{name.replace('.', '/')}"
    world.register_at(location, name, row_group_copy=row_group_copy, target_file_size="1mb")
    (run,) = until("the job has run", lambda: world.runs_of(name), seconds=300)
    assert (run["result"], run["attempts"]) == ("done", 0), run
    assert run["measured"][counter] == ICEBERG_GROUPS, run
    assert_spread(world, run["id"], least=ICEBERG_GROUPS // 8)
    after = world.lake.catalog.load_table(name).scan()
    assert len(list(after.plan_files())) == ICEBERG_GROUPS
    assert sorted(after.to_arrow()["id"].to_pylist()) == rows
