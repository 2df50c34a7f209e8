"""Which files a deletion by age takes, when it measures ages, and who may ask; the JVM is tested with Spark."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from actor import row_expiry
from actor.formats.delta.actions import decode_adds
from actor.formats.delta.expire import DeltaAgedTable, _DeltaFilesByAge
from actor.formats.delta.log import TableLog
from actor.formats.delta.over_rows import OverRows
from actor.formats.delta.superseded_rows import FILE, REMOVED
from actor.ports import TableJob, TableJobOutcome
from actor.proofread.model import DeleteForm, Deletes, Proof, Reading, Rewritten
from actor.row_expiry import NO_TIME, NOT_ASKED, ExpiryJob
from shared.errors import Conflict, Corrupt, RefusedFiles, Unsupported
from shared.jobs.options import ExpiryOptions
from shared.jobs.payload import EXPIRE
from shared.layout.commit_metadata import CommitMetadata
from shared.policy.policy import Policy, Proofread
from shared.table import CommitOrigin
from tests.support.fake_delta import FakeScala, FakeSessions, FakeTable
from tests.support.fake_delta_table import METADATA, FakeFrame, FakeTransaction, add, remove, vector
from tests.support.local_vacuum import Control

TODAY = date(2026, 3, 31)
NOW_MS = round(datetime(2026, 3, 31, 18, tzinfo=UTC).timestamp() * 1000)
DAY_MS = 86_400_000
RULE = "30 days of p"
OWN = {"lakewright.delete-rows-after": RULE}
FIELDS = [
    {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in (("p", "date"), ("t", "date"))
]


def days_ago(days: int) -> str:
    return str(TODAY - timedelta(days=days))


def metadata(configuration: Mapping[str, str] = OWN, kind: str = "date") -> dict[str, Any]:
    fields = [{**FIELDS[0], "type": kind}, FIELDS[1]]
    schema = json.dumps({"type": "struct", "fields": fields})
    return {"metaData": {**METADATA, "schemaString": schema, "configuration": dict(configuration)}}


def info(at_ms: int = NOW_MS, **more: Any) -> dict[str, Any]:
    return {"commitInfo": {"timestamp": at_ms, "operation": "WRITE", **more}}


class World:
    """A table in memory, partitioned by the day p; `others` are how many rows of files are not over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.table = FakeTable()
        self.control = Control()
        self.others: dict[str, int] = {}
        self.unread = 0  # Rows of each file that Spark does not return.
        self.compared: list[list[tuple[str, tuple[Deletes, ...]]]] = []
        self.conditions: list[str] = []
        self.read: list[str] = []
        self.modes: set[Proofread] = set()
        self.commits: list[tuple[str, Mapping[str, int], str]] = []
        self.clock_ms = NOW_MS
        files = TableLog.files

        def listed(log: TableLog, snapshot: Any, condition: str = "") -> str:
            self.conditions.append(condition)
            return files(log, snapshot)

        def partitions(log: TableLog, snapshot: Any, columns: Any) -> frozenset[Any]:
            return frozenset(one.file.partition for one in decode_adds(files(log, snapshot), columns))

        def commit(
            _log: TableLog, txn: FakeTransaction, actions: Any, condition: str, metrics: Any, compared_by: str = ""
        ) -> int:
            self.commits.append((condition, metrics, compared_by))
            return txn.commit(actions, "DELETE", {})

        monkeypatch.setattr(TableLog, "files", listed)
        monkeypatch.setattr(TableLog, "partitions", partitions)
        monkeypatch.setattr(TableLog, "commit_delete", commit)
        monkeypatch.setattr(FakeFrame, "selectExpr", lambda *given: self._counts(*given), raising=False)
        monkeypatch.setattr("actor.row_expiry.time.time_ns", lambda: self.clock_ms * 1_000_000)

    def _counts(self, frame: FakeFrame, columns: list[str]) -> Any:
        self.read += [body["path"] for body in frame.bodies]
        self.conditions.append(columns[-1])
        texts = []
        for body in frame.bodies:
            rows, others = FakeFrame(frame.table, [body]).count(), self.others.get(body["path"], 0)
            counts = {True: rows - others - self.unread, False: others}
            texts += [json.dumps({FILE: quote(body["path"]), REMOVED: over, "count": n}) for over, n in counts.items()]
        counted = SimpleNamespace(toJSON=lambda: SimpleNamespace(collectAsList=lambda: texts))
        return SimpleNamespace(groupBy=lambda *_: SimpleNamespace(count=lambda: counted))

    def _check(self, group: Rewritten, mode: Proofread, **__: object) -> Proof:
        self.modes.add(mode)
        assert [column.name for column in group.columns] == ["t"]
        self.compared.append([(file.path.rpartition("/")[2], file.deletes) for file in group.inputs])
        return Proof(Reading.ROWS, cpu_ms=5)

    def run(
        self, *, dry: bool = False, decided_ms: int = NOW_MS, rule: str | None = RULE, **policy: Any
    ) -> TableJobOutcome:
        reader = SimpleNamespace(check=self._check)
        boundary = SimpleNamespace(check_files=lambda *_: None, check_links=lambda *_: None)
        job = TableJob(
            EXPIRE,
            "file:///t",
            Policy(delete_rows_after=rule, **policy),
            CommitOrigin("j", 1),
            options=ExpiryOptions(decided_ms, dry_run=dry).encode(),
            decided_ms=decided_ms,
        )
        fakes: tuple[Any, Any, Any, Any] = (FakeScala(self.table), FakeSessions(self.table), boundary, reader)
        return ExpiryJob(DeltaAgedTable(*fakes, job, self.control, 0), job, self.control).run()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    found = World(monkeypatch)
    found.table.commit(metadata(), info())
    return found


def figures_of(done: TableJobOutcome) -> dict[str, int]:
    return {name: count for name, count in done.figures.items() if count}


def by_day(*ages: int) -> list[dict[str, Any]]:
    """A file of ten rows for each day, called by its age."""
    return [add(str(age), p=days_ago(age)) for age in ages]


def test_partitions_that_are_over_go_in_one_commit_and_the_last_one_names_the_version(world: World) -> None:
    table = world.table
    table.commit(info(), *by_day(0, 30, 31, 400), add("null", p=None))
    done = world.run()
    assert table.live() == {"0", "30", "null"}
    assert (done.version, done.commits, done.is_complete, done.reason) == (1, (2, 3), True, "")
    assert figures_of(done) == {"rows_removed": 20, "files_removed": 2, "bytes_removed": 200}
    (condition, metrics, compared_by), (_, nothing, _) = world.commits
    assert (condition, compared_by) == (f"`p` < DATE '{days_ago(30)}'", "")
    assert (metrics["numDeletedRows"], metrics["numRemovedFiles"], sum(nothing.values())) == (20, 2, 0)
    assert all(body["dataChange"] for body in table.bodies("remove"))
    assert world.read == [], "values of partitions are in the log"
    assert f"partitionValues['p'] IN ('{days_ago(400)}', '{days_ago(31)}')" in world.conditions
    marks = [json.loads(body["userMetadata"])["lakewright"] for body in table.bodies("commitInfo", after=1)]
    assert [mark.get("deduplicated_version") for mark in marks] == [None, 1]
    again = world.run()
    assert (again.commits, figures_of(again)) == ((4,), {})


def test_a_dry_run_names_what_the_run_deletes_and_changes_nothing(world: World) -> None:
    world.table.commit(info(), *by_day(0, 31, 32), add("b", p=days_ago(31)), add("unknown", rows=None, p=days_ago(33)))
    dry = world.run(dry=True)
    assert (dry.version, dry.commits, world.table.version, world.control.changes) == (-1, (), 1, 0)
    days = ", ".join(f"p={days_ago(age)}" for age in (33, 32, 31))
    assert dry.reason == f"files with rows of `p` < DATE '{days_ago(30)}': 4, namely {days} (2)"
    assert figures_of(world.run()) == figures_of(dry)
    assert dry.figures["rows_removed"] == 40


def test_a_dry_run_of_many_names_some_and_counts_the_others(world: World) -> None:
    world.table.commit(info(), *by_day(*range(31, 61)))
    assert world.run(dry=True).reason.endswith("and 10 more")


@pytest.mark.parametrize("late", ["decision", "actor", "writers"])
def test_ages_are_measured_at_the_oldest_of_three_times(world: World, late: str) -> None:
    """Two of them may be a year ahead."""
    year_ms = 365 * DAY_MS
    world.clock_ms += 0 if late == "actor" else year_ms
    world.table.commit(info(NOW_MS + (0 if late == "writers" else year_ms)), *by_day(0, 29, 31))
    world.run(decided_ms=NOW_MS + (0 if late == "decision" else year_ms))
    assert world.table.live() == {"0", "29"}


def test_our_own_commits_say_nothing_of_the_time(world: World) -> None:
    mark = CommitMetadata(CommitOrigin("another", 3)).encode()
    world.table.commit(info(), *by_day(29))
    world.clock_ms += 365 * DAY_MS
    world.table.commit(info(world.clock_ms, userMetadata=mark), add("compacted", p=days_ago(29)))
    world.table.commit({"commitInfo": {"operation": "none says when"}})
    world.run(decided_ms=world.clock_ms)
    assert world.table.live() == {"29", "compacted"}


def test_without_a_time_of_others_nothing_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.table.commit(metadata(), *by_day(4_000))
    done = world.run()
    assert (done.reason, done.is_complete, world.table.live()) == (NO_TIME, True, {"4000"})
    world.table.vanished = {0}
    world.table.commit({"commitInfo": {"inCommitTimestamp": True}})
    assert world.run(dry=True).reason == NO_TIME


def test_the_time_of_a_commit_is_the_one_that_the_table_orders(world: World) -> None:
    world.table.commit(info(NOW_MS + 365 * DAY_MS, inCommitTimestamp=NOW_MS), *by_day(29, 31))
    world.clock_ms += 365 * DAY_MS
    world.run(decided_ms=world.clock_ms)
    assert world.table.live() == {"29"}


@pytest.mark.parametrize(
    ("configuration", "decided"),
    [
        ({}, RULE),
        (OWN, "10 days of p"),
        (OWN, None),
        ({**OWN, "lakewright.fan-in": "many"}, RULE),
        ({**OWN, "lakewright.primary-key": "p"}, RULE),
        ({"lakewright.delete-rows-after": "10 of p"}, RULE),
    ],
    ids=["not set", "another age", "not decided", "invalid beside it", "beside a key", "invalid"],
)
def test_only_what_the_tables_own_properties_say_now_deletes_rows(
    monkeypatch: pytest.MonkeyPatch, configuration: dict[str, str], decided: str | None
) -> None:
    world = World(monkeypatch)
    world.table.commit(metadata(configuration), info(), *by_day(4_000))
    done = world.run(rule=decided)
    assert (done.reason, done.commits, world.table.live()) == (NOT_ASKED, (), {"4000"})


def test_properties_of_the_decision_must_still_be_there(world: World) -> None:
    world.table.commit(*by_day(31), metadata({**OWN, "lakewright.enabled": "false"}), info())
    assert "switch it off" in world.run().reason
    assert world.table.live() == {"31"}


def test_partitions_go_by_their_value_also_where_rows_leave_files(monkeypatch: pytest.MonkeyPatch) -> None:
    world, written = World(monkeypatch), Written(monkeypatch)
    world.table.commit(metadata({"lakewright.delete-rows-after": f"{RULE}, rows"}), info(), *by_day(0, 31))
    world.run(rule=f"{RULE}, rows")
    assert (world.table.live(), written.calls, world.read) == ({"0"}, [], [])


def test_an_owner_who_has_no_rows_compared_has_none_read_twice(world: World) -> None:
    world.table.commit(metadata(BY_T), info(), of_t("a", 31))
    world.run(rule=BY_T["lakewright.delete-rows-after"], proofread=Proofread.NEVER)
    assert (world.table.live(), world.modes) == (set(), {Proofread.NEVER})


def test_files_that_others_change_meanwhile_are_searched_again(world: World) -> None:
    world.table.commit(info(), *by_day(31, 32))

    def others(change: int) -> None:
        if change == 1:
            world.table.commit(info(), remove("31"), add("changed", p=days_ago(1)), add("late", p=days_ago(99)))

    world.control.before_change = others
    done = world.run()
    assert (done.figures["conflicts"], done.figures["files_removed"]) == (1, 2)
    assert world.table.live() == {"changed"}


def test_a_run_that_meets_others_each_time_is_a_conflict(world: World) -> None:
    world.table.commit(info(), *by_day(31))

    def others(change: int) -> None:
        older = "31" if change == 1 else f"again-{change - 1}"
        world.table.commit(info(), remove(older), add(f"again-{change}", p=days_ago(31)))

    world.control.before_change = others
    with pytest.raises(Conflict, match="each of 3 times"):
        world.run()
    assert world.table.live() == {"again-3"}


def test_an_owner_who_changes_the_age_meanwhile_keeps_the_rows(world: World) -> None:
    world.table.commit(info(), *by_day(31))

    def owner(change: int) -> None:
        if change == 1:
            world.table.commit(metadata({"lakewright.delete-rows-after": "60 days of p"}), info())

    world.control.before_change = owner
    done = world.run()
    assert (done.reason, world.table.live()) == (NOT_ASKED, {"31"})


def test_a_run_that_is_to_stop_ends_between_two_commits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_expiry, "FILES_PER_COMMIT", 2)
    world.table.commit(info(), *by_day(31, 32, 33))
    world.control.stop_after = 1
    done = world.run()
    assert (done.is_complete, done.commits, world.table.live()) == (False, (2,), {"31"})
    world.control.stop_after = 10**9
    assert world.run().is_complete
    assert world.table.live() == set()


def test_partitions_that_the_owners_filter_excludes_keep_their_rows(world: World) -> None:
    world.table.commit(info(), *by_day(31, 40))
    world.run(filter=f"p >= '{days_ago(35)}'")
    assert world.table.live() == {"40"}


@pytest.mark.parametrize("ahead", ["decider", "actor", "none"])
def test_rows_are_deleted_where_the_filter_lets_them_be_at_the_decision_and_now(world: World, ahead: str) -> None:
    """A clock that is ten days ahead lets no partition in."""
    world.table.commit(info(), *by_day(31, 36, 44))
    ten_days_ms = 10 * 86_400_000
    world.clock_ms += ten_days_ms if ahead == "actor" else 0
    decided_ms = NOW_MS + (ten_days_ms if ahead == "decider" else 0)
    world.run(decided_ms=decided_ms, filter="p < current_date - 35 days")
    assert world.table.live() == {"31"}
    world.table.commit(info(), *by_day(38, 50))
    world.run(decided_ms=decided_ms, filter="p >= current_date - 45 days and p < current_date - 35 days")
    assert world.table.live() == {"31", "50"} | (set() if ahead == "none" else {"38"})


def test_a_partition_column_with_a_value_that_is_no_day_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.table.commit(metadata(kind="string"), info(), *by_day(31), add("odd", p="north"))
    with pytest.raises(Unsupported, match="'north', which is no day") as refused:
        world.run()
    assert (refused.value.field, world.table.live()) == ("delete-rows-after", {"31", "odd"})


def test_a_timestamp_of_a_partition_is_found_however_it_is_spelled(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    old, new = f"{days_ago(32)} 00:00:00", f"{days_ago(1)}T00:00:00.000000Z"
    world.table.commit(metadata(kind="timestamp"), info(), add("old", p=old), add("new", p=new))
    world.run()
    assert (world.conditions, world.table.live()) == ([""], {"new"})


GREATEST = f"substring(get_json_object(stats, '$[\\'maxValues\\'][\\'t\\']'), 1, 10) <= '{days_ago(29)}'"
BY_T = {"lakewright.delete-rows-after": "30 days of T"}


def of_t(path: str, greatest: int, nulls: int = 0) -> dict[str, Any]:
    stats = {"numRecords": 10, "maxValues": {"t": days_ago(greatest)}, "nullCount": {"t": nulls}}
    return add(path, p=None, stats=json.dumps(stats))


def test_files_go_by_statistics_once_all_their_rows_were_read(world: World) -> None:
    table = world.table
    table.commit(
        metadata(BY_T), info(), of_t("a b", 31), of_t("c", 30), of_t("d", 99, nulls=1), add("e"), of_t("f", 31)
    )
    table.commit(info(), remove("f"))
    done = world.run(rule=BY_T["lakewright.delete-rows-after"])
    assert (table.live(), world.read) == ({"c", "d", "e"}, ["a b"])
    assert (done.figures["rows_removed"], done.figures["groups_proofread_by_rows"]) == (10, 1)
    over = Deletes(DeleteForm.OVER, text=json.dumps(["t", days_ago(30)]))
    assert world.compared == [[("a b", (over,))]]
    assert [compared_by for _, _, compared_by in world.commits] == ["rows", ""]
    assert world.modes == {Proofread.STRICT}, "what no second reader reads stays"
    listing, reading = world.conditions
    assert listing == GREATEST
    assert reading == f"coalesce(`t` < DATE '{days_ago(30)}', false) AS {REMOVED}"


def test_a_file_with_newer_rows_than_it_says_stays_and_the_run_names_no_version(world: World) -> None:
    world.table.commit(metadata(BY_T), info(), of_t("a b", 31), of_t("c", 31))
    world.others = {"a b": 1}
    with pytest.raises(RefusedFiles, match=r"a b of .* \(1 such files\)") as refused:
        world.run(rule=BY_T["lakewright.delete-rows-after"])
    assert (refused.value.files, world.table.live()) == (("a b",), {"a b"})
    assert len(world.commits) == 1
    world.table.commit(info(), remove("a b"), of_t("d", 31))
    world.others = {"d": 1}
    with pytest.raises(RefusedFiles, match="d of "):
        world.run(rule=BY_T["lakewright.delete-rows-after"])
    assert len(world.commits) == 1, "nothing is committed where every file is left out"


def test_rows_that_spark_did_not_return_are_not_over(world: World) -> None:
    rule = BY_T["lakewright.delete-rows-after"]
    world.table.commit(metadata(BY_T), info(), of_t("a", 31))
    world.unread = 1
    with pytest.raises(Corrupt, match="a has 10 rows, and Spark read 9"):
        world.run(rule=rule, proofread=Proofread.NEVER)
    assert world.table.live() == {"a"}
    world.unread = 0
    seen = {**of_t("a", 31)["add"], "deletionVector": vector(4)}
    world.table.commit(info(), remove("a"), {"add": seen})
    world.table.rows["a"] = 14
    assert world.run(rule=rule).figures["files_removed"] == 1, "its writer counted the rows that readers see"


def test_a_bounded_number_of_rows_is_read_again_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_expiry, "ROWS_AT_ONCE", 25)
    world.table.commit(metadata(BY_T), info(), *(of_t(name, 31) for name in "abcde"))
    unknown = {"maxValues": {"t": days_ago(31)}, "nullCount": {"t": 0}}
    world.table.commit(info(), add("f", None, p=None, stats=json.dumps(unknown)))
    done = world.run(rule=BY_T["lakewright.delete-rows-after"])
    assert [[name for name, _ in group] for group in world.compared] == [["a", "b"], ["c", "d"], ["e"], ["f"]]
    assert (done.figures["files_removed"], done.figures["proofread_cpu_ms"], len(done.commits)) == (6, 20, 2)


MIXED = {"lakewright.delete-rows-after": "30 days of t, rows"}


def between(path: str, least: int | None, greatest: int, p: str | None = None) -> dict[str, Any]:
    least_of = {} if least is None else {"minValues": {"t": days_ago(least)}}
    stats = {"numRecords": 10, "maxValues": {"t": days_ago(greatest)}, "nullCount": {"t": 0}, **least_of}
    return add(path, p=p, stats=json.dumps(stats))


class Written:
    """What was written without rows, in place of `RemovalJob.write_without`; `lost`: others took the first."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, lost: bool = False) -> None:
        self.calls: list[tuple[tuple[str, ...], dict[str, int], str]] = []
        self.lost = lost
        written = self

        def write(
            _job: object, _log: object, _paths: object, _snapshot: object, live: Any, rows: OverRows, counts: Any
        ) -> bool:
            paths = tuple(one.file.path for one in live.inputs)
            written.calls.append((paths, {one.file.path: count for one, count in counts.items()}, rows.condition))
            was_lost, written.lost = written.lost, False
            return not was_lost

        monkeypatch.setattr(DeltaAgedTable, "write_without", write)
        monkeypatch.setattr("actor.formats.delta.expire.OutputPaths", lambda *_: None)


def mixed_table(world: World) -> None:
    world.table.commit(metadata(MIXED), info(), between("old", 40, 31), between("new", 30, 1))
    mixed = [between("a", 31, 2), between("b", None, 2), between("c", 99, 3), between("d", 31, 4, "2026-01-01")]
    world.table.commit(info(), *mixed)
    world.others = {"a": 7, "b": 10, "c": 10, "d": 9}


def test_rows_leave_files_only_where_the_owner_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that hold none of them are not written, and each commit is about one partition."""
    written = Written(monkeypatch)
    mixed_table(world)
    done = world.run(rule=MIXED["lakewright.delete-rows-after"])
    assert sorted(world.read) == ["a", "b", "c", "d", "old"]
    bound = f"`t` < DATE '{days_ago(30)}'"
    assert written.calls == [(("d",), {"d": 1}, bound), (("a",), {"a": 3}, bound)]
    assert figures_of(done)["rows_removed"] == 10 + 3 + 1
    assert done.figures["files_replaced"] == 2
    assert "old" not in world.table.live()
    assert f"coalesce({GREATEST.replace('max', 'min')}, true)" in world.conditions
    world.table.commit(metadata(BY_T), info())
    world.run(rule=BY_T["lakewright.delete-rows-after"])
    assert len(written.calls) == 2


def test_a_dry_run_counts_the_rows_in_files_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written(monkeypatch)
    mixed_table(world)
    dry = world.run(rule=MIXED["lakewright.delete-rows-after"], dry=True)
    assert (dry.figures["rows_removed"], dry.figures["files_removed"], dry.figures["files_replaced"]) == (14, 1, 2)
    assert (written.calls, world.commits) == ([], [])


def test_rows_of_files_that_others_took_are_searched_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written(monkeypatch, lost=True)
    mixed_table(world)
    done = world.run(rule=MIXED["lakewright.delete-rows-after"])
    assert (done.figures["conflicts"], len(written.calls), done.figures["files_replaced"]) == (1, 3, 2)


def test_a_run_that_is_to_stop_takes_no_further_rows_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written(monkeypatch)
    mixed_table(world)
    world.control.stop_after = 1
    done = world.run(rule=MIXED["lakewright.delete-rows-after"])
    assert (done.is_complete, written.calls, len(done.commits)) == (False, [], 1)


@pytest.mark.parametrize("change", ["age", "column"])
def test_no_row_leaves_a_file_once_the_owner_has_changed_the_rule_or_the_column(
    world: World, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    written = Written(monkeypatch)
    mixed_table(world)
    body = metadata({"lakewright.delete-rows-after": "60 days of t, rows"} if change == "age" else MIXED)
    if change == "column":
        body["metaData"]["schemaString"] = json.dumps(
            {"type": "struct", "fields": [FIELDS[0], {**FIELDS[1], "type": "timestamp"}]}
        )
    find = _DeltaFilesByAge.take_out

    def take_out(listed: _DeltaFilesByAge, *given: Any) -> Any:
        if world.table.version == 3:
            world.table.commit(body, info())
        return find(listed, *given)

    monkeypatch.setattr(_DeltaFilesByAge, "take_out", take_out)
    done = world.run(rule=MIXED["lakewright.delete-rows-after"])
    assert done.reason == (NOT_ASKED if change == "age" else "")
    assert [condition for _, _, condition in written.calls if "DATE" in condition] == []
