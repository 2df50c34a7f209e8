"""What is asked before a job of a table begins: its log store, the permission to commit, and the self-test."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from actor.formats.delta import self_test as module
from actor.formats.delta.preflight import check_location, check_table
from actor.formats.delta.table_jobs import CheckedStore
from actor.formats.delta.table_store import TableStore
from actor.ports import TableEngine
from actor.rewrite.job_permission import JobPermission
from shared.errors import LakewrightError, Unsupported
from shared.jobs.payload import CHECKPOINT, CLUSTER, COMPACT, DEDUPLICATE, EXPIRE, SORT, VACUUM
from shared.paths.boundary import Boundary
from shared.table import TableMetadata, TableProtocol
from tests.support.local_vacuum import Control


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_a_table_on_s3_needs_the_operators_word(scheme: str) -> None:
    check_location(f"{scheme}://lake/t", allow_s3=True)
    with pytest.raises(Unsupported, match="safe for a single driver only") as refused:
        check_location(f"{scheme}://lake/t", allow_s3=False)
    assert (refused.value.field, refused.value.allowed) == ("location", "LAKEWRIGHT_ALLOW_S3=true")


@pytest.mark.parametrize("location", ["file:///lake/t", "gs://lake/t", "abfss://c@a.dfs.core.windows.net/t"])
def test_a_store_that_puts_conditionally_needs_nothing(location: str) -> None:
    check_location(location, allow_s3=False)


@pytest.mark.parametrize("kind", ["", COMPACT, SORT, DEDUPLICATE, EXPIRE])
def test_no_rewrite_of_ours_touches_a_clustered_table(kind: str) -> None:
    clustered = TableProtocol(1, 7, frozenset(), frozenset({"clustering", "domainMetadata"}))
    with pytest.raises(Unsupported, match="undo the clustering"):
        check_table("file:///t", TableMetadata("u"), clustered, kind)
    other = TableProtocol(3, 7, frozenset({"variantType"}), frozenset({"clustering", "variantType"}))
    for allowed in (CLUSTER, VACUUM, CHECKPOINT):
        check_table("file:///t", TableMetadata("u"), clustered, allowed)
        with pytest.raises(Unsupported, match="variantType"):
            check_table("file:///t", TableMetadata("u"), other, allowed)


def test_a_commit_asks_whether_the_job_may_change_the_table_and_is_never_cut_short() -> None:
    asked = Control()
    asked.stop_after = 0
    permission = JobPermission(asked)
    permission.may_commit()
    permission.reached("files_written")
    assert (asked.changes, [point for point, _, _ in asked.points]) == (1, ["files_written"])
    assert asked.should_stop()
    assert not permission.should_stop()


def test_the_table_of_the_self_test_lies_in_a_hidden_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deciders register nothing there, though the location that actors share lies below a root."""
    found: list[str] = []
    monkeypatch.setattr(module, "_try", lambda _spark, _engine, location: found.append(location))
    monkeypatch.setattr(module, "_remove", lambda _spark, location: found.append(location))
    module.self_test(cast("SparkSession", None), cast("TableEngine", None), "s3://lake/self-test")
    assert len(set(found)) == 1
    assert found[0].startswith("s3://lake/self-test/_")


class LocalFiles:
    """The part of Hadoop's file system that deletes: `delete` answers False where nothing was deleted."""

    def __init__(self, *, may_delete: bool = True) -> None:
        self.may_delete = may_delete

    def makeQualified(self, path: str) -> Any:  # noqa: N802
        return SimpleNamespace(toString=lambda: f"file:{path}")

    def exists(self, path: str) -> bool:
        return Path(path.removeprefix("file:")).exists()

    def delete(self, path: str, _recursive: bool) -> bool:
        place = Path(path.removeprefix("file:"))
        if not self.may_delete or not place.exists():
            return False
        place.unlink()
        return True


def parts(table: Path, files: LocalFiles | None = None) -> tuple[Any, Any]:
    scala = SimpleNamespace(path=lambda text: text)
    log = SimpleNamespace(location=table.as_uri(), root=str(table), store=files or LocalFiles())
    return scala, log


def checked(table: Path, boundary: Boundary | None = None) -> CheckedStore:
    return CheckedStore(*parts(table), boundary or Boundary(real_path=os.path.realpath))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    place = tmp_path / "lake" / "t"
    (place / "p=1").mkdir(parents=True)
    (place / "p=1" / "live.parquet").write_bytes(b"live")
    other = tmp_path / "lake" / "other" / "p=1"
    other.mkdir(parents=True)
    (other / "theirs.parquet").write_bytes(b"theirs")
    return place


def test_nothing_is_deleted_behind_a_link_inside_the_table(table: Path) -> None:
    """`latest -> p=1`: Hadoop lists `latest/live.parquet`, which no commit names, and deletes the live file by it."""
    (table / "latest").symlink_to("p=1")
    with pytest.raises(Unsupported, match="link"):
        checked(table).delete(["latest/live.parquet"])
    assert (table / "p=1" / "live.parquet").exists()


def test_leave_to_read_files_outside_of_a_table_is_no_leave_to_delete_them(table: Path) -> None:
    (table / "x").symlink_to(table.parent / "other" / "p=1")
    boundary = Boundary((table.parent.as_uri(),), allows_external_files=True, real_path=os.path.realpath)
    with pytest.raises(Unsupported):
        checked(table, boundary).delete(["x/theirs.parquet"])
    assert (table.parent / "other" / "p=1" / "theirs.parquet").exists()


@pytest.mark.parametrize("folder", ["a\\b", "a\tb", "a:b", "%2e%2e"])
def test_a_link_whose_name_has_no_canonical_spelling_leads_out_of_no_table(table: Path, folder: str) -> None:
    (table / folder).symlink_to(table.parent / "other" / "p=1")
    with pytest.raises(LakewrightError):
        checked(table).delete([f"{folder}/theirs.parquet"])
    assert (table.parent / "other" / "p=1" / "theirs.parquet").exists()


def test_a_file_that_could_not_be_deleted_is_an_error(table: Path) -> None:
    with pytest.raises(LakewrightError):
        TableStore(*parts(table, LocalFiles(may_delete=False))).delete(["p=1/live.parquet"])
