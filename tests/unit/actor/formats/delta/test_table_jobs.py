"""Jobs on a whole Delta table: what they get of settings, names of catalogs, and properties that are set."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actor.formats.delta.caches import DeltaCaches
from actor.formats.delta.named_tables import NamedTables
from actor.formats.delta.properties_job import PropertiesJob
from actor.formats.delta.table_jobs import TableJobLimits, TableJobs
from actor.ports import RewriteRequest, TableJob, TableJobOutcome
from actor.vacuum.steps import VacuumLimits
from shared.errors import Conflict, InvalidInput, LeaseLost, NoTable, OtherTable, RetryableError, Unsupported
from shared.jobs.options import ALREADY_SET, PropertyOptions
from shared.jobs.payload import CLUSTER, DEDUPLICATE, INDEX, SET_PROPERTIES
from shared.layout.commit_metadata import decode
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import ClusterMode, Policy
from shared.policy.properties import policy_digest
from shared.table import CommitOrigin
from tests.support.fake_delta import FakeScala, FakeSession, FakeSessions, FakeTable
from tests.support.fake_delta_table import METADATA
from tests.support.java_errors import JavaError
from tests.support.local_vacuum import Control
from tests.support.memory_engine import MemoryEngine
from tests.support.unity_server import UnityServer


def job_of(kind: str, policy: Policy = Policy()) -> TableJob:  # noqa: B008 - frozen
    return TableJob(kind, "file:///t", policy, CommitOrigin("j", 1))


@pytest.fixture
def jobs() -> TableJobs:
    table = FakeTable()
    scala, sessions = cast("Any", FakeScala(table)), cast("Any", FakeSessions(table))
    limits, given = TableJobLimits(VacuumLimits(), reserved_disk_bytes=11), cast("Any", None)
    return TableJobs(scala, sessions, given, limits, given, DeltaCaches())


@pytest.mark.parametrize(("kind", "runner"), [(CLUSTER, "StatementJob"), (DEDUPLICATE, "Deduplication")])
def test_a_job_that_writes_files_leaves_as_much_space_free_as_the_actor_is_set_to(
    monkeypatch: pytest.MonkeyPatch, jobs: TableJobs, kind: str, runner: str
) -> None:
    seen: list[object] = []

    def made(*parts: object) -> Any:
        seen.append(parts[-1])
        return SimpleNamespace(run=lambda: None)

    monkeypatch.setattr(f"actor.formats.delta.table_jobs.{runner}", made)
    jobs.run(job_of(kind), Control())
    assert seen == [11]


@pytest.mark.parametrize(
    ("job", "runner"), [(job_of(CLUSTER, Policy(cluster=ClusterMode.CELLS)), "CellJob"), (job_of(INDEX), "IndexJob")]
)
def test_so_does_one_that_rewrites_in_rounds(
    monkeypatch: pytest.MonkeyPatch, jobs: TableJobs, job: TableJob, runner: str
) -> None:
    seen: list[Any] = []

    def made(table: Any, *_: object) -> Any:
        seen.append(getattr(table, "table", table))
        return SimpleNamespace(run=lambda: None)

    monkeypatch.setattr(f"actor.formats.delta.table_jobs.{runner}", made)
    jobs.run(job, Control())
    assert [table.reserved_disk_bytes for table in seen] == [11]


def test_a_kind_that_only_another_release_knows_is_tried_again_elsewhere(jobs: TableJobs) -> None:
    with pytest.raises(RetryableError, match="upgrade the actors"):
        jobs.run(job_of("weave"), Control())


VALUES = {"lakewright.fan-in": "4", "lakewright.tolerance": "0.1"}


class World:
    """A table in memory; the statement commits these properties, then fails if it is to."""

    def __init__(self, configuration: Mapping[str, str] | None = None) -> None:
        self.table = FakeTable()
        self.statements: list[str] = []
        self.fails: Exception | None = None
        self.commits = True
        self.control = Control()
        protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
        self.table.commit({"protocol": protocol}, {"metaData": METADATA | {"configuration": dict(configuration or {})}})

    def run(self, **more: Any) -> TableJobOutcome:
        world = self

        class Session(FakeSession):
            def sql(self, statement: str) -> Any:
                world.statements.append(statement)
                if world.commits:
                    mark = {"commitInfo": {"operation": "ALTER", "userMetadata": world.table.user_metadata}}
                    world.table.commit(mark, {"metaData": METADATA | {"configuration": VALUES}})
                if world.fails is not None:
                    raise world.fails
                return SimpleNamespace(collect=list)

        class Sessions(FakeSessions):
            @contextmanager
            def bound(self, _owned: str) -> Iterator[FakeSession]:
                yield Session(world.table)

        options = PropertyOptions(VALUES).encode()
        job = TableJob(SET_PROPERTIES, "file:///lake/t", Policy(), CommitOrigin("j", 1), options=options, **more)
        scala, sessions = cast("Any", FakeScala(self.table)), cast("Any", Sessions(self.table))
        return PropertiesJob(scala, sessions, job, self.control).run()


def test_one_statement_sets_what_the_table_does_not_have_and_its_commit_names_the_job() -> None:
    world = World({"lakewright.fan-in": "4"})
    done = world.run()
    assert world.statements == ["ALTER TABLE delta.`file:///lake/t` SET TBLPROPERTIES ('lakewright.tolerance' = '0.1')"]
    assert (done.version, done.commits, done.figures, done.reason) == (0, (1,), {"changed": 1}, "")
    mark = decode(world.table.user_metadata)
    assert mark is not None
    assert (mark.origin, mark.mode) == (CommitOrigin("j", 1), SET_PROPERTIES)
    assert world.control.changes == 1


def test_a_table_that_has_them_is_not_altered_even_if_they_changed_since_the_decision() -> None:
    """A run that died behind its statement comes again."""
    world = World(VALUES)
    done = world.run(policy_digest=policy_digest({}))
    assert (done.commits, done.figures, done.reason) == ((), {"changed": 0}, ALREADY_SET)
    assert (world.statements, world.control.changes) == ([], 0)


def test_a_table_whose_owner_changed_its_properties_since_is_left_alone() -> None:
    world = World({"lakewright.fan-in": "6"})
    done = world.run(policy_digest=policy_digest({}))
    assert "changed since the decision" in done.reason
    assert (done.figures, world.statements) == ({}, [])
    with pytest.raises(OtherTable):
        world.run(table_uuid="another")
    assert world.statements == []


def test_nothing_is_altered_without_the_lease() -> None:
    world = World()

    def lost(_change: int) -> None:
        raise LeaseLost("another actor has the job")

    world.control.before_change = lost
    with pytest.raises(LeaseLost):
        world.run()
    assert world.statements == []


def test_a_commit_whose_answer_was_lost_is_found_and_one_that_was_not_made_is_not_claimed() -> None:
    world = World()
    world.fails = RuntimeError("connection lost")
    assert world.run().commits == (1,)
    world = World()
    world.commits, world.fails = False, RuntimeError("connection lost")
    with pytest.raises(RetryableError, match=r"no commit of the ALTER TABLE \(RuntimeError: connection lost"):
        world.run()
    world.fails = None
    with pytest.raises(RetryableError, match=r"no commit of the ALTER TABLE$"):
        world.run()
    world.fails = JavaError("Py4JJavaError", "MetadataChangedException")
    with pytest.raises(Conflict, match="MetadataChangedException"):
        world.run()


PLACE = "catalog://unity/main/sales/orders"
JOB = TableJob("vacuum", PLACE, Policy(), CommitOrigin("job-1", 1))


class NotingEngine(MemoryEngine):
    """An engine that notes the locations that it gets."""

    table_kinds = ("vacuum",)

    def __init__(self) -> None:
        super().__init__([10, 20])
        self.locations: list[str] = []

    def read_partition(self, location: str, *arguments: Any, **options: Any) -> Any:
        self.locations.append(location)
        return super().read_partition(location, *arguments, **options)

    def rewrite(self, request: RewriteRequest, control: Any) -> Any:
        self.locations.append(request.location)

    def run_table_job(self, job: TableJob, control: Any) -> Any:
        self.locations.append(job.location)

    def find_commit(self, location: str, **options: Any) -> int | None:
        self.locations.append(location)
        return None


@pytest.fixture
def server() -> UnityServer:
    server = UnityServer()
    server.put("main.sales.orders", "file:///lake/orders")
    return server


@pytest.fixture
def inner() -> NotingEngine:
    return NotingEngine()


@pytest.fixture
def engine(inner: NotingEngine, server: UnityServer) -> NamedTables:
    return NamedTables(inner, {"unity": server.catalog("file:///lake")})


def call_all(engine: NamedTables, location: str) -> None:
    control: Any = None
    files = engine.read_partition(location, WHOLE_TABLE).files
    engine.rewrite(RewriteRequest(location, (FileGroup(WHOLE_TABLE, files, RewriteMode.FULL),), ""), control)
    engine.run_table_job(replace(JOB, location=location), control)
    assert engine.find_commit(location, job="job-1", token=1, since_version=0) is None


def test_every_call_goes_where_the_name_leads(engine: NamedTables, inner: NotingEngine) -> None:
    call_all(engine, PLACE)
    assert inner.locations == ["file:///lake/orders"] * 4


def test_each_call_looks_the_name_up_again(engine: NamedTables, inner: NotingEngine, server: UnityServer) -> None:
    engine.read_partition(PLACE, WHOLE_TABLE)
    server.put("main.sales.orders", "file:///lake/moved")
    engine.read_partition(PLACE, WHOLE_TABLE)
    assert inner.locations == ["file:///lake/orders", "file:///lake/moved"]


def test_a_table_known_by_its_location_is_left_to_the_engine(
    engine: NamedTables, inner: NotingEngine, server: UnityServer
) -> None:
    call_all(engine, "file:///lake/orders")
    assert inner.locations == ["file:///lake/orders"] * 4
    assert server.requests.total() == 0


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"storage_location": "file:///private/orders"}, Unsupported),
        ({"table_type": "VIEW"}, Unsupported),
        ({"properties": {"delta.feature.catalogManaged": "supported"}}, Unsupported),
    ],
)
def test_a_table_that_may_not_be_touched_never_reaches_the_engine(
    engine: NamedTables, inner: NotingEngine, server: UnityServer, change: dict[str, Any], error: type[Exception]
) -> None:
    server.tables["main.sales.orders"] |= change
    with pytest.raises(error):
        call_all(engine, PLACE)
    assert inner.locations == []


def test_a_table_that_is_gone_or_a_catalog_that_is_down_never_reaches_the_engine(
    engine: NamedTables, inner: NotingEngine, server: UnityServer
) -> None:
    server.fault = (503, b"")
    with pytest.raises(RetryableError):
        call_all(engine, PLACE)
    server.fault = None
    server.tables.clear()
    with pytest.raises(NoTable):
        call_all(engine, PLACE)
    assert inner.locations == []


def test_the_engine_compares_the_tables_own_id(engine: NamedTables) -> None:
    with pytest.raises(OtherTable):
        engine.read_partition(PLACE, WHOLE_TABLE, table_uuid="another")


def test_a_catalog_that_the_actor_does_not_have_is_named(engine: NamedTables) -> None:
    with pytest.raises(InvalidInput, match="'other'; add it to LAKEWRIGHT_CATALOGS"):
        engine.read_partition("catalog://other/main/sales/orders", WHOLE_TABLE)


def test_it_lives_and_dies_with_the_engine(engine: NamedTables, inner: NotingEngine) -> None:
    assert (engine.format, engine.table_kinds) == (inner.format, inner.table_kinds)
    assert engine.is_alive()
    inner.alive = False
    assert not engine.is_alive()
    assert engine.terminate() is inner.death
    engine.cancel("job-1")
    assert inner.cancelled.is_set()
