"""What a rewrite opens a Delta table with: the right table, a session of its own, and what was read before."""

import json
from collections.abc import Callable

import pytest

from actor.formats.delta.caches import DeltaCaches
from actor.formats.delta.read import read_partition
from actor.formats.delta.read_cache import ReadCache
from actor.formats.delta.rewriting import DeltaFiles, DeltaRewriter, DeltaRewriteSettings
from actor.ports import GroupStatus, RewriteOutcome, RewriteRequest
from actor.rewrite.run import FILES_WRITTEN, RewriteSettings
from actor.worker import RunControl
from shared.errors import Corrupt, InvalidInput, LeaseLost, OtherTable, RetryableError, Unsupported
from tests.support.fake_copies import UNREADING
from tests.support.fake_delta import LOCATION, FakeScala, FakeSessions, FakeTable, group_of, live_group
from tests.support.fake_delta_table import NAME_PREFIX, PROTOCOL, add, remove
from tests.support.java_errors import JavaError

MARK = json.dumps({"lakewright": {"job": "j-1", "token": 7}})
LANDED, STALE, SKIPPED = GroupStatus.COMMITTED, GroupStatus.CONFLICTED, GroupStatus.SKIPPED


class World:
    """A table of six files in three planned groups, and a rewriter with one thread."""

    def __init__(self) -> None:
        self.table = FakeTable()
        self.table.commit(*map(add, "abcdefx"))
        self.memory = ReadCache()
        self.groups = tuple(group_of(self.table, *pair) for pair in ("ab", "cd", "ef"))
        self.at: dict[str, Callable[[], object]] = {}
        self.rewriter = DeltaRewriter(
            FakeScala(self.table),
            FakeSessions(self.table),
            DeltaCaches(reads=self.memory),
            DeltaRewriteSettings(RewriteSettings(write_threads=1)),
            UNREADING,
        )

    def rewrite(self, mark: str = MARK, table_uuid: str = "") -> RewriteOutcome:
        control = RunControl(lambda: None, lambda: False, lambda point: self.at.get(point, lambda: None)() and None)
        return self.rewriter.rewrite(RewriteRequest(LOCATION, self.groups, mark, table_uuid), control)


@pytest.fixture
def world() -> World:
    return World()


def ends(outcome: RewriteOutcome) -> list[GroupStatus]:
    return [group.status for group in outcome.groups]


def test_rows_that_differ_in_one_group_stop_all_of_them(world: World) -> None:
    world.table.rows["c"] = 9
    with pytest.raises(Corrupt):
        world.rewrite()
    assert world.table.version == 0
    assert sorted(world.table.deleted) == ["out-0", "out-1"]


@pytest.mark.parametrize("text", ["Connection reset", "No space left on device"])
def test_a_write_that_failed_leaves_no_part_of_a_file(world: World, text: str) -> None:
    """By the prefix of the attempt; on a full disk, what is written lands."""
    world.table.fails_writing = {"c": JavaError("SparkException", message=text)}
    if text.startswith("No space"):
        outcome = world.rewrite()
        assert ends(outcome) == [LANDED, GroupStatus.FAILED, SKIPPED]
        assert {file.path for group in outcome.groups for file in group.outputs} == set(world.table.disk)
    else:
        with pytest.raises(RetryableError, match=text):
            world.rewrite()
        assert world.table.disk == {}


def test_what_is_remembered_spares_the_listing(world: World) -> None:
    read_partition(world.table.log(), world.groups[0].partition, world.memory)
    world.table.commit(add("more"))
    world.table.listings = 0
    assert ends(world.rewrite()) == [LANDED] * 3
    assert world.table.listings == 0


def test_a_request_without_job_and_token_is_refused_before_anything_is_written(world: World) -> None:
    with pytest.raises(InvalidInput, match="names no job"):
        world.rewrite("{}")
    assert world.table.counts == 0


def test_a_table_that_became_unsafe_is_refused_before_anything_is_written(world: World) -> None:
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": ["clustering"]}
    world.table.commit({"protocol": PROTOCOL | features})
    with pytest.raises(Unsupported, match="clustering"):
        world.rewrite()
    assert world.table.counts == 0


def test_another_table_at_the_same_place_is_not_touched(world: World) -> None:
    with pytest.raises(OtherTable, match="created again"):
        world.rewrite(table_uuid="t-2")
    assert world.table.counts == 0
    assert ends(world.rewrite(table_uuid="t-1")) == [LANDED] * 3


@pytest.mark.parametrize("fails", [False, True])
def test_the_session_is_given_back_without_the_attempts_prefix(world: World, fails: bool) -> None:
    seen: list[dict[str, str]] = []

    def look() -> None:
        seen.append(dict(world.table.conf))
        if fails:
            raise LeaseLost("the job is with another actor")

    world.at[FILES_WRITTEN] = look
    if fails:
        with pytest.raises(LeaseLost):
            world.rewrite()
    else:
        world.rewrite()
    assert [list(conf) for conf in seen] == [[NAME_PREFIX]]
    assert world.table.conf == {}


def test_a_group_is_live_until_others_touch_one_of_its_files(world: World) -> None:
    log = world.table.log()
    snapshot = log.snapshot()
    files = DeltaFiles(log, snapshot, log.shape(snapshot), world.memory)
    live = live_group(world.table, "a", "b")
    assert files.is_live(live)
    world.table.commit(remove("b"))
    assert not files.is_live(live)
