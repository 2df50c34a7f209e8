"""When an actor runs a clustered table's OPTIMIZE, and what it checks; that OPTIMIZE clusters is tested with Spark."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actor.formats.delta.cluster_job import ClusterJob
from actor.ports import TableJob, TableJobOutcome
from shared.cluster_options import ClusterOptions
from shared.errors import Corrupt, OtherTable, RetryableError, Unsupported
from shared.job_payload import CLUSTER
from shared.layout.partition_stats import CUBE_TAG
from shared.policy import MIB, Policy
from shared.properties import policy_digest
from shared.table import CommitOrigin
from tests.support.fake_delta import FakeScala, FakeSession, FakeSessions, FakeTable
from tests.support.fake_delta_table import METADATA, add, remove
from tests.support.local_vacuum import Control

CLUSTERED = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["clustering", "domainMetadata"]}
POLICY = Policy(cluster=True, is_clustered=True, target_bytes=1 << 20)
CUBE = {CUBE_TAG: "c"}


class World:
    """A clustered table in memory; OPTIMIZE commits what `clusters` gives it, unless that is nothing."""

    def __init__(self, protocol: Mapping[str, Any] = CLUSTERED) -> None:
        self.table = FakeTable()
        self.statements: list[str] = []
        self.conf: dict[str, str] = {}
        self.columns = ["id"]
        self.lost_rows = 0
        self.fails: Exception | None = None
        self.checked: list[str] = []
        self.control = Control()
        self.reserved_bytes = 0
        self.table.commit({"protocol": protocol}, {"metaData": METADATA})

    def optimize(self) -> None:
        live = self.table.at(self.table.version).allFiles().bodies
        if all("tags" in body for body in live):
            return
        rows = sum(self.table.rows[body["path"]] for body in live) - self.lost_rows
        mark = {"commitInfo": {"operation": "OPTIMIZE", "userMetadata": self.table.user_metadata}}
        gone = [remove(body["path"], size=body["size"]) for body in live]
        self.table.commit(mark, *gone, add(f"cube-{self.table.version}", rows, tags=CUBE))

    def run(self, *, force: bool = False, **more: Any) -> TableJobOutcome:
        world = self

        class Session(FakeSession):
            def sql(self, statement: str) -> Any:
                world.statements.append(statement)
                if statement.startswith("DESCRIBE"):
                    found = SimpleNamespace(collect=lambda: [[world.columns]])
                    return SimpleNamespace(select=lambda _name: found)
                world.optimize()
                if world.fails is not None:
                    raise world.fails
                return SimpleNamespace(collect=list)

        class Sessions(FakeSessions):
            @contextmanager
            def lease(
                self,
                *,
                tag: str,
                more_tags: Iterable[str] = (),
                user_metadata: str = "",
                conf: Mapping[str, str] | None = None,
            ) -> Iterator[str]:
                world.conf = dict(conf or {})
                with super().lease(tag=tag, more_tags=more_tags, user_metadata=user_metadata) as owned:
                    yield owned

            @contextmanager
            def bound(self, _owned: str) -> Iterator[FakeSession]:
                yield Session(world.table)

        boundary = SimpleNamespace(
            check_files=lambda _place, files: world.checked.extend(file.path for file in files),
            check_links=lambda _place, paths: world.checked.extend(paths),
        )
        options = ClusterOptions(force=force).encode()
        job = TableJob(CLUSTER, "file:///lake/t", POLICY, CommitOrigin("j", 1), options=options, **more)
        scala, sessions = cast("Any", FakeScala(self.table)), cast("Any", Sessions(self.table))
        return ClusterJob(scala, sessions, cast("Any", boundary), job, self.control, self.reserved_bytes).run()

    @property
    def has_run(self) -> bool:
        return any(statement.startswith("OPTIMIZE") for statement in self.statements)


@pytest.fixture
def world() -> World:
    return World()


def test_a_due_run_optimizes_once_and_reports_its_commit(world: World) -> None:
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    done = world.run()
    assert world.statements[-1] == "OPTIMIZE delta.`file:///lake/t`"
    assert (done.commits, done.version, done.reason) == ((2,), 1, "")
    assert (done.figures["files_replaced"], done.figures["files_written"]) == (8, 1)
    assert done.figures["bytes_replaced"] > 0
    assert world.conf == {"spark.databricks.delta.optimize.maxFileSize": str(1 << 20)}
    assert world.control.changes == 1
    assert {f"f{n}" for n in range(8)} <= {*world.checked}


def test_the_rule_is_asked_again_on_the_live_files_unless_a_person_forces_the_run(world: World) -> None:
    world.table.commit(add("cube", tags=CUBE), *(add(f"f{n}") for n in range(7)))
    done = world.run()
    assert (done.commits, done.reason) == ((), "clustering is not due: few_unclustered_files")
    assert not world.has_run
    assert world.run(force=True).commits == (2,)
    nothing = world.run(force=True)
    assert (nothing.commits, nothing.reason) == ((), "clustering is not due: nothing_unclustered")


@pytest.mark.parametrize("force", [False, True])
def test_a_table_without_clustering_is_never_optimized(*, force: bool) -> None:
    plain, without_columns = World({"minReaderVersion": 1, "minWriterVersion": 2}), World()
    without_columns.columns = []
    for world in (plain, without_columns):
        world.table.commit(*(add(f"f{n}") for n in range(8)))
        with pytest.raises(Unsupported, match="CLUSTER BY"):
            world.run(force=force)
        assert not world.has_run


def test_a_table_that_changed_since_the_decision_is_left_alone(world: World) -> None:
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    assert "changed since the decision" in world.run(policy_digest=policy_digest({"lakewright.fan-in": "4"})).reason
    with pytest.raises(OtherTable):
        world.run(table_uuid="another")
    off = METADATA | {"configuration": {"lakewright.enabled": "false"}}
    world.table.commit({"metaData": off})
    assert "switch it off" in world.run().reason
    assert not world.has_run
    assert world.run(even_if_disabled=True).commits


def test_nothing_is_optimized_without_the_lease_or_where_a_file_must_not_be_read(world: World) -> None:
    world.table.commit(*(add(f"f{n}") for n in range(8)))

    def lost(_change: int) -> None:
        raise RetryableError("the lease was lost")

    world.control.before_change = lost
    with pytest.raises(RetryableError, match="lease"):
        world.run()
    assert not world.has_run


def test_rows_that_the_commit_lost_are_an_error_that_names_the_version_to_restore(world: World) -> None:
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    world.lost_rows = 1
    with pytest.raises(Corrupt, match="TO VERSION AS OF 1"):
        world.run()


def test_a_commit_whose_answer_was_lost_is_found_and_one_that_was_not_made_is_not_claimed(world: World) -> None:
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    world.fails = RuntimeError("connection lost")
    assert world.run().commits == (2,)
    world.table.commit(*(add(f"g{n}") for n in range(8)))
    optimize: Callable[[], None] = lambda: None  # noqa: E731 - the statement that does nothing
    world.optimize = optimize  # type: ignore[method-assign]
    with pytest.raises(RetryableError, match="does not show job j"):
        world.run()
    world.fails = None
    assert world.run().reason == "OPTIMIZE found nothing to cluster"


def test_what_others_commit_between_the_count_and_the_statement_counts_as_rows_too(world: World) -> None:
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    world.control.before_change = lambda _change: world.table.commit(add("late", 7)) and None
    assert world.run().figures["files_replaced"] == 9


@pytest.mark.parametrize(("free", "is_run"), [(None, True), (100 * MIB + 1000, True), (100 * MIB + 999, False)])
def test_a_disk_without_room_for_the_outputs_and_the_actors_reserve_is_not_written_to(
    world: World, free: int | None, is_run: bool
) -> None:
    """Eight files of 100 bytes may take 1000."""
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    world.table.free, world.reserved_bytes = free, 100 * MIB
    if is_run:
        assert world.run().commits == (2,)
    else:
        with pytest.raises(RetryableError, match="nothing was written"):
            world.run()
    assert world.has_run is is_run
