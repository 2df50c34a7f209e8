"""Tables that a rewrite could damage are refused with a reason that names the culprit, before anything is done."""

import pytest

from actor.formats.delta.preflight import check_files, check_location, check_table
from actor.ports import RewriteRequest
from shared.errors import Unsupported
from shared.formats.delta import ALLOWED_VERSIONS
from shared.jobs.payload import CLUSTER, SORT
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import DataFile, TableMetadata, TableProtocol
from tests.support import delta_tables as tables
from tests.support.delta_lab import DeltaLab, mark
from tests.support.steering import Steering

PLAIN = TableMetadata("u")
CLUSTERED = TableProtocol(3, 7, frozenset({"clustering"}), frozenset({"clustering"}))


def test_a_table_is_refused_by_the_deciders_rule_but_for_kinds_of_jobs_that_it_allows() -> None:
    check_table("file:///t", PLAIN, TableProtocol(1, 2))
    with pytest.raises(Unsupported, match=r"^file:///t: .*clustering") as caught:
        check_table("file:///t", PLAIN, CLUSTERED)
    assert (caught.value.field, caught.value.allowed) == ("clustering", "")
    check_table("file:///t", PLAIN, CLUSTERED, kind=CLUSTER)
    with pytest.raises(Unsupported, match="clustering"):
        check_table("file:///t", PLAIN, CLUSTERED, kind=SORT)
    with pytest.raises(Unsupported, match="reader 4, writer 7") as caught:
        check_table("file:///t", PLAIN, TableProtocol(4, 7))
    assert caught.value.allowed == ALLOWED_VERSIONS


def test_files_of_a_z_cube_are_refused() -> None:
    plain, cube = DataFile("a", 1, WHOLE_TABLE), DataFile("b", 1, WHOLE_TABLE, tags={"ZCUBE_ID": "1"})
    check_files("file:///t", [plain])

    with pytest.raises(Unsupported, match=r"Z-cube \(b\)"):
        check_files("file:///t", [plain, cube])


@pytest.mark.parametrize("location", ["s3://bucket/t", "s3a://bucket/t", "s3n://bucket/t"])
def test_s3_needs_an_explicit_opt_in(location: str) -> None:
    check_location(location, allow_s3=True)
    with pytest.raises(Unsupported, match="single driver"):
        check_location(location, allow_s3=False)


@pytest.mark.parametrize("location", ["file:///t", "/t", "abfss://c@a.dfs.core.windows.net/t", "gs://b/t", "hdfs:///t"])
def test_other_stores_are_let_through(location: str) -> None:
    check_location(location, allow_s3=False)


@pytest.mark.spark
def test_the_engine_refuses_clustered_tables_when_reading_and_when_rewriting(lab: DeltaLab) -> None:
    location = f"file://{lab.directory}/t"
    lab.sql(f"CREATE TABLE delta.`{location}` (id BIGINT) USING DELTA CLUSTER BY (id)")
    group = FileGroup(WHOLE_TABLE, (DataFile("a", 1, WHOLE_TABLE),), RewriteMode.MINOR)

    with pytest.raises(Unsupported, match="clustering"):
        lab.engine.read_partition(location, WHOLE_TABLE)
    with pytest.raises(Unsupported, match="clustering"):
        lab.engine.rewrite(RewriteRequest(location, (group,), mark("j", 1)), Steering())


@pytest.mark.spark
def test_the_engine_refuses_files_of_a_z_cube_but_not_the_partitions_beside_them(lab: DeltaLab) -> None:
    table = tables.HandTable(lab.directory / "t", partitions={"dt": "date"})
    table.append(1, values={"dt": tables.DAY_1}, tags={"ZCUBE_ID": "1"})
    table.append(2, values={"dt": tables.DAY_2})

    assert len(lab.files(table.location, lab.partition(dt=tables.DAY_2))) == 2
    with pytest.raises(Unsupported, match="Z-cube"):
        lab.files(table.location, lab.partition(dt=tables.DAY_1))


@pytest.mark.spark
def test_a_protocol_that_delta_itself_does_not_know_is_refused_not_retried(lab: DeltaLab) -> None:
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["fromTheFuture"]}
    table = tables.HandTable(lab.directory / "t", protocol=protocol | {"writerFeatures": ["fromTheFuture"]})

    with pytest.raises(Unsupported, match="fromTheFuture"):
        lab.engine.read_partition(table.location, WHOLE_TABLE)


@pytest.mark.spark
def test_the_engine_refuses_s3_without_touching_the_network(lab: DeltaLab) -> None:
    with pytest.raises(Unsupported, match="S3"):
        lab.engine.read_partition("s3a://bucket/t", WHOLE_TABLE)
