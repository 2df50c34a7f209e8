"""When an actor runs a clustered table's OPTIMIZE, and what it checks; that OPTIMIZE clusters is tested with Spark."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from actor.formats.delta.cluster_job import StatementJob
from actor.formats.delta.clustered_table import clustering_columns
from actor.formats.delta.columns import Column
from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.footers import Storage
from actor.ports import TableJob, TableJobOutcome
from actor.proofread.model import Proof, Reading, Rewritten
from shared.errors import Conflict, Corrupt, Difference, OtherTable, RefusedFiles, RetryableError, Unsupported
from shared.jobs.options import ClusterOptions
from shared.jobs.payload import CLUSTER
from shared.layout.partition_stats import CUBE_TAG
from shared.policy.policy import MIB, ClusterMode, Policy
from shared.policy.properties import policy_digest
from shared.table import CommitOrigin
from tests.support.fake_delta import FakeFooters, FakeScala, FakeSession, FakeSessions, FakeTable
from tests.support.fake_delta_table import METADATA, FakeChecksum, add, remove
from tests.support.local_vacuum import Control

CLUSTERED = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["clustering", "domainMetadata"]}
POLICY = Policy(cluster=ClusterMode.ON, target_bytes=1 << 20).with_traits(is_clustered=True)
CUBE = {CUBE_TAG: "c"}


class World:
    """A clustered table in memory; `optimize` is what OPTIMIZE would commit, nothing where all files are clustered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, protocol: Mapping[str, Any] = CLUSTERED) -> None:
        self.table = FakeTable()
        self.statements: list[str] = []
        self.conf: dict[str, str] = {}
        self.lost_rows = 0
        self.fails: Exception | None = None
        self.differs: Exception | None = None
        self.proof = Proof(Reading.ROWS, reader="duckdb")
        self.checked: list[str] = []
        self.compared: list[Rewritten] = []
        self.control = Control()
        self.reserved_bytes = 0
        self.table.commit({"protocol": protocol}, {"metaData": METADATA})
        self.cluster_by("id")
        monkeypatch.setattr("actor.formats.delta.cluster_job.Footers", FakeFooters)

    def cluster_by(self, *columns: str) -> None:
        text = json.dumps({"clusteringColumns": [[column] for column in columns]})
        self.table.domains = [{"domain": "delta.rowTracking", "configuration": "{}"}]
        self.table.domains += [{"domain": "delta.clustering", "configuration": text}]

    def optimize(self, _session: object, statement: str, stored: Any) -> list[Any]:
        self.statements.append(statement)
        if self.fails is not None:
            raise self.fails
        live = stored.allFiles().bodies
        if all("tags" in body for body in live):
            return []
        hidden = sum(body.get("deletionVector", {}).get("cardinality", 0) for body in live)
        rows = sum(self.table.rows[body["path"]] for body in live) - hidden - self.lost_rows
        output = add(f"cube-{self.table.version}", rows, tags=CUBE)
        self.table.disk[output["add"]["path"]] = output["add"]["size"]
        kept = [{name: body[name] for name in ("size", "deletionVector") if name in body} for body in live]
        actions = [output, *(remove(body["path"], **told) for body, told in zip(live, kept, strict=True))]
        return [SimpleNamespace(operation=lambda: "CLUSTER", offeredActions=lambda: json.dumps(actions))]

    def compare(self, group: Rewritten, *_: object, **__: object) -> Proof:
        self.compared.append(group)
        if self.differs is not None:
            raise self.differs
        return self.proof

    def run(self, *, force: bool = False, **more: Any) -> TableJobOutcome:
        class Sessions(FakeSessions):
            @contextmanager
            def bound(self, _owned: str) -> Iterator[FakeSession]:
                outer.conf = dict(outer.table.conf)
                yield FakeSession(outer.table)

        outer = self
        boundary = SimpleNamespace(
            check_files=lambda _place, files: self.checked.extend(file.path for file in files),
            check_links=lambda _place, paths: self.checked.extend(paths),
        )
        options = ClusterOptions(force=force).encode()
        job = TableJob(CLUSTER, "file:///lake/t", POLICY, CommitOrigin("j", 1), options=options, **more)
        scala = FakeScala(self.table)
        scala.staged_statement = SimpleNamespace(run=self.optimize)  # type: ignore[attr-defined]
        proofreader = SimpleNamespace(check=self.compare)
        spark = (scala, Sessions(self.table), boundary, proofreader)
        parts: tuple[Any, ...] = (*spark, job, self.control, self.reserved_bytes)
        return StatementJob(*parts).run()

    @property
    def has_run(self) -> bool:
        return bool(self.statements)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_due_run_optimizes_once_and_reports_its_commit(world: World) -> None:
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    done = world.run()
    assert world.statements[-1] == "OPTIMIZE delta.`file:///lake/t`"
    assert (done.commits, done.version, done.reason) == ((2,), 1, "")
    assert (done.figures["files_replaced"], done.figures["files_written"]) == (8, 1)
    assert done.figures["bytes_replaced"] > 0
    assert world.table.history[2][0]["commitInfo"]["operation"] == "CLUSTER"
    assert world.conf == {"spark.databricks.delta.optimize.maxFileSize": str(1 << 20)}
    assert world.control.changes == 2
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
def test_a_table_without_clustering_is_never_optimized(monkeypatch: pytest.MonkeyPatch, *, force: bool) -> None:
    plain = World(monkeypatch, {"minReaderVersion": 1, "minWriterVersion": 2})
    without_columns = World(monkeypatch)
    without_columns.cluster_by()
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


def test_outputs_of_fewer_rows_or_other_rows_are_deleted_and_not_committed(world: World) -> None:
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    world.lost_rows = 1
    with pytest.raises(Corrupt, match="80 rows in, 79 rows out"):
        world.run()
    world.lost_rows, world.differs = 0, Difference("rows differ")
    with pytest.raises(Difference):
        world.run()
    assert (world.table.version, world.table.deleted) == (1, ["cube-1", "cube-1"])
    (compared,) = world.compared
    assert [file.path.rpartition("/")[2] for file in compared.inputs] == [f"f{n}" for n in range(8)]


IN_A_FILE = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
VECTOR = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
TEXT_IN_BYTES, SMALL_UNSIGNED = Column(("p",), "BINARY", "bytes"), Column(("p",), "INT32", "uint", (32, 8))
UNREAD = Proof(Reading.NONE, unverified_because="switched off")


def test_other_values_are_committed_though_no_reader_of_texts_has_compared_them(world: World) -> None:
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    world.proof = UNREAD
    assert world.run().commits == (2,)


@pytest.mark.parametrize("stored", [TEXT_IN_BYTES, SMALL_UNSIGNED])
@pytest.mark.parametrize("proof", [UNREAD, Proof(Reading.ROWS, reader="pyarrow")])
def test_values_that_the_statement_may_change_are_committed_only_once_a_reader_of_texts_has_compared_them(
    world: World, stored: Column, proof: Proof
) -> None:
    """Bytes that are no UTF-8 become a text that no reader opens; rewrites of ours look for them in the rows."""
    kind = "string" if stored is TEXT_IN_BYTES else "byte"
    fields = {"type": "struct", "fields": [{"name": "p", "type": kind, "nullable": True, "metadata": {}}]}
    world.table.commit({"metaData": METADATA | {"schemaString": json.dumps(fields), "partitionColumns": []}})
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    world.table.storage = {path: Storage(((stored,),), {}) for path in (*(f"f{n}" for n in range(8)), "cube-2")}
    world.proof = proof
    with pytest.raises(RefusedFiles, match="p are stored as bytes") as refused:
        world.run()
    assert (refused.value.reason, refused.value.field) == ("types", "p")
    assert (world.table.version, world.table.deleted) == (2, ["cube-2"])
    world.proof = Proof(Reading.ROWS, reader="duckdb")
    assert world.run().commits == (3,)


def test_rows_of_files_with_vectors_may_be_counted_as_readers_see_them(world: World) -> None:
    """As Trino's ANALYZE does; what is read decides, and a lost row is one all the same."""
    world.table.rows |= {f"f{n}": 10 for n in range(8)}
    world.table.commit(*(add(f"f{n}", 7, deletionVector=IN_A_FILE | {"cardinality": 3}) for n in range(8)))
    world.lost_rows = 1
    with pytest.raises(Corrupt, match="55 rows"):
        world.run()
    world.lost_rows = 0
    assert world.run().commits == (2,)


def test_vectors_are_plain_files_and_no_path_is_live_twice_before_the_statement(world: World) -> None:
    """Who opens a pipe waits for ever; and a commit could remove such a path only once."""
    world.table.commit(*(add(f"f{n}", deletionVector=IN_A_FILE | {"cardinality": 1}) for n in range(8)))
    world.run()
    assert VECTOR in world.checked
    world.table.commit(*(add(f"g{n}") for n in range(8)), add("g3", deletionVector=IN_A_FILE | {"cardinality": 2}))
    statements = len(world.statements)
    with pytest.raises(RefusedFiles, match=r"g3 of .* is live 2 times") as refused:
        world.run()
    assert (refused.value.reason, len(world.statements)) == ("doubled", statements)


def test_files_of_another_size_than_the_log_says_are_refused_by_name(world: World) -> None:
    """Spark looks for the end of a file where the log says that it is, and names no file."""
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    world.table.disk |= {f"f{n}": 100 for n in range(8)} | {"f3": 99}
    world.fails = RuntimeError("EOFException: reached the end of the stream")
    with pytest.raises(RefusedFiles, match="f3 has 99 bytes, not 100") as refused:
        world.run()
    assert (refused.value.reason, refused.value.files) == ("damaged", ("f3",))


def test_what_no_rewrite_may_commit_is_not_committed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    offered = [add("cube"), {"metaData": METADATA}]
    staged = SimpleNamespace(operation=lambda: "CLUSTER", offeredActions=lambda: json.dumps(offered))
    monkeypatch.setattr(world, "optimize", lambda *_: [staged])
    with pytest.raises(Corrupt, match="metaData"):
        world.run()
    assert (world.table.version, world.table.deleted) == (1, ["cube"])


def test_a_lease_that_is_lost_while_files_are_written_forbids_the_commit(world: World) -> None:
    world.table.commit(*(add(f"f{n}") for n in range(8)))

    def lost(change: int) -> None:
        if change > 1:
            raise RetryableError("the lease was lost")

    world.control.before_change = lost
    with pytest.raises(RetryableError, match="lease"):
        world.run()
    assert (world.has_run, world.table.version, world.table.deleted) == (True, 1, ["cube-1"])


def test_a_statement_that_fails_commits_nothing_and_one_that_does_nothing_says_so(world: World) -> None:
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    world.fails = RuntimeError("no space")
    with pytest.raises(RuntimeError):
        world.run()
    world.fails = None
    nothing: Callable[..., list[Any]] = lambda *_: []  # noqa: E731 - the statement that does nothing
    world.optimize = nothing  # type: ignore[method-assign]
    assert world.run().reason == "OPTIMIZE found nothing to cluster"
    assert world.table.version == 1


@pytest.mark.parametrize("moment", [1, 2])
def test_files_that_others_take_meanwhile_stay_theirs(world: World, moment: int) -> None:
    """Before the statement has ended, and before its commit."""
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    optimize = world.optimize

    def taken(*given: Any) -> list[Any]:
        staged = optimize(*given)
        world.table.commit(remove("f3"))
        return staged

    if moment == 1:
        world.optimize = taken  # type: ignore[method-assign]
    else:
        world.control.before_change = lambda change: world.table.commit(remove("f3")) and None if change == 2 else None
    with pytest.raises(Conflict, match="while they were clustered"):
        world.run()
    assert "cube-1" not in world.table.live()
    assert world.table.deleted == ["cube-1"]


def test_what_others_append_meanwhile_is_kept(world: World) -> None:
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    world.control.before_change = lambda change: world.table.commit(add(f"late-{change}", 7)) and None
    assert world.run().figures["files_replaced"] == 8
    assert world.table.live() == {"cube-2", "late-1", "late-2"}


@pytest.mark.parametrize(("free", "is_run"), [(100 * MIB + 1000, True), (100 * MIB + 999, False)])
def test_a_disk_without_room_for_the_outputs_and_the_actors_reserve_is_not_written_to(
    world: World, room: dict[str, int], free: int, is_run: bool
) -> None:
    """Eight files of 100 bytes may take 1000."""
    world.table.commit(*(add(f"f{n}") for n in range(8)))
    room["free"], world.reserved_bytes = free, 100 * MIB
    if is_run:
        assert world.run().commits == (2,)
    else:
        with pytest.raises(RetryableError, match="nothing was written"):
            world.run()
    assert world.has_run is is_run


SCALA = cast("DeltaScala", SimpleNamespace(to_json=json.dumps))
OTHER = {"domain": "delta.rowTracking", "configuration": "{}"}


def domain(*columns: str, **more: Any) -> dict[str, Any]:
    text = json.dumps({"clusteringColumns": [[column] for column in columns]})
    return {"domain": "delta.clustering", "configuration": text, **more}


def columns(in_checksum: list[dict[str, Any]] | None, in_state: list[dict[str, Any]] | None = None) -> Any:
    checksum = FakeChecksum(1, 1, None, None, in_checksum)
    has_checksum = in_checksum is not None or in_state is None
    snapshot = SimpleNamespace(
        checksumOpt=lambda: SimpleNamespace(isDefined=lambda: has_checksum, get=lambda: checksum),
        domainMetadata=lambda: pytest.fail("a Spark job") if in_state is None else in_state,
    )
    return clustering_columns(SCALA, snapshot, "file:///t")


def test_a_checksum_names_the_clustering_columns() -> None:
    assert columns([OTHER, domain("a", "b")]) == (("a",), ("b",))


def test_without_a_checksum_the_state_names_them() -> None:
    assert columns(None, [OTHER, domain("a")]) == (("a",),)


@pytest.mark.parametrize("domains", [[], [OTHER], [domain()], [domain("a", removed=True)]])
def test_a_table_without_clustering_columns_is_not_touched(domains: list[dict[str, Any]]) -> None:
    with pytest.raises(Unsupported, match="CLUSTER BY NONE"):
        columns(domains)
