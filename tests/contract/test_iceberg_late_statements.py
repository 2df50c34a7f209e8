"""A statement of Spark that read a table before deletes were converted or merged, and commits after: no row is lost.

None comes back either. What Iceberg refuses fails as a whole, and succeeds once it is repeated.
"""

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.test_iceberg_convert_with_spark import convert, delete_keys, key
from tests.contract.test_iceberg_merge_with_spark import merge
from tests.contract.test_iceberg_rewrite import MERGE_ON_READ
from tests.support.local_vacuum import Control
from tests.support.paused_statement import PausedStatement

if TYPE_CHECKING:
    from tests.support.iceberg_lab import IcebergLab

pytestmark = [pytest.mark.spark, pytest.mark.long("iceberg")]

JOBS = {"convert": convert, "merge": merge}
MATCHED, NEW = (10, 41), (3, 8, 900)
"""Rows that the statement updates, and that it inserts: two of these were deleted, by value and by position."""


def created(ice: "IcebergLab", version: int, mode: str, isolation: str) -> str:
    """Return a table with deletes by value, and with two files of positions in the same data files."""
    modes = {
        "write.merge.mode": mode,
        "write.merge.isolation-level": isolation,
        "write.delete.granularity": "partition",
    }
    table = ice.create("t", properties=MERGE_ON_READ | modes)
    for number in range(3):
        ice.append(table, number)
    delete_keys(ice, table, [key(3), key(24)])
    for deleted in ("8, 49", "9, 50"):
        ice.sql(f"DELETE FROM {table} WHERE id IN ({deleted})")
    if version > 2:
        ice.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='{version}')")
    return table


def statement(table: str, value: str) -> str:
    """Return a MERGE whose rows have this value."""
    source = f"SELECT id, {value} w FROM (SELECT explode(array({', '.join(map(str, (*MATCHED, *NEW)))})) id)"
    return (
        f"MERGE INTO {table} t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.w "
        "WHEN NOT MATCHED THEN INSERT (id, v, x, dt, ts) VALUES (s.id, s.w, 0, date'2026-01-01', null)"
    )


def merged(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows after the statement."""
    found = {row[0]: row for row in rows}
    assert {*MATCHED} <= found.keys()
    assert found.keys().isdisjoint(NEW)
    date = found[10][3]
    found |= {one: (one, "m", *found[one][2:]) for one in MATCHED}
    return sorted((found | {one: (one, "m", 0, date, None) for one in NEW}).values())


WAYS = ("merge-on-read", "snapshot"), ("merge-on-read", "serializable"), ("copy-on-write", "snapshot")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(("mode", "isolation"), WAYS)
@pytest.mark.parametrize("job", JOBS)
def test_a_statement_that_read_before_a_job_and_commits_after_it_loses_nothing(
    ice: "IcebergLab", version: int, mode: str, isolation: str, job: str
) -> None:
    table = created(ice, version, mode, isolation)
    rows = ice.rows(table)
    with PausedStatement(ice.session, ice.folder, statement(table, "pause('m')")) as paused:
        assert JOBS[job](ice, table).commits
    if paused.error is not None:
        assert "ValidationException" in paused.error
        assert ice.rows(table) == rows
        ice.sql(statement(table, "'m'"))
    assert ice.rows(table) == merged(rows)
    JOBS[job](ice, table)
    assert ice.rows(table) == merged(rows)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("job", JOBS)
def test_a_job_that_read_before_a_statement_and_commits_after_it_loses_nothing(
    ice: "IcebergLab", version: int, job: str
) -> None:
    table = created(ice, version, "merge-on-read", "serializable")
    rows, control, beside = ice.rows(table), Control(), list[int]()

    def others(count: int) -> None:
        if not beside:
            beside.append(count)
            ice.sql(statement(table, "'m'"))

    control.before_change = others
    assert JOBS[job](ice, table, control).commits
    assert (beside, ice.rows(table)) == ([1], merged(rows))
