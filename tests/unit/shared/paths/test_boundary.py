"""No one who writes to a table has us read a file outside of it, however the path is spelled or linked."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from shared.errors import Unsupported
from shared.partitions import WHOLE_TABLE
from shared.paths.boundary import Boundary, vector_leads_out
from shared.paths.locations import file_location
from shared.table import DataFile

TABLE = "file:///lake/t"

INSIDE = [
    ("part-0.parquet", "file:///lake/t/part-0.parquet"),
    ("p=a%20b/x.parquet", "file:///lake/t/p=a%20b/x.parquet"),
    ("p=a b/x.parquet", "file:///lake/t/p=a%20b/x.parquet"),
    ("p=Z\u00fcrich/x..parquet", "file:///lake/t/p=Z%C3%BCrich/x..parquet"),
    ("p=2024-01-01 00:00:00/x", "file:///lake/t/p=2024-01-01%2000:00:00/x"),
    ("p=2024-01-01%2000%253A00%253A00/x", "file:///lake/t/p=2024-01-01%2000%253A00%253A00/x"),
    ("file:///lake/t/x.parquet", "file:///lake/t/x.parquet"),
    ("file:/lake/t/a%20b/x.parquet", "file:///lake/t/a%20b/x.parquet"),
    ("/lake/t/x.parquet", "file:///lake/t/x.parquet"),
    ("./x.parquet", "file:///lake/t/x.parquet"),
]

OUTSIDE = [
    "/lake/other/x.parquet",
    "file:///lake/other/x.parquet",
    "FILE:/lake/other/x.parquet",
    "file:///lake/t2/x.parquet",
    "../other/x.parquet",
    "p=1/../../other/x.parquet",
    "%2e%2e/other/x.parquet",
    "%252E%252e/other/x.parquet",
    "..%2fother/x.parquet",
    "..\\other\\x.parquet",
    "%2Flake/other/x.parquet",
    "file%3A/lake/other/x.parquet",
    "//host/x.parquet",
    "file://host/x.parquet",
    "s3://bucket/x.parquet",
    "dbfs:/lake/t/x.parquet",
]


def data_file(path: str, dv_id: str | None = None) -> DataFile:
    return DataFile(path, 1, WHOLE_TABLE, dv_id)


@pytest.mark.parametrize(("path", "location"), INSIDE)
def test_a_path_of_the_log_leads_to_one_place_below_its_table(path: str, location: str) -> None:
    assert file_location(TABLE, path) == location
    assert Boundary().external(TABLE, data_file(path)) == ""


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("vector", [False, True])
def test_a_path_that_leads_or_may_lead_out_of_the_table_is_refused(path: str, *, vector: bool) -> None:
    file = data_file("x.parquet", f"p{path}") if vector else data_file(path)
    with pytest.raises(Unsupported, match="outside of the table") as refusal:
        Boundary().check_files(TABLE, [data_file("good.parquet"), file])
    assert refusal.value.field == "path"


def test_a_file_outside_is_read_only_where_it_is_allowed_and_below_a_root() -> None:
    lake = ("file:///lake",)
    inside_the_root, elsewhere = data_file("file:///lake/other/x"), data_file("file:///etc/x")
    assert Boundary(lake).external(TABLE, inside_the_root)
    assert Boundary((), allows_external_files=True).external(TABLE, inside_the_root)
    assert not Boundary(lake, allows_external_files=True).external(TABLE, inside_the_root)
    assert Boundary(lake, allows_external_files=True).external(TABLE, elsewhere)
    assert Boundary(lake, allows_external_files=True).external(TABLE, data_file("file:///lake/t/../../etc/x"))


def test_the_prefix_of_a_deletion_vector_stays_in_its_table() -> None:
    name = "^-aqEH.-t@S}K{vb[*k^"
    assert not vector_leads_out(name)
    assert not vector_leads_out(f"ab{name}")
    assert vector_leads_out(f"../{name}")
    assert vector_leads_out(f"..{name}")
    assert vector_leads_out(f"/etc/{name}")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A root with a table, and a table beside the root."""
    for folder in ("lake/t/_delta_log", "secret/t/_delta_log"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "secret/t/x.parquet").write_text("secret")
    (tmp_path / "lake/t/x.parquet").write_text("ours")
    return tmp_path


def boundary(lake: Path, *, allows: bool = False) -> Boundary:
    return Boundary((f"file://{lake}/lake",), allows, os.path.realpath)


def test_a_link_out_of_the_roots_is_no_table_of_ours(lake: Path) -> None:
    (lake / "lake/link").symlink_to(lake / "secret/t")
    (lake / "lake/folder").symlink_to(lake / "secret")
    boundary(lake).check_table(f"file://{lake}/lake/t")
    for name in ("link", "folder/t"):
        with pytest.raises(Unsupported, match="by a link") as refusal:
            boundary(lake).check_table(f"file://{lake}/lake/{name}")
        assert refusal.value.field == "location"


def test_a_link_from_root_to_root_and_a_root_that_is_a_link_are_fine(lake: Path) -> None:
    (lake / "lake/inner").symlink_to(lake / "lake/t")
    (lake / "way in").symlink_to(lake / "lake")
    boundary(lake).check_table(f"file://{lake}/lake/inner")
    Boundary((f"file://{lake}/way%20in",), real_path=os.path.realpath).check_table(f"file://{lake}/way%20in/t")


def test_a_log_that_is_a_link_is_refused_even_without_roots(lake: Path) -> None:
    """Commits would go into another table's log."""
    (lake / "lake/thief").mkdir()
    (lake / "lake/thief/_delta_log").symlink_to(lake / "secret/t/_delta_log")
    for one in (boundary(lake), Boundary(real_path=os.path.realpath), boundary(lake, allows=True)):
        with pytest.raises(Unsupported, match="_delta_log is a link"):
            one.check_table(f"file://{lake}/lake/thief")


@pytest.mark.parametrize("path", ["y.parquet", "p=1/x.parquet", "p%3D1/x.parquet"])
def test_a_file_that_is_a_link_out_of_its_table_or_lies_behind_one_is_not_read(lake: Path, path: str) -> None:
    table = f"file://{lake}/lake/t"
    (lake / "lake/t/y.parquet").symlink_to(lake / "secret/t/x.parquet")
    (lake / "lake/t/p=1").symlink_to(lake / "secret/t")
    (lake / "lake/t/z.parquet").symlink_to(lake / "lake/t/x.parquet")
    for asked in (boundary(lake), replace(boundary(lake), is_link=os.path.islink)):
        asked.check_links(table, ["x.parquet", "z.parquet"])
        with pytest.raises(Unsupported, match="by a link"):
            asked.check_links(table, ["x.parquet", path])
    with pytest.raises(Unsupported, match="by a link"):
        boundary(lake, allows=True).check_links(table, [path])


@pytest.mark.parametrize("table", [f"{scheme}lake/t%20" for scheme in ("file:/", "file:///", "s3://", "s3a://")])
@pytest.mark.parametrize("name", ["u=https%3A%2F%2Fa", "s=%0A", "s=%5C", "s=100%", "s=a%2Fb"])
def test_files_that_metadata_spell_as_the_store_does_are_below_their_table(table: str, name: str) -> None:
    """Writers of Iceberg escape values of partitions in names of folders, and never the paths in metadata."""
    literal = Boundary().for_literal_paths()
    assert literal.first_external(table, [data_file(f"{table}/data/{name}/x.parquet")]) == ""
    for path in (f"{table}/../x.parquet", f"{table.replace('%20', '')}/x.parquet", f"{table}/%2E%2E/x.parquet"):
        assert literal.first_external(table, [data_file(path)]) == path


def test_a_link_whose_name_looks_like_an_escape_is_not_followed(lake: Path) -> None:
    """Read as a URI, its path is one of a file that is not there, and so no link."""
    (lake / "lake/t/a%2Fb").symlink_to(lake / "secret/t")
    path = f"{lake}/lake/t/a%2Fb/x.parquet"
    with pytest.raises(Unsupported, match="by a link"):
        boundary(lake).for_literal_paths().check_links(f"file:{lake}/lake/t", [path])


def test_objects_have_no_links_and_only_local_files_are_resolved() -> None:
    def resolved(path: str) -> str:
        raise AssertionError(path)

    boundary = Boundary(("s3://lake",), real_path=resolved)
    boundary.check_table("s3://lake/t")
    boundary.check_links("s3://lake/t", ["x.parquet"])


def test_without_a_way_to_resolve_links_places_are_what_they_are_called() -> None:
    boundary = Boundary(("file:///lake",))
    boundary.check_table(TABLE)
    boundary.check_links(TABLE, ["x.parquet", "s3://bucket/x.parquet", "//host/x.parquet"])


def test_files_of_the_table_may_be_read() -> None:
    Boundary().check_files(TABLE, [data_file(path) for path, _ in INSIDE])


def test_files_behind_a_link_inside_the_table_are_not_deleted() -> None:
    def real_path(path: str) -> str:
        return path.replace("/lake/t/latest", "/lake/t/p=b")

    boundary = Boundary(real_path=real_path)
    boundary.check_not_linked(TABLE, ["x.parquet", "p=b/x.parquet"])
    boundary.check_not_linked("s3://bucket/t", ["latest/x.parquet"])
    with pytest.raises(Unsupported, match="latest is, or lies behind, a link"):
        boundary.check_not_linked(TABLE, ["p=b/x.parquet", "latest/x.parquet"])


CATALOG_TABLE = "catalog://c/db/t"


@pytest.mark.parametrize(
    "path",
    [
        "file:///lake/metadata/v1.json",
        "/tables/t/metadata/v1.json",
        "file:/newest/metadata/v1.json",
        "s3://bucket/other/v1.json",
    ],
)
def test_metadata_of_a_catalog_are_read_below_a_root_in_a_folder_of_the_table_or_from_a_store(path: str) -> None:
    folders = ["file:///tables/t", "file:///newest/metadata", "s3://bucket/t"]
    Boundary(("file:///lake",)).check_metadata(CATALOG_TABLE, path, folders)


@pytest.mark.parametrize("path", ["/etc/passwd", "file:///tables/t2/v1.json", "file:///tables/t/../../etc/passwd"])
def test_metadata_of_a_catalog_that_are_local_files_elsewhere_are_not_read(path: str) -> None:
    with pytest.raises(Unsupported, match="outside of the table and of the allowed roots") as refusal:
        Boundary(("file:///lake",)).check_metadata(CATALOG_TABLE, path, ["file:///tables/t", "s3://bucket/t"])
    assert (refusal.value.field, refusal.value.allowed) == ("path", "file:///lake")


def test_metadata_of_a_catalog_are_where_their_links_lead(lake: Path) -> None:
    table = f"file://{lake}/lake/t"
    (lake / "lake/t/v1.json").symlink_to(lake / "secret/t/x.parquet")
    (lake / "way in").symlink_to(lake / "lake/t")
    without_roots = Boundary(real_path=os.path.realpath)
    folders = without_roots.real_folders([f"file://{lake}/way%20in", "s3://bucket/t"])
    assert folders == (table,)
    without_roots.check_metadata(CATALOG_TABLE, f"{table}/x.parquet", folders)
    for one in (boundary(lake), without_roots):
        with pytest.raises(Unsupported, match="outside of the table"):
            one.check_metadata(CATALOG_TABLE, f"{table}/v1.json", [table])


def test_places_on_object_stores_hold_no_pipes() -> None:
    seen = Boundary(first_odd=lambda place: f"{place} is a pipe")
    seen.check_plain("s3://lake/t")
    with pytest.raises(Unsupported, match="is a pipe; remove it"):
        seen.check_plain("file:///lake/t")
