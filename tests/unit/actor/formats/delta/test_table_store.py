"""A vacuum's store deletes nothing through links, and a deletion that fails is an error."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from actor.formats.delta.table_jobs import CheckedStore
from actor.formats.delta.table_store import TableStore
from shared.errors import LakewrightError, Unsupported
from shared.paths.boundary import Boundary


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
