"""`lakewright optimize LOCATION` on a real engine: what was shown is what is done, and no row is lost or doubled."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner, Result

from actor.engines import EngineSet
from actor.formats.delta.engine import DeltaEngine
from actor.ports import Control, RewriteOutcome, RewriteRequest, TableEngine
from services.cli.__main__ import app
from services.cli.cli_context import CliContext
from shared.layout.commit_metadata import decode
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab

pytestmark = pytest.mark.spark

FILES = 2_000
POLICY = {"lakewright.target-file-size": "128kb", "lakewright.min-input-files": "4"}


class Watched:
    """The engine of the session, which runs something before its n-th rewrite."""

    format = DeltaEngine.format

    def __init__(self, engine: DeltaEngine, before: dict[int, Any] | None = None) -> None:
        self._engine = engine
        self._before = before or {}
        self.rewrites = 0

    def rewrite(self, request: RewriteRequest, control: Control) -> RewriteOutcome:
        self.rewrites += 1
        self._before.get(self.rewrites, lambda: None)()
        return self._engine.rewrite(request, control)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def call(engine: object, *arguments: str, as_json: bool = True) -> Result:
    @contextmanager
    def opened(_say: object) -> Iterator[object]:
        yield EngineSet([cast("TableEngine", engine)])

    setting = CliContext("http://127.0.0.1:9", as_json, engine=opened)
    return CliRunner().invoke(app, ["optimize", *arguments], obj=setting, env={"COLUMNS": "160"})


def answer(result: Result, code: int = 0) -> Any:
    assert result.exit_code == code, (result.output, result.exception)
    return json.loads(result.stdout)


def many_files(path: Path, files: int) -> tables.HandTable:
    made = tables.HandTable(path, partitions={"dt": "date"}, configuration=POLICY)
    days = (tables.DAY_1, tables.DAY_2)
    made.commit([{"add": made.new_file(20, {"dt": days[number % 2]})} for number in range(files)])
    return made


def groups(plan: Any) -> set[frozenset[str]]:
    return {frozenset(group["files"]) for one in plan["plans"] for group in one["groups"]}


@pytest.mark.long("contracts")
def test_two_thousand_files_become_a_few_and_the_run_rewrites_the_groups_of_the_dry_run(lab: DeltaLab) -> None:
    table = many_files(lab.directory / "t", FILES)
    before = tables.rows(table.path)

    shown = answer(call(lab.engine, str(table.path), "--dry-run"))
    assert (shown["run"], shown["result"]) == (None, None)
    assert tables.newest(table.path) == table.version, "a dry run changes nothing"
    done = answer(call(lab.engine, str(table.path), "--yes"))

    assert done["plan"] == shown["plan"]
    planned = groups(shown["plan"])
    assert sum(map(len, planned)) == FILES
    assert done["run"]["groups_committed"] == len(planned)
    landed: set[frozenset[str]] = set()
    for version in done["run"]["versions"]:
        removed = tables.removed(table.path, version)
        inside = {group for group in planned if group <= removed}
        assert frozenset().union(*inside) == removed, "a commit replaces whole groups and nothing else"
        assert len(tables.added(table.path, version)) == len(inside)
        mark = decode(tables.commit_info(table.path, version)["userMetadata"])
        assert mark is not None
        assert mark.origin.job == done["run"]["job"]
        landed |= inside
    assert landed == planned
    assert done["result"]["files"] == {"before": FILES, "after": len(planned)}
    assert len(tables.live(table.path)) == len(planned)
    assert done["run"]["rows"] == FILES * 20
    assert tables.rows(table.path) == before


def test_a_group_whose_files_others_took_is_left_alone_and_said_so(lab: DeltaLab) -> None:
    table = many_files(lab.directory / "t", 40)
    plan = answer(call(lab.engine, str(table.path), "--dry-run"))["plan"]
    lost = plan["plans"][0]["groups"][0]["files"][0]
    engine = Watched(lab.engine, {1: lambda: table.remove(lost)})
    before = len(tables.rows(table.path))

    done = answer(call(engine, str(table.path), "--yes"), 3)

    assert (done["run"]["groups_conflicted"], done["run"]["groups_skipped"]) == (1, 0)
    assert done["run"]["groups_committed"] == len(groups(plan)) - 1 > 0
    assert len(tables.rows(table.path)) == before - 20


def test_a_request_to_stop_ends_between_groups_with_what_was_written_committed(lab: DeltaLab) -> None:
    table = many_files(lab.directory / "t", 40)
    before = tables.rows(table.path)
    on_disk = tables.parquet_files(table.path)

    def press_ctrl_c() -> None:
        import signal

        signal.raise_signal(signal.SIGINT)

    # The request comes when the second commit of two is about to be prepared, so its group is not begun.
    engine = Watched(lab.engine, {2: press_ctrl_c})
    done = answer(call(engine, str(table.path), "--yes"), 130)

    assert done["result"]["interrupted"] is True
    assert len(done["run"]["versions"]) == 1
    assert done["run"]["groups_committed"] == done["run"]["groups_skipped"] == 1
    assert tables.rows(table.path) == before
    assert len(tables.parquet_files(table.path) - on_disk) == 1, "no orphan is left behind"
    rest = call(lab.engine, str(table.path), "--yes", as_json=False)
    assert rest.exit_code == 0, (rest.output, rest.exception)
    assert "21 files" in rest.stdout, "people see what there is, what would be done, and what came of it"
    assert "would become 2: 20 replaced in 1 group" in rest.stdout
    assert "1 group committed in 1 commit, 400 rows" in rest.stdout
    assert tables.rows(table.path) == before
    assert answer(call(lab.engine, str(table.path), "--dry-run"))["plan"]["plans"] == []


def test_a_table_that_must_not_be_touched_is_refused_and_stays_as_it_is(lab: DeltaLab) -> None:
    path = lab.directory / "t"
    table = tables.HandTable(path, configuration=POLICY | {"qbeast.lastRevisionID": "1"})
    table.append(20)
    done = call(lab.engine, str(path), "--yes")
    assert done.exit_code == 1
    assert "qbeast" in str(done.exception).lower(), "which the command prints"
    assert tables.newest(path) == table.version
