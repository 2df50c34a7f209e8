"""Rows of all tables are filtered, counted and sorted; equal values keep the order of names."""

from dataclasses import replace

import pytest

from decider.state.table_summary import TableSummary
from decider.store.registry.table_query import (
    JobsByState,
    TableCondition,
    TableQuery,
    TableRow,
    TableSort,
    select,
)
from decider.store.registry.table_registry import StoredRefusal
from shared.layout.eligibility import NO_EXCESS, Excess
from shared.table import TableId


def row(name: str, files: int = 0, *, tenant: str = "sales", commit_ms: int = 0) -> TableRow:
    excess = Excess(files - 1, files * 100) if files > 5 else NO_EXCESS
    summary = TableSummary(files, 10 * files, files, files * 100, 10, True, files, excess)
    return TableRow(TableId(name), name, tenant, 1, commit_ms, summary)


ROWS = [row("b", 5, commit_ms=3), row("a", 5, tenant="web", commit_ms=9), row("c", 7, commit_ms=1)]
DISABLED = replace(row("d"), summary=TableSummary(0, 0, 0, 0, 10, is_enabled=False))
INVALID = replace(row("i"), summary=TableSummary(0, 0, 0, 0, 10, is_enabled=True, has_invalid_properties=True))


def names(query: TableQuery, jobs: dict[str, JobsByState] | None = None) -> str:
    return "".join(select(ROWS, jobs or {}, query).ids)


@pytest.mark.parametrize(
    ("sort", "ascending", "descending"),
    [
        (TableSort.NAME, "abc", "cba"),
        (TableSort.TENANT, "bca", "abc"),
        (TableSort.FILES, "abc", "cab"),
        (TableSort.SMALL_FILES, "abc", "cab"),
        (TableSort.BYTES, "abc", "cab"),
        (TableSort.EXCESS, "abc", "cab"),
        (TableSort.LAST_COMMIT, "cba", "abc"),
        (TableSort.LAST_REWRITE, "abc", "cab"),
        (TableSort.BACKLOG, "acb", "bac"),
        (TableSort.CONDITION, "cba", "abc"),
    ],
)
def test_rows_are_sorted_by_any_column(sort: TableSort, ascending: str, descending: str) -> None:
    jobs = {"b": JobsByState(queued=2, delayed=1), "c": JobsByState(running=1)}
    assert names(TableQuery(sort=sort), jobs) == ascending
    assert names(TableQuery(sort=sort, descending=True), jobs) == descending


def test_each_count_is_of_the_rows_that_the_other_filters_select() -> None:
    rows = [
        replace(row("a"), group="etl"),
        replace(row("b", tenant="web"), group="etl"),
        replace(row("c"), group="default"),
        TableRow(TableId("z"), "z", "sales"),
    ]
    found = select(rows, {}, TableQuery(group="etl"))
    assert found.ids == ("a", "b")
    assert (found.tenants, found.groups) == ({"sales": 1, "web": 1}, {"etl": 2, "default": 1})
    found = select(rows, {}, TableQuery(group="etl", tenant="sales"))
    assert (found.ids, found.tenants, found.groups) == (("a",), {"sales": 1, "web": 1}, {"etl": 1, "default": 1})
    assert found.conditions == {TableCondition.COMPACT: 1}
    found = select(rows, {}, TableQuery(condition=TableCondition.UNREAD))
    assert (found.ids, found.groups) == (("z",), {})


def test_a_row_without_figures_sorts_as_the_smallest() -> None:
    rows = [*ROWS, TableRow(TableId("z"), "z", "sales")]
    assert select(rows, {}, TableQuery(sort=TableSort.FILES)).ids[0] == "z"


def test_the_search_is_part_of_a_name_or_a_tenant_in_any_case() -> None:
    assert names(TableQuery(search="WE")) == "a"
    assert names(TableQuery(search="C")) == "c"
    assert names(TableQuery(search="none")) == ""


def test_a_filter_does_not_change_the_counts_of_its_own_field() -> None:
    found = select(ROWS, {"b": JobsByState(running=1)}, TableQuery(tenant="sales", condition=TableCondition.RUNNING))
    assert found.ids == ("b",)
    assert found.conditions == {TableCondition.RUNNING: 1, TableCondition.NOT_DUE: 1}
    assert found.tenants == {"sales": 1}


@pytest.mark.parametrize(
    ("table", "jobs", "condition"),
    [
        (replace(ROWS[0], refusal=StoredRefusal(1, "no")), JobsByState(running=1), TableCondition.REFUSED),
        (replace(ROWS[0], version=None), JobsByState(), TableCondition.UNREAD),
        (DISABLED, JobsByState(queued=1), TableCondition.DISABLED),
        (ROWS[0], JobsByState(running=1, quarantined=1), TableCondition.FAILING),
        (ROWS[0], JobsByState(running=1, queued=1), TableCondition.RUNNING),
        (ROWS[0], JobsByState(queued=1, delayed=1), TableCondition.WAITING),
        (ROWS[0], JobsByState(delayed=1), TableCondition.NOT_DUE),
        (ROWS[0], JobsByState(delayed=2, failed=1), TableCondition.BACKING_OFF),
        (ROWS[0], JobsByState(running=1, is_paused=True), TableCondition.PAUSED),
        (INVALID, JobsByState(running=1), TableCondition.INVALID_PROPERTIES),
        (INVALID, JobsByState(quarantined=1), TableCondition.FAILING),
        (ROWS[0], JobsByState(), TableCondition.COMPACT),
        (ROWS[2], JobsByState(), TableCondition.NOT_DUE),
    ],
)
def test_the_condition_is_the_first_that_applies(table: TableRow, jobs: JobsByState, condition: TableCondition) -> None:
    assert table.condition(jobs) is condition
