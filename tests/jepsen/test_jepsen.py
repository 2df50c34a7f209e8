"""What counts as a finding, and that the laboratory sees a compactor that doubles rows."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from tests.iceberg_stress.operations import Row
from tests.jepsen import report
from tests.jepsen.on_delta import OnDelta, is_rewrite, rows_in
from tests.jepsen.on_iceberg import OnIceberg, harm_between
from tests.jepsen.rival import BY_DELTALAKE, CATALOG, Looping
from tests.jepsen.seen import HARMS, LEAST_REWRITES, Seen
from tests.soak.checker import Difference
from tests.soak.log import Commit, newest_version
from tests.support.delta_tables import live
from tests.support.iceberg_rest_lake import rest_lake
from tests.support.redis_server import RedisServer


def seen(**more: int) -> Seen:
    return Seen(**{"rewrites": LEAST_REWRITES, **more})  # type: ignore[arg-type]


def row(*runs: Seen, control: Seen | None = None, is_ours: bool = False) -> report.Row:
    return report.Row("one", runs=list(runs), control=control or Seen(), is_ours=is_ours)


@pytest.mark.parametrize("harm", HARMS)
def test_a_harm_is_a_finding_where_two_runs_show_it_and_the_control_does_not(harm: str) -> None:
    harmed = seen(**{harm: 3})
    assert row(harmed, harmed).findings == {harm}
    assert row(harmed, seen()).findings == frozenset()
    assert f"{harm} in 1 of 2 runs" in row(harmed, seen()).finding
    assert [one.is_open for one in (row(harmed, seen()), row(harmed, harmed), row(seen()))] == [True, False, False]
    assert row(harmed, harmed, control=harmed).findings == frozenset()
    assert "also without a compactor" in row(harmed, harmed, control=harmed).finding
    assert not row(harmed, control=harmed).is_open
    assert row(seen()).finding == "none"


@pytest.mark.parametrize("harm", HARMS)
def test_ours_fails_for_any_harm_and_for_a_run_that_proves_little(harm: str) -> None:
    assert not row(seen(), is_ours=True).fails
    assert row(seen(**{harm: 1}), seen(), is_ours=True).fails
    assert row(seen(rewrites=LEAST_REWRITES - 1), is_ours=True).fails
    assert not row(seen(**{harm: 1}), seen(**{harm: 1})).fails, "of others it is told"


def test_rows_of_a_harm_are_the_most_that_one_read_of_each_table_found() -> None:
    found = [Difference(name, 1, "a", twice, 0, 1, 0) for name, twice in (("t", 3), ("t", 5), ("u", 2))]
    assert rows_in(found) == {"lost": 0, "revived": 2, "doubled": 7, "changed": 0}
    assert set(rows_in([]).values()) == {0}


def test_the_commits_of_a_compactor_are_known_by_their_operation() -> None:
    infos = [{"operation": "OPTIMIZE"}, {"userMetadata": '{"lakewright":{}}'}, {"operation": "WRITE"}]
    assert [is_rewrite(Commit(1, ({"commitInfo": info},), "")) for info in infos] == [True, True, False]


class Doubling(Looping):
    """A rival that does harm."""

    def version(self) -> str:
        return "1"


def compactor(_: Path) -> Callable[[str], object]:
    """Return what copies a live file and does not remove it, or appends the rows of a table of a catalog again."""
    if CATALOG in os.environ:
        catalog = load_catalog("lake", **json.loads(os.environ[CATALOG]))

        def append_again(name: str) -> None:
            table = catalog.load_table(name)
            table.append(table.scan().to_arrow())

        return append_again

    def double(name_of_table: str) -> None:
        table = Path(name_of_table)
        add = min(live(table).values(), key=lambda one: one["path"])
        name = f"doubled-{newest_version(table)}.parquet"
        shutil.copy(table / add["path"], table / name)
        actions: Sequence[object] = (
            {"commitInfo": {"operation": "OPTIMIZE"}},
            {"add": {**add, "path": name, "dataChange": False}},
        )
        with (table / "_delta_log" / f"{newest_version(table) + 1:020d}.json").open("x") as commit:
            commit.write("\n".join(map(json.dumps, actions)))

    return double


def test_rows_that_a_compactor_doubles_are_seen_and_without_it_there_is_no_harm(tmp_path: Path) -> None:
    doubling = Doubling("doubling", "A compactor that doubles", module="tests.jepsen.test_jepsen")
    for rival in (doubling, None):
        folder = tmp_path / str(rival and rival.name)
        folder.mkdir()
        with RedisServer() as redis:
            found = OnDelta(rival, redis, folder, 1, BY_DELTALAKE).run(8)
        assert found.statements > found.aborted
        assert found.harms == ({"doubled"} if rival else set()), found.samples


def test_rows_of_an_iceberg_table_that_a_compactor_doubles_are_seen(tmp_path: Path) -> None:
    doubling = Doubling("doubling", "A compactor that doubles", module="tests.jepsen.test_jepsen", rewrites=False)
    (tmp_path / "lake").mkdir()
    with RedisServer() as redis, rest_lake(tmp_path / "lake") as lake:
        found = OnIceberg(doubling, redis, tmp_path, 1, lake).run(8)
    assert found.harms == {"doubled", "broken"}, found.samples


def test_rows_that_differ_are_lost_revived_doubled_or_changed() -> None:
    one, two, other = Row(1, 1, 0), Row(2, 2, 0), Row(1, 1, 1)
    wanted = Counter([one, two])
    for found, harm in (
        ([one, two], {}),
        ([one], {"lost": 1}),
        ([one, two, two], {"doubled": 1}),
        ([two, other], {"changed": 1}),
        ([one, two, Row(3, 0, 0)], {"revived": 1}),
    ):
        assert {name: rows for name, rows in harm_between(wanted, Counter(found)).items() if rows} == harm
