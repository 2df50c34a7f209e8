"""An actor rewrites a table where its name leads at that moment, and nowhere else."""

from dataclasses import replace
from typing import Any

import pytest

from actor.formats.delta.named_tables import NamedTables
from actor.ports import RewriteRequest, TableJob
from shared.errors import InvalidInput, NoTable, OtherTable, RetryableError, Unsupported
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support.memory_engine import MemoryEngine
from tests.support.unity_server import UnityServer

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
