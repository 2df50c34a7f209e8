"""Which partitions a removal of older rows reads, and when it stops; what needs a JVM is tested with Spark."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Self

import pytest

from actor.formats.delta.actions import LoggedFile, decode_adds
from actor.formats.delta.deduplicate import Deduplication
from actor.formats.delta.log import TableLog, TableShape
from actor.formats.delta.row_removal import WrittenRemoval
from actor.formats.delta.superseded_rows import FILE, SupersededRows
from actor.ports import TableJob, TableJobOutcome
from actor.proofread.model import Proof, Reading
from shared.errors import Conflict, Difference, RefusedFiles, Unsupported
from shared.jobs.options import DeduplicateOptions
from shared.jobs.payload import DEDUPLICATE
from shared.policy.policy import Policy
from shared.policy.properties import policy_digest
from shared.table import CommitOrigin, FileKey
from tests.support.fake_delta import FakeScala, FakeSessions, FakeTable
from tests.support.fake_delta_table import METADATA, FakeFrame, FakeTransaction, add
from tests.support.local_vacuum import Control

POLICY = Policy(primary_key="p", sequence_by="p")
PARTS, BASE = "actor.formats.delta.deduplicate", "actor.formats.delta.removal_job"
RESERVED_BYTES = 7


class World:
    """A table in memory, partitioned by p; `found` counts the superseded rows of the files that are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.table = FakeTable()
        self.read: list[list[str]] = []
        self.reserves: list[int] = []
        self.checked: list[str] = []
        self.writing: Callable[[], None] = lambda: None
        self.outputs: tuple[LoggedFile, ...] = ()
        self.found: Callable[[list[str]], Mapping[str, int]] = lambda _paths: {}
        world = self

        class Rows:
            condition = "superseded()"

            def __init__(self, _scala: object, frame: FakeFrame, _rule: object) -> None:
                self.paths = [body["path"] for body in frame.bodies]

            def __enter__(self) -> Self:
                return self

            def __exit__(self, *_: object) -> None:
                pass

            def counts(self) -> Mapping[str, int]:
                world.read.append(self.paths)
                return world.found(self.paths)

        class Writer:
            def __init__(self, *_: object) -> None:
                pass

            def write(self, live: Any, _rows: object, counts: Mapping[LoggedFile, int]) -> WrittenRemoval:
                proof = Proof(Reading.ROWS, cpu_ms=5)
                world.writing()
                return WrittenRemoval(
                    live, world.outputs, 0, proof=proof, replaced=tuple(counts), removed_rows=sum(counts.values())
                )

        def listed(log: TableLog, snapshot: Any, columns: Any) -> list[LoggedFile]:
            return list(decode_adds(log.files(snapshot), columns))

        def commit(_log: TableLog, txn: FakeTransaction, actions: Any, *_: object) -> int:
            return txn.commit(actions, "DELETE", {})

        monkeypatch.setattr(f"{PARTS}.SupersededRows", Rows)
        monkeypatch.setattr(f"{BASE}.RemovalWriter", Writer)

        def output_paths(_scala: object, _log: object, _txn: object, shape: TableShape, _prefix: str) -> Any:
            return SimpleNamespace(shape=shape, leftovers=lambda _known: [FileKey("an-empty-file")])

        monkeypatch.setattr(f"{PARTS}.OutputPaths", output_paths)
        monkeypatch.setattr(f"{BASE}.OutputFormat", lambda *_: None)
        monkeypatch.setattr(
            f"{BASE}.require_free_space", lambda *_, reserved_bytes: self.reserves.append(reserved_bytes)
        )
        monkeypatch.setattr(
            f"{PARTS}.list_partition",
            lambda log, snapshot, columns, part: [
                x for x in listed(log, snapshot, columns) if x.file.partition == part
            ],
        )
        monkeypatch.setattr(TableLog, "partitions", lambda *at: frozenset(x.file.partition for x in listed(*at)))
        monkeypatch.setattr(TableLog, "commit_delete", commit)

    def run(
        self, policy: Policy = POLICY, *, stop_after: int = 10**9, decided_ms: int = 0, **asked: Any
    ) -> TableJobOutcome:
        boundary = SimpleNamespace(
            check_files=lambda *_: None, check_links=lambda _place, paths: self.checked.extend(paths)
        )
        options, decided, control = DeduplicateOptions(**asked).encode(), policy_digest({}), Control()
        control.stop_after = stop_after
        job = TableJob(DEDUPLICATE, "file:///t", policy, CommitOrigin("j", 1), policy_digest=decided, options=options)
        job = replace(job, decided_ms=decided_ms)
        scala, sessions = FakeScala(self.table), FakeSessions(self.table)
        parts: tuple[Any, ...] = (scala, sessions, boundary, None, job, control, RESERVED_BYTES)
        return Deduplication(*parts).run()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_all_partitions_are_read_or_those_that_the_owners_filter_permits(world: World) -> None:
    world.table.commit(*(add(name, p=name) for name in "abc"))
    world.run()
    assert world.read == [["a"], ["b"], ["c"]]
    world.read.clear()
    world.run(Policy(primary_key="p", sequence_by="p", filter="p >= 'b'"))
    assert world.read == [["b"], ["c"]]


def test_a_partition_that_has_left_the_filter_since_the_decision_loses_no_row_and_one_that_enters_is_compared(
    world: World,
) -> None:
    table, now_ms = world.table, time.time_ns() // 1_000_000
    days = [str(datetime.fromtimestamp(now_ms / 1000, UTC).date() - timedelta(days=age)) for age in range(4)]
    table.commit(*(add(str(age), p=day) for age, day in enumerate(days)))
    reads = {
        ("p >= current_date - 1 days", -2): [["1"], ["0"]],
        ("p >= current_date - 1 days", 2): [],
        ("p < current_date", -2): [["3"]],
        ("p < current_date", 2): [["3"], ["2"], ["1"]],
        ("p < current_date - 1 days", 0): [["3"], ["2"]],
    }
    for (text, days_off), expected in reads.items():
        world.read.clear()
        world.run(Policy(primary_key="p", sequence_by="p", filter=text), decided_ms=now_ms + days_off * 86_400_000)
        assert world.read == expected, (text, days_off)
    for text, expected in (("p < current_date", [["3"], ["2"], ["1"]]), ("p > current_date - 9 days", [])):
        world.read.clear()
        policy = Policy(primary_key="p", sequence_by="p", filter=text)
        world.run(policy, decided_ms=now_ms, since_version=table.version)
        assert world.read == expected, "nothing was added since; others may have entered"


def test_partitions_are_read_to_which_data_was_added_since_a_version_or_all_if_that_is_not_known(world: World) -> None:
    table = world.table
    table.commit(*(add(name, p=name) for name in "abc"))
    before = table.version
    table.commit(add("b2", p="b"), add("c2", p="c", dataChange=False))
    reads = {
        before: [["b", "b2"]],
        before + 9: [["a"], ["b", "b2"], ["c", "c2"]],
        -1: [["a"], ["b", "b2"], ["c", "c2"]],
    }
    for since_version, expected in reads.items():
        world.read.clear()
        world.run(since_version=since_version)
        assert world.read == expected
    before = table.version
    table.commit({"metaData": METADATA})
    world.read.clear()
    world.run(since_version=before)
    assert len(world.read) == 3, "a schema may have changed"


def test_a_table_without_a_key_or_with_one_that_must_not_be_compared_loses_nothing(world: World) -> None:
    world.table.commit(add("a"))
    assert world.run(Policy()).reason == "the table has no primary key"
    with pytest.raises(Unsupported, match="no row was removed"):
        world.run(Policy(primary_key="missing", sequence_by="p"))
    assert world.read == []


def test_a_run_stops_between_partitions_and_one_that_only_counts_removes_nothing(world: World) -> None:
    world.table.commit(*(add(name, p=name) for name in "ab"))
    done = world.run(stop_after=0)
    assert (done.is_complete, world.read) == (False, [])
    world.found = lambda paths: dict.fromkeys(paths, 1)
    done = world.run(dry_run=True)
    assert (done.version, done.figures["rows_removed"], world.table.live()) == (-1, 2, {"a", "b"})


def test_a_partition_that_others_change_each_time_is_tried_again_later(world: World) -> None:
    table = world.table
    table.commit(add("a"), add("b"))

    def found(_paths: list[str]) -> Mapping[str, int]:
        table.commit(add("a"), add("b"))
        return {"a": 1}

    world.found = found
    with pytest.raises(Conflict, match="tried again later"):
        world.run()


def test_what_removals_were_compared_by_is_counted(world: World) -> None:
    world.table.commit(*(add(name, p=name) for name in "ab"))
    world.found = lambda paths: dict.fromkeys(paths, 1)
    figures = world.run().figures
    assert (figures["groups_proofread_by_rows"], figures["proofread_cpu_ms"]) == (2, 10)


def test_rows_of_a_commit_that_is_undone_while_rows_are_compared_supersede_nothing(world: World) -> None:
    table = world.table
    table.commit(add("a"), add("b"))
    table.commit(add("undone"))

    def found(paths: list[str]) -> Mapping[str, int]:
        if "undone" not in paths:
            return {}
        table.history[-1] = [add("another")]
        return {"a": 1}

    world.found = found
    done = world.run()
    assert table.live() == {"a", "b", "another"}
    assert (done.figures["conflicts"], done.figures["rows_removed"]) == (1, 0)


def test_a_run_ends_without_a_mark_once_the_owner_has_changed_the_properties(world: World) -> None:
    table = world.table
    table.commit(*(add(name, p=name) for name in "abc"))

    def found(paths: list[str]) -> Mapping[str, int]:
        if paths == ["b"]:
            table.commit({"metaData": METADATA | {"configuration": {"lakewright.primary-key": "id"}}})
        return dict.fromkeys(paths, 1)

    world.found = found
    done = world.run()
    assert table.live() == {"b", "c"}
    assert (done.is_complete, done.commits, world.read) == (False, (1,), [["a"], ["b"]])
    assert "properties changed" in done.reason
    assert table.version == 2


def test_a_partition_that_is_refused_keeps_no_other_from_its_turn_and_the_run_names_no_version(world: World) -> None:
    table = world.table
    table.commit(*(add(name, p=name) for name in "abc"))

    def found(paths: list[str]) -> Mapping[str, int]:
        if paths == ["c"]:
            return {"c": 1}
        raise Difference(f"the rows of {paths} differ")

    world.found = found
    with pytest.raises(Difference, match="'a'"):
        world.run()
    assert (world.read, table.live(), table.version) == ([["a"], ["b"], ["c"]], {"a", "b"}, 1)


def test_vectors_are_plain_files_and_no_path_is_live_twice_before_rows_are_read(world: World) -> None:
    """Rows of the two entries could not be told apart, and a commit could remove such a path only once."""
    vector = {"storageType": "p", "pathOrInlineDv": "file:///t/v.bin", "offset": 4, "sizeInBytes": 9, "cardinality": 1}
    world.table.commit(add("a", deletionVector=vector))
    world.run()
    assert world.checked == ["a", "file:///t/v.bin"]
    world.read.clear()
    world.table.commit(add("a"))
    with pytest.raises(RefusedFiles, match=r"a of .* is live 2 times") as refused:
        world.run()
    assert (refused.value.reason, world.read) == ("doubled", [])


def test_the_empty_file_that_is_written_for_one_that_loses_all_rows_is_deleted(world: World) -> None:
    world.table.commit(add("a"))
    world.run()
    assert world.table.deleted == []
    world.found = lambda paths: dict.fromkeys(paths, 10)
    world.run()
    assert world.table.deleted == ["an-empty-file"]


def test_what_a_removal_that_fails_has_written_is_deleted(world: World) -> None:
    world.table.commit(add("a"), add("b"))
    world.found = lambda paths: {paths[0]: 1}

    def fail() -> None:
        raise Difference("rows differ")

    world.writing = fail
    with pytest.raises(Difference):
        world.run()
    assert (world.table.deleted, world.table.live()) == (["an-empty-file"], {"a", "b"})


def test_where_every_file_keeps_rows_nothing_is_searched_that_was_left_over(world: World) -> None:
    world.table.commit(add("a"), add("b"))
    world.table.disk["out"] = 100
    world.outputs = decode_adds(json.dumps([add("out")["add"]]), ())
    world.found = lambda paths: {paths[0]: 1}
    done = world.run()
    assert (world.table.deleted, world.table.live()) == ([], {"b", "out"})
    assert (done.figures["files_written"], done.figures["bytes_written"]) == (1, 100)


def test_a_removal_leaves_as_much_space_free_as_the_actor_is_set_to(world: World) -> None:
    world.table.commit(add("a"), add("b"))
    world.found = lambda paths: {paths[0]: 1}
    world.run()
    assert world.reserves == [RESERVED_BYTES]


class Frame:
    """A frame of which only the rows matter, and what reads them."""

    def __init__(self, *found: dict[str, Any]) -> None:
        self.found = found

    def __getattr__(self, _name: str) -> Any:
        return lambda *_: self

    def rows(self, frame: "Frame") -> list[dict[str, Any]]:
        return [*frame.found]


def test_files_are_called_as_they_are_called_and_not_as_spark_escapes_them() -> None:
    names = ("a%20b.parquet", "a%2520b.parquet", "a+b.parquet", "\u00fc.parquet")
    rows = SupersededRows.__new__(SupersededRows)
    rows._scala = rows._functions = Frame()
    rows._ranked = Frame(*({FILE: name, "__lakewright_rows": place} for place, name in enumerate(names)))
    assert rows.counts() == {"a b.parquet": 0, "a%20b.parquet": 1, "a+b.parquet": 2, "\u00fc.parquet": 3}
