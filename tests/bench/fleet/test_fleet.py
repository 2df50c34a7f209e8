"""The simulated lake: seeded, busy, and served in full by every order."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.bench.fleet.real_lake import RealTable, draw
from tests.bench.fleet.simulation import (
    BYTES_PER_S,
    FIXED_BYTES,
    HOURS,
    JOB_BYTES,
    ORDERS,
    InMemory,
    benefit,
    fair_tables,
    simulate,
)

TABLES, SLOTS = 100, 1
FEW_TABLES = 30


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_of_one_seed_has_one_result_and_saves_readers_something(name: str) -> None:
    nothing, _ = simulate(FEW_TABLES, 3, SLOTS, None)
    done, _ = simulate(FEW_TABLES, 3, SLOTS, InMemory(ORDERS[name]))
    again, _ = simulate(FEW_TABLES, 3, SLOTS, InMemory(ORDERS[name]))
    assert done == again
    assert 0 < done.opened < nothing.opened
    longest_job_s = (FIXED_BYTES + JOB_BYTES) / BYTES_PER_S
    assert 0 < done.cpu_s <= SLOTS * (HOURS * 3_600 + longest_job_s)


def test_the_benefit_per_byte_of_the_tables_of_fair_tenants_saves_more_than_fair_tables_do() -> None:
    for_tables, _ = simulate(TABLES, 3, SLOTS, InMemory(fair_tables))
    for_benefit, _ = simulate(TABLES, 3, SLOTS, InMemory(benefit(slack_bytes=float("inf"))))
    assert for_benefit.opened / for_benefit.cpu_s < for_tables.opened / for_tables.cpu_s


def test_real_tables_of_one_seed_have_one_history_that_another_reader_counts_alike(tmp_path: Path) -> None:
    drawn = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        drawn.append(draw(tmp_path / name, tables=20, seed=5, commits_per_s=3.0, seconds=10.0))
    history, again = drawn
    assert (history.tables, history.commits) == (again.tables, again.commits)
    assert [commit.at_s for commit in history.commits] == sorted(commit.at_s for commit in history.commits)
    assert {commit.table for commit in history.commits if not commit.at_s} == set(range(20)), "all exist at first"
    tables = [RealTable(history, number, tmp_path / "tables") for number in range(20)]
    opened, until_s = 0.0, 10.0
    for commit in history.commits:
        tables[commit.table].commit(commit.files)
        opened += commit.files * history.tables[commit.table].reads_per_s * (until_s - commit.at_s)
    assert history.opens(until_s) == pytest.approx(opened)
    for table in tables[:3]:
        found = DeltaTable(str(table.played.path))
        assert found.to_pyarrow_table().num_rows == table.rows
        assert found.metadata().configuration == {"lakewright.read-weight": f"{table.drawn.reads_per_s}"}
