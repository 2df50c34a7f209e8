"""Rows that others deleted while a group was rewritten are hidden at their own places, or the group is set aside."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

import pytest

from actor.formats.delta.actions import LoggedFile, decode_add, encode
from actor.formats.delta.commit import DeltaTarget
from actor.formats.delta.late_rows import RowHider
from actor.formats.delta.proofreading import Proofs
from actor.formats.delta.written_group import WrittenGroup
from actor.proofread.model import Proof, Reading
from shared.layout.planner import RewriteMode
from shared.table import CommitOrigin, PartitionColumn
from tests.support.fake_delta import FakeScala, FakeTable, live_group
from tests.support.fake_delta_table import METADATA, add, remove, vector

COLUMNS = (PartitionColumn("p", "p", "string"),)
MARK = json.dumps({"lakewright": {"job": "j-1", "token": 1}})
ON = {"delta.enableDeletionVectors": "true"}
FEATURES = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
PROTOCOL = {"minReaderVersion": 3, "minWriterVersion": 7, **FEATURES}


class ToldProofs:
    """Says what it is told to say of rows at chosen places, and notes what it was asked."""

    def __init__(self) -> None:
        self.is_same = True
        self.asked: list[tuple[list[list[int]], list[int]]] = []
        self.meanwhile: list[Callable[[], object]] = []

    def check_places(self, live: Any, chosen: Sequence[Sequence[int]], output: Any, places: Sequence[int]) -> bool:
        self.asked.append(([*map(list, chosen)], list(places)))
        if self.meanwhile:
            self.meanwhile.pop(0)()
        return self.is_same


class World:
    """A table whose files a (10 rows) and b (5 rows) were written as one, and c by Spark."""

    def __init__(
        self,
        configuration: dict[str, str] | None = None,
        protocol: dict[str, Any] | None = None,
        below: Fraction = Fraction(1, 5),
    ) -> None:
        self.table = FakeTable(user_metadata=MARK)
        self.vector_of: dict[str, dict[str, Any]] = {}
        metadata = METADATA | {"configuration": ON if configuration is None else configuration}
        self.table.commit({"metaData": metadata}, {"protocol": protocol or PROTOCOL}, add("a"), add("b", 5), add("c"))
        log, scala = self.table.log(), FakeScala(self.table)
        self.shape = shape = log.shape(log.snapshot())
        self.proofs = ToldProofs()
        joined = live_group(self.table, "a", "b")
        self.group = WrittenGroup(joined, (output("out", 15),), 15, input_rows=(10, 5))
        self.other = WrittenGroup(live_group(self.table, "c"), (output("out-c", 10),), 10, "writer")
        self.table.disk |= {"out": 100, "out-c": 100}
        self.hider = RowHider(scala, log, shape, cast("Proofs", self.proofs), below)
        self.target = DeltaTarget(scala, log, shape, CommitOrigin("j-1", 1), self.hider)

    def delete(self, path: str, *rows: int) -> tuple[dict[str, Any], ...]:
        """Return the actions of others that delete rows of a file: its newest entry goes, and comes with a vector."""
        name, last = f"{path}{rows}", self.vector_of.get(path)
        self.table.vectors[name] = list(rows)
        self.vector_of[path] = vector(len(rows), name)
        gone = remove(path, **({"deletionVector": last} if last else {}))
        return gone, add(path, self.table.rows[path], deletionVector=self.vector_of[path])

    def carry(self, path: str, *rows: int, proof: Proof | None = None, by_column: bool = False) -> bool:
        """Have rows of a file hidden when it is read, and the group written with them; returns whether it may be."""
        self.table.commit(*self.delete(path, *rows))
        written = replace(self.group, live=live_group(self.table, "a", "b"), proof=proof, by_column=by_column)
        carried = self.hider.carried(written)
        self.group = carried or written
        return carried is not None

    def committed(self) -> list[LoggedFile]:
        attempt = self.target.begin((self.group, self.other))
        self.target.commit(attempt)
        return [output for group in attempt.committed for output in group.outputs]


def output(path: str, rows: int) -> LoggedFile:
    body = add(path, rows)["add"]
    return LoggedFile(decode_add(body, COLUMNS), encode(body))


def test_late_rows_are_hidden_in_the_output_and_the_newest_entries_are_removed() -> None:
    world = World()
    world.table.commit(*world.delete("a", 0, 9), *world.delete("b", 3))
    hidden, other = world.committed()
    assert world.table.vectors[json.loads(hidden.json)["deletionVector"]["pathOrInlineDv"]] == [0, 9, 13]
    assert (hidden.file.rows, hidden.file.deleted_rows, other.file.deleted_rows) == (15, 3, 0)
    assert json.loads(json.loads(hidden.json)["stats"]) == {"numRecords": 15, "tightBounds": False}
    removed = {body["path"]: body.get("deletionVector", {}) for body in world.table.bodies("remove", after=1)}
    assert {path: one.get("pathOrInlineDv") for path, one in removed.items()} == {
        "a": "a(0, 9)",
        "b": "b(3,)",
        "c": None,
    }
    assert world.proofs.asked == [([[0, 9], [3]], [0, 9, 13])]


def test_rows_that_were_hidden_at_the_read_are_hidden_in_each_attempt_with_those_since() -> None:
    world = World()
    assert world.carry("a", 4)
    assert (world.group.rows, world.group.carried) == (14, [[4], []])
    first, _ = world.target.begin((world.group, world.other)).committed
    assert (first.rows, [file.file.deleted_rows for file in first.outputs]) == (14, [1])
    world.table.commit(*world.delete("a", 4, 5), *world.delete("b", 0))
    hidden, _ = world.committed()
    assert world.table.vectors[json.loads(hidden.json)["deletionVector"]["pathOrInlineDv"]] == [4, 5, 10]
    assert world.proofs.asked == [([[4], []], [4]), ([[5], [0]], [5, 10])], "each row is compared once"


def masked() -> World:
    """A world in which others moved the rows of b, and which may hide its third of the output."""
    world = World(below=Fraction(1, 2))
    world.table.commit(remove("b"), add("moved", 5), *world.delete("a", 2))
    return world


def test_an_input_that_others_removed_is_hidden_as_a_whole() -> None:
    world = masked()
    hidden, _ = world.committed()
    assert world.table.vectors[json.loads(hidden.json)["deletionVector"]["pathOrInlineDv"]] == [2, *range(10, 15)]
    assert {body["path"] for body in world.table.bodies("remove", after=1)} == {"a", "c"}, "b is gone"


def test_a_commit_beside_a_removed_input_is_found() -> None:
    world = masked()
    attempt = world.target.begin((world.group, world.other))
    assert world.target.find(attempt) is None
    version = world.target.commit(attempt)
    assert world.target.find(attempt) == version


def test_an_input_that_was_removed_and_is_there_again_is_not_mapped() -> None:
    world = masked()
    world.table.commit(add("b", 5))
    assert world.target.begin((world.group,)).groups == ()


def test_what_carries_hidden_rows_is_never_committed_without_its_vector() -> None:
    world = World()
    world.carry("a", 4)
    world.target = DeltaTarget(FakeScala(world.table), world.table.log(), world.shape, CommitOrigin("j-1", 1))
    assert world.target.begin((world.group, world.other)).groups == (world.other,)


BY_BYTES = Proof(Reading.BYTES)


@pytest.mark.parametrize(
    ("proof", "by_column", "asked"), [(BY_BYTES, False, 0), (BY_BYTES, True, 1), (Proof(Reading.ROWS), False, 1)]
)
def test_carried_rows_are_compared_unless_all_bytes_were(proof: Proof, by_column: bool, asked: int) -> None:
    world = World()
    assert world.carry("b", 0, proof=proof, by_column=by_column)
    assert len(world.proofs.asked) == asked


def test_carried_rows_that_no_reader_compares_are_left_out() -> None:
    world = World()
    world.proofs.is_same = False
    assert not world.carry("a", 4)


def test_a_vector_that_hides_rows_beyond_its_file_is_not_carried() -> None:
    assert not World().carry("a", 10)


def test_a_group_whose_hidden_rows_come_back_is_set_aside() -> None:
    for again in ([remove("a", deletionVector=vector(2, "a(4, 5)")), add("a")], None):
        world = World()
        world.carry("a", 4, 5)
        world.table.commit(*(again or world.delete("a", 5, 6)))
        assert world.target.begin((world.group,)).groups == ()


@pytest.mark.parametrize(
    ("rows", "mode", "below", "may"),
    [
        ((1, 2), RewriteMode.MINOR, Fraction(1, 5), True),
        ((1, 2), RewriteMode.MAJOR, Fraction(1, 5), True),
        ((1, 2, 3), RewriteMode.MINOR, Fraction(1, 5), False),
        ((1, 2), RewriteMode.MINOR, None, False),
        ((1, 2), RewriteMode.FULL, Fraction(1, 5), False),
        ((1, 2), RewriteMode.PURGE, Fraction(1, 5), False),
        ((1, 2), RewriteMode.IDLE, Fraction(1, 5), False),
        ((), RewriteMode.MINOR, Fraction(1, 5), False),
    ],
)
def test_few_hidden_rows_may_stay_where_no_request_removes_them(
    rows: tuple[int, ...], mode: RewriteMode, below: Fraction | None, may: bool
) -> None:
    world = World()
    world.table.commit(*world.delete("a", *rows))
    hider = RowHider(FakeScala(world.table), world.table.log(), world.shape, cast("Proofs", world.proofs), below)
    live = live_group(world.table, "a", "b")
    assert hider.may_carry(replace(live, group=replace(live.group, mode=mode))) is may


def test_of_many_late_rows_a_sample_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actor.rewrite.late_rows.ROWS_COMPARED", 4)
    world = World()
    world.table.commit(*world.delete("a", *range(8)))
    world.committed()
    ((chosen, _),) = world.proofs.asked
    assert [len(one) for one in chosen] == [2, 0]


@pytest.mark.parametrize(("once_from", "asked"), [(200, 2), (201, 2)])
def test_rows_are_compared_again_only_where_that_is_quick(
    monkeypatch: pytest.MonkeyPatch, once_from: int, asked: int
) -> None:
    """Of a large group, drawn rows are compared besides."""
    monkeypatch.setattr("actor.rewrite.late_rows.ONCE_FROM_BYTES", once_from)
    world = World()
    world.table.commit(*world.delete("a", 1))
    world.target.begin((world.group,))
    world.table.commit(*world.delete("a", 1, 2))
    attempt = world.target.begin((world.group,))
    assert len(world.proofs.asked) == asked
    assert attempt.base.readVersion() == 2
    assert [one.rows for one in attempt.committed] == [13]
    assert attempt.groups == (world.group,), "the next attempt begins with what was written"
    second, _ = world.proofs.asked[1]
    assert (second == [[1, 2], []]) is (once_from > 200)
    assert all(len(one) <= rows // 2 for one, rows in zip(second, (10, 5), strict=True))


def test_an_attempt_is_opened_after_the_rows_were_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actor.rewrite.late_rows.MAX_COMPARISONS", 2)
    world = World()
    world.table.commit(*world.delete("a", 1))
    world.proofs.meanwhile = [lambda: world.table.commit(*world.delete("a", 1, 2))]
    assert world.committed()[0].file.deleted_rows == 2
    world = World()
    world.table.commit(*world.delete("a", 1))
    world.proofs.meanwhile = [lambda n=n: world.table.commit(*world.delete("a", *range(n))) for n in (2, 3, 4)]
    assert world.target.begin((world.group, world.other)).groups == (world.other,)


def test_what_no_reader_compares_is_not_hidden() -> None:
    world = World()
    world.proofs.is_same = False
    world.table.commit(*world.delete("a", 1))
    assert world.target.begin((world.group, world.other)).groups == (world.other,)
    assert len(world.proofs.asked) == 1, "once is enough"


@pytest.mark.parametrize(
    ("configuration", "protocol"),
    [
        ({}, None),
        ({"delta.enableDeletionVectors": "false"}, None),
        (ON, {"minReaderVersion": 1, "minWriterVersion": 2}),
        (ON | {"delta.enableIcebergCompatV2": "true"}, None),
        (ON, PROTOCOL | {"writerFeatures": ["deletionVectors", "rowTracking"]}),
    ],
)
def test_a_table_that_does_not_allow_it_gets_no_vector(
    configuration: dict[str, str], protocol: dict[str, Any] | None
) -> None:
    world = World(configuration, protocol)
    world.table.commit(*world.delete("a", 1))
    assert world.target.begin((world.group, world.other)).groups == (world.other,)


def test_what_may_not_be_mapped_is_set_aside() -> None:
    named = vector(1, "n")
    for change in (
        [remove("a")],
        [remove("a"), add("a", tags={"x": "y"})],
        [remove("a"), add("a", size=7)],
        [remove("/x")],
        [remove("a", deletionVector=named), add("a", deletionVector=named)],  # The entry without a vector is live, too.
        [remove("a"), add("a", deletionVector=named), add("a", deletionVector=vector(2, "m"))],
    ):
        world = World()
        world.table.commit(*world.delete("b", 1), *change)
        assert world.target.begin((world.group,)).groups == (), change


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param((10,), id="a row beyond the file"),
        pytest.param((), id="no row, though the entry is new"),
        pytest.param(tuple(range(10)), id="more than may be"),
    ],
)
def test_vectors_that_hide_what_cannot_be_are_set_aside(monkeypatch: pytest.MonkeyPatch, rows: tuple[int, ...]) -> None:
    monkeypatch.setattr("actor.formats.delta.late_rows.MOST_ROWS", 9)
    world = World()
    world.table.commit(*world.delete("a", *rows))
    assert world.target.begin((world.group,)).groups == ()


def test_an_output_without_a_visible_row_is_not_committed() -> None:
    world = World()
    world.table.commit(*world.delete("a", *range(10)), *world.delete("b", *range(5)))
    assert world.target.begin((world.group,)).groups == ()


def test_a_commit_that_was_undone_since_the_read_says_nothing_of_the_inputs() -> None:
    world = World()
    world.table.commit(*world.delete("a", 1))
    world.table.vanished = {0}
    assert world.target.begin((world.group,)).groups == ()


@pytest.mark.parametrize("commits", [3, 4])
def test_beyond_so_many_commits_nothing_is_mapped(monkeypatch: pytest.MonkeyPatch, commits: int) -> None:
    monkeypatch.setattr("actor.formats.delta.live_files.MAX_COMMITS_REPLAYED", 3)
    world = World()
    world.table.commit(*world.delete("a", 1))
    for number in range(commits - 1):
        world.table.commit(add(f"n{number}"))
    assert world.target.begin((world.group,)).groups == ((world.group,) if commits == 3 else ())


def test_a_group_that_does_not_hold_all_rows_of_its_inputs_one_after_the_other_is_set_aside() -> None:
    for change in (
        {"input_rows": ()},
        {"input_rows": (10, 4)},
        {"rows": 14},
        {"outputs": (output("x", 5), output("y", 10))},
    ):
        world = World()
        world.group = replace(world.group, **change)  # type: ignore[arg-type]
        world.table.commit(*world.delete("a", 1))
        assert world.target.begin((world.group,)).groups == (), change


def test_inputs_whose_vectors_were_applied_when_they_were_read_are_set_aside() -> None:
    world = World()
    world.table.commit(*world.delete("a", 4))
    world.group = replace(world.group, live=live_group(world.table, "a", "b"))
    world.table.commit(*world.delete("a", 4, 5))
    assert world.target.begin((world.group,)).groups == ()
