"""Which files a deletion by age takes from an Iceberg table, and upon what it commits; Spark is tested elsewhere.

The rules that all formats share are tested on Delta.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.formats.iceberg.expire import IcebergAgedTable
from actor.formats.iceberg.inputs import InputGroup, LiveInput
from actor.formats.iceberg.java_table import FieldBound
from actor.formats.iceberg.staged import IcebergFile, StagedGroup
from actor.formats.iceberg.table_columns import TableColumns
from actor.formats.iceberg.write import RowRemoval
from actor.ports import TableJob, TableJobOutcome
from actor.proofread.model import DeleteForm, Deletes, Field, Proof, Reading
from actor.row_expiry import NO_TIME, NOT_ASKED, ExpiryJob
from shared.errors import Conflict, Corrupt, OtherTable, RefusedFiles, Unsupported
from shared.formats.iceberg.metadata import MetadataRecords, SnapshotRecord, TableHead
from shared.formats.iceberg.names import COMMIT_KEY, PROOFREAD_KEY
from shared.formats.iceberg.partitions import Spec, SpecField
from shared.jobs.options import ExpiryOptions
from shared.jobs.payload import EXPIRE
from shared.layout import commit_metadata
from shared.layout.commit_metadata import CommitMetadata
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.policy.properties import policy_digest
from shared.table import CommitOrigin, DataFile, PartitionKey, TableMetadata, TableProtocol
from tests.support.java_errors import JavaError
from tests.support.local_vacuum import Control
from tests.unit.actor.formats.iceberg.test_iceberg_inputs import POSITIONS, VALUES

TODAY = date(2026, 3, 31)
NOW = datetime(2026, 3, 31, 18, tzinfo=UTC)
NOW_MS = round(NOW.timestamp() * 1000)
RULE = "30 days of t"
ROWS = f"{RULE}, rows"
LAST = NOW - timedelta(days=30)
COLUMNS = (Field("id", "int64", 1), Field("t", "timestamptz", 2), Field("day", "string", 3), Field("o", "struct", 4))
SPECS = {
    0: Spec(0),
    1: Spec(1, (SpecField("d", "identity", "string"), SpecField("m", "month", "int"))),
    2: Spec(2, (SpecField("at", "identity", "timestamptz"),)),
}
SOURCES = {0: (), 1: ("day", "t"), 2: ("t",)}
OVER = Deletes(DeleteForm.OVER, text=f'["t", "{LAST:%Y-%m-%d %H:%M:%S}Z"]')


def stored(path: str, *deletes: Any, spec: int = 0, partition: PartitionKey = WHOLE_TABLE, rows: int = 10) -> LiveInput:
    return LiveInput(path, 100, rows, spec, deletes, DataFile(path, 100, partition, rows=rows))


class World:
    """A table in memory; `over`: how many rows of each file are over; `whole`: files of which all are by metrics."""

    location = "catalog://c/db/t"

    def __init__(self, *files: LiveInput, rule: str = RULE, version: int = 2) -> None:
        self.files = {one.path: one for one in files}
        self.over: dict[str, int] = {one.path: 0 for one in files}
        self.whole: set[str] = set()
        self.configuration = {"lakewright.delete-rows-after": rule}
        self.rule, self.version, self.schema = rule, version, "0/0"
        self.chain = [SnapshotRecord(1, None, 1, NOW_MS, "m", "append", {})]
        self.control = Control()
        self.staged: dict[str, InputGroup] = {}
        self.strange = False
        self.unread = 0  # Rows of each file that Spark does not return.
        self.deleted: list[str] = []
        self.checked: list[tuple[str, ...]] = []
        self.bounds: list[FieldBound | None] = []
        self.removals: list[tuple[str, RowRemoval]] = []
        self.refused: Exception | None = None
        self.lost = False  # Whether others are always first.
        self.made = 0
        self.columns = TableColumns(COLUMNS)

    def head(self) -> TableHead:
        last = self.chain[-1] if self.chain else None
        return TableHead(
            "file:///t",
            TableMetadata("u", (), self.configuration, "iceberg", schema_digest=self.schema),
            TableProtocol(self.version, self.version),
            NOW_MS if last is None else last.timestamp_ms,
            None if last is None else last.id,
            SPECS,
            {one.id: one for one in self.chain},
            SOURCES,
            records=MetadataRecords(path=f"v{self.made}"),
        )

    refresh = head

    def add(self, operation: str, summary: Mapping[str, str]) -> None:
        last = self.chain[-1]
        self.made += 1
        self.chain.append(SnapshotRecord(last.id + 1, last.id, 0, last.timestamp_ms + 1, "m", operation, summary))

    def aged(self, head: TableHead, snapshot: int, bound: FieldBound | None) -> dict[LiveInput, bool]:
        assert snapshot == head.current
        self.bounds.append(bound)
        return {one: path in self.whole for path, one in self.files.items()}

    def inputs(
        self, head: TableHead, snapshot: int, *, partitions: Collection[PartitionKey] | None, paths: Collection[str]
    ) -> Mapping[str, LiveInput]:
        assert snapshot == head.current
        assert partitions is not None
        return {path: one for path, one in self.files.items() if path in paths and one.file.partition in partitions}

    def stage(self, name: str, group: InputGroup, *, is_checked: bool) -> None:
        assert not is_checked
        self.staged[name] = group

    def unstage(self, name: str) -> None:
        del self.staged[name]

    def overwrite(self, groups: Iterable[StagedGroup], *, upon: TableHead, summary: Mapping[str, str]) -> None:
        if upon.records.path != f"v{self.made}":
            raise JavaError("ValidationException", message="the metadata changed")
        found = list(groups)
        for group in found:
            for one in group.live.inputs:
                del self.files[one.path]
            for output in group.outputs:
                self.files[output.file.path] = stored(output.file.path, partition=output.file.partition)
                self.over[output.file.path] = 0
        self.add("overwrite" if any(group.outputs for group in found) else "delete", summary)

    def note(self, summary: Mapping[str, str]) -> None:
        self.add("replace", summary)

    def sizes(self, paths: Iterable[str]) -> Mapping[str, int | None]:
        return dict.fromkeys(paths, 50)

    def delete(self, paths: Iterable[str]) -> None:
        self.deleted += paths

    @property
    def session(self) -> Any:
        """A session of Spark that reads what was staged, and counts."""
        reader = SimpleNamespace(load=self._load)
        reader.format = reader.option = lambda *_: reader
        return SimpleNamespace(read=reader)

    def _load(self, name: str) -> Any:
        rows = []
        for one in self.staged[name].inputs:
            over = self.over[one.path]
            path = "other" if self.strange else one.path
            rows += [(path, is_over, n) for is_over, n in ((True, over), (False, one.rows - over - self.unread)) if n]
        counted = SimpleNamespace(count=lambda: SimpleNamespace(collect=lambda: rows))
        return SimpleNamespace(selectExpr=lambda *_: SimpleNamespace(groupBy=lambda *_: counted))

    def check_over(self, live: InputGroup, over: Deletes) -> Proof:
        assert over == OVER
        self.checked.append(tuple(one.path for one in live.inputs))
        return Proof(Reading.ROWS, cpu_ms=5)

    def write_without(self, live: InputGroup, removal: RowRemoval) -> StagedGroup:
        if self.refused is not None and self.removals:
            raise self.refused
        (one,) = live.inputs
        self.removals.append((one.path, removal))
        left = one.rows - removal.rows
        output = DataFile(f"{one.path}-new", 50, one.file.partition, rows=left)
        return StagedGroup(live, (IcebergFile(output),) if left else (), left, proof=Proof(Reading.ROWS))

    def run(self, *, dry: bool = False, rule: str = "", digest: str = "") -> TableJobOutcome:
        policy = Policy(delete_rows_after=rule or self.rule)
        options = ExpiryOptions(NOW_MS, dry_run=dry).encode()
        job = TableJob(EXPIRE, self.location, policy, CommitOrigin("j", 1), options=options, policy_digest=digest)
        boundary = SimpleNamespace(check_files=lambda *_: None)
        given: Any = (self, self.session, boundary, job, self.control, self.check, lambda _: self, 0)
        return ExpiryJob(IcebergAgedTable(*given), job, self.control).run()

    def check(self, head: TableHead) -> None:
        if head.metadata.table_uuid != "u":
            raise OtherTable("another")


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actor.row_expiry.time.time_ns", lambda: (NOW_MS + 1_000) * 1_000_000)


def aged(*, rule: str = RULE) -> World:
    """Files all, some and none of whose rows are over, and one of which metrics do not say that all are."""
    world = World(*map(stored, ("all", "some", "none", "unsaid")), rule=rule)
    world.whole = {"all"}
    world.over = {"all": 10, "some": 4, "none": 0, "unsaid": 10}
    return world


def figures_of(done: TableJobOutcome) -> dict[str, int]:
    return {name: count for name, count in done.figures.items() if count}


def test_files_go_by_metrics_once_two_readers_found_all_their_rows_over() -> None:
    world = aged()
    done = world.run()
    assert (set(world.files), world.checked) == ({"some", "none", "unsaid"}, [("all",)])
    assert figures_of(done) == {
        "rows_removed": 10,
        "files_removed": 1,
        "bytes_removed": 100,
        "groups_proofread_by_rows": 1,
        "proofread_cpu_ms": 5,
    }
    (bound,) = world.bounds
    assert bound == FieldBound(2, round(LAST.timestamp()) * 1_000_000)
    _, deleted, ended = world.chain
    assert (deleted.operation, deleted.summary[PROOFREAD_KEY], ended.operation) == ("delete", "rows", "replace")
    marks = [commit_metadata.decode(one.summary[COMMIT_KEY]) for one in (deleted, ended)]
    assert [(one.mode, one.deduplicated_version) for one in marks if one] == [(EXPIRE, None), (EXPIRE, done.version)]
    assert done.commits == (NOW_MS + 1, NOW_MS + 2)


def test_a_dry_run_changes_nothing_and_equals_the_run() -> None:
    world = aged(rule=ROWS)
    dry = world.run(dry=True)
    assert (dry.version, dry.commits, len(world.chain), world.removals) == (-1, (), 1, [])
    done = world.run()
    names = ("rows_removed", "files_removed", "files_replaced", "bytes_replaced")
    assert [done.figures[name] for name in names] == [dry.figures[name] for name in names] == [24, 1, 2, 200]


def test_rows_leave_files_only_where_the_owner_says_so_and_a_file_without_others_goes() -> None:
    world = aged(rule=ROWS)
    done = world.run()
    assert set(world.files) == {"some-new", "unsaid-new"} - {"unsaid-new"} | {"none"}
    condition = f"`t` < TIMESTAMP '{LAST:%Y-%m-%d %H:%M:%S}Z'"
    assert world.removals == [("some", RowRemoval(condition, 4, OVER)), ("unsaid", RowRemoval(condition, 10, OVER))]
    assert [one.operation for one in world.chain[1:]] == ["delete", "overwrite", "replace"]
    assert (done.figures["files_written"], done.figures["bytes_written"]) == (1, 50)


def test_a_file_with_newer_rows_than_its_metrics_say_stays_and_is_named() -> None:
    world = aged()
    world.whole = {"all", "some"}
    with pytest.raises(RefusedFiles, match="newer than its statistics") as refused:
        world.run()
    assert (refused.value.files, set(world.files)) == (("some",), {"some", "none", "unsaid"})
    world.whole = {"some"}
    with pytest.raises(RefusedFiles):
        world.run()
    assert len(world.chain) == 2, "nothing is committed where every file is left out"


def test_files_of_an_identity_partition_go_by_its_value_and_no_row_is_read() -> None:
    world = World(stored("a", spec=2, partition=PartitionKey('{"#spec":"2","at":"x"}')))
    world.whole = {"a"}
    done = world.run()
    assert (world.files, world.checked, done.figures["rows_removed"]) == ({}, [], 10)
    assert PROOFREAD_KEY not in world.chain[1].summary
    world = World(stored("a", VALUES, spec=2, partition=PartitionKey('{"#spec":"2","at":"x"}')))
    world.whole, world.over = {"a"}, {"a": 7}
    assert world.run().figures["rows_removed"] == 10, "rows that deletes by value leave are counted"


def by_day(path: str, day: str | None, *deletes: Any) -> LiveInput:
    text = "null" if day is None else f'"{day}"'
    return stored(path, *deletes, spec=1, partition=PartitionKey(f'{{"#spec":"1","d":{text},"m":"1"}}'))


def test_days_as_texts_are_those_of_partitions_and_one_that_is_none_is_refused() -> None:
    rule = "30 days of day, rows"
    files = [by_day("old", "2026-01-01"), by_day("new", str(TODAY)), by_day("null", None)]
    world = World(*files, rule=rule)
    assert world.run().figures["files_removed"] == 1
    assert (set(world.files), world.bounds[0]) == ({"new", "null"}, None)
    with pytest.raises(Unsupported, match="'north', which is no day"):
        World(*files, by_day("odd", "north"), rule=rule).run()
    with pytest.raises(Unsupported, match="plain is not partitioned by 'day'"):
        World(*files, stored("plain"), rule=rule).run()


@pytest.mark.parametrize(
    ("kind", "first_kept"),
    [
        ("date", (date(2026, 3, 1) - date(1970, 1, 1)).days),
        ("timestamp", round((LAST - timedelta(hours=12)).timestamp()) * 1_000_000),
    ],
)
def test_files_are_sought_by_what_the_type_stores(kind: str, first_kept: int) -> None:
    world = aged()
    world.columns = TableColumns((Field("t", kind, 7),))
    world.run(dry=True)
    assert world.bounds == [FieldBound(7, first_kept)]


@pytest.mark.parametrize("column", ["id", "o", "other"])
def test_columns_without_a_time_are_refused(column: str) -> None:
    with pytest.raises(Unsupported, match="no row was deleted"):
        World(rule=f"30 days of {column}").run()


def test_only_what_the_tables_own_properties_say_now_deletes_rows() -> None:
    world = aged()
    assert (world.run(rule="10 days of t").reason, len(world.chain)) == (NOT_ASKED, 1)
    world.configuration = {}
    assert (world.run().reason, len(world.chain)) == (NOT_ASKED, 1)


@pytest.mark.parametrize(
    "change", [{"lakewright.enabled": "false"}, {"lakewright.filter": "d = 'x'"}, {"lakewright.delete-rows-after": ""}]
)
def test_an_owner_who_objects_between_files_and_rows_keeps_the_rows(change: dict[str, str]) -> None:
    world = aged(rule=ROWS)
    add = world.add

    def then(operation: str, summary: Mapping[str, str]) -> None:
        add(operation, summary)
        if operation == "delete":
            world.configuration = world.configuration | change

    world.add = then  # type: ignore[method-assign]
    decided = policy_digest(world.configuration)
    done = world.run(digest=decided)
    assert (done.reason != "", world.removals, "some" in world.files) == (True, [], True)
    assert "all" not in world.files, "it went before"


def test_a_column_that_became_another_between_files_and_rows_is_searched_again() -> None:
    world = aged(rule=ROWS)
    add = world.add

    def then(operation: str, summary: Mapping[str, str]) -> None:
        add(operation, summary)
        world.columns = TableColumns((*(one for one in COLUMNS if one.name != "t"), Field("t", "date", 9)))

    world.add = then  # type: ignore[method-assign]
    world.run()
    assert len(world.bounds) > 2, "the column of days has another bound"


def test_rows_that_spark_did_not_return_are_not_over() -> None:
    world = aged()
    world.over["all"], world.unread = 9, 1
    with pytest.raises(Corrupt, match="all has 10 rows, and Spark read 9"):
        world.run()
    assert "all" in world.files


def test_without_a_snapshot_of_others_nothing_is_old_and_without_any_nothing_is_committed() -> None:
    world = aged()
    own = {COMMIT_KEY: CommitMetadata(CommitOrigin("another", 3)).encode()}
    world.chain = [replace(world.chain[0], summary=own)]
    files = set(world.files)
    done = world.run()
    assert set(world.files) == files
    assert (done.reason, [one.operation for one in world.chain]) == (NO_TIME, ["append", "replace"])
    world.chain = []
    assert world.run().commits == ()


@pytest.mark.parametrize("what", ["gone", "deleted rows", "rows came back"])
@pytest.mark.parametrize("rule", [RULE, ROWS])
def test_files_that_others_change_meanwhile_are_searched_again(what: str, rule: str) -> None:
    kept = (POSITIONS,) if what == "rows came back" else ()
    world = World(stored("a", *kept), stored("b"), rule=rule)
    world.whole, world.over = ({"a"} if rule == RULE else set()), {"a": 10 if rule == RULE else 4, "b": 0}

    def others(change: int) -> None:
        if change != 1:
            return
        changed = () if what == "rows came back" else (POSITIONS,)
        world.files["a"] = stored("a", *changed)
        if what == "gone":
            del world.files["a"]
        world.add("overwrite", {})

    world.control.before_change = others
    assert world.run().figures["conflicts"] == 1


@pytest.mark.parametrize("change", ["rule", "schema", "version", "property"])
@pytest.mark.parametrize("rule", [RULE, ROWS])
def test_rows_are_not_deleted_by_a_rule_or_a_column_of_before(change: str, rule: str) -> None:
    world = World(stored("a"), stored("b"), rule=rule)
    world.whole, world.over = ({"a"} if rule == RULE else set()), {"a": 10 if rule == RULE else 4, "b": 0}
    meant = dict(world.configuration)

    class Owner(Control):
        def reached(self, point: str, done: int = 0, total: int = 0) -> None:
            if point != ("deleting" if rule == RULE else "taking_out"):
                return
            world.made += 1
            match change:
                case "rule":
                    world.configuration = {"lakewright.delete-rows-after": "60 days of t"}
                case "schema":
                    world.schema += "1"
                case "version":
                    world.version += 1
                case _:
                    world.configuration = {**meant, "lakewright.fan-in": str(world.made + 2)}

    world.control = Owner()
    if change == "rule":
        assert world.run().reason == NOT_ASKED
    else:
        with pytest.raises(Conflict, match="each of 3 times"):
            world.run()
    assert (set(world.files), world.deleted) == ({"a", "b"}, ["a-new"] * len(world.deleted))
    assert len(world.deleted) == (0 if rule == RULE else 1 if change == "rule" else 3)


def test_main_that_no_longer_leads_to_the_read_is_searched_again() -> None:
    world = aged()

    class Others(Control):
        is_emptied = False

        def reached(self, point: str, done: int = 0, total: int = 0) -> None:
            if point == "deleting":
                other = SnapshotRecord(world.chain[0].id + 90, None, 1, NOW_MS, "m", "append", {})
                world.chain = [] if self.is_emptied else [other]

    world.control = others = Others()
    with pytest.raises(Conflict, match="each of 3 times"):
        world.run()
    others.is_emptied = True
    assert world.run().figures["conflicts"] == 1
    assert len(world.files) == 4


def test_what_was_written_is_deleted_if_another_file_cannot_be() -> None:
    world = aged(rule=ROWS)
    world.refused = RefusedFiles("damaged", reason="damaged")  # type: ignore[arg-type]
    with pytest.raises(RefusedFiles):
        world.run()
    assert (world.deleted, "some" in world.files) == (["some-new"], True)


def test_names_of_files_that_were_not_read_stop_the_run() -> None:
    world = aged()
    world.strange = True
    with pytest.raises(Corrupt, match="was not to read"):
        world.run()
    assert len(world.files) == 4
