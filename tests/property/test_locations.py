"""Any path has one canonical spelling, and is inside its table only where the whole rule says so."""

from urllib.parse import quote, unquote, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from shared.partitions import WHOLE_TABLE
from shared.paths.boundary import Boundary
from shared.paths.locations import MAX_LOCATION_CHARS, canonical_location, decoded_path, hadoop_path
from shared.paths.path_keys import canonical_path
from shared.table import DataFile

PATHS = st.text("ab %20+#?ü/u\u0308.", min_size=1, max_size=6).map(
    lambda text: "/" + "/".join(f"x{part}" for part in text.split("/") if part)
)
"""Paths that differ by little: a blank, its escape, a literal escape of the escape, NFC and NFD."""


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1), min_size=1)
)
def test_a_path_survives_its_own_canonical_form(segments: list[str]) -> None:
    """Whatever a directory is called, its URI leads back to it, by every way in which it is handed on."""
    path = "/" + "/".join(f"x{segment}" for segment in segments)
    if len(quote(path)) <= MAX_LOCATION_CHARS - len("file://"):
        canonical = canonical_location(path)
        assert decoded_path(canonical) == path
        assert canonical_location(canonical) == canonical
        assert canonical_location(path + "/") == canonical
        assert unquote(urlsplit(canonical).path) == path
        assert hadoop_path(canonical) == hadoop_path(path) == f"file://{path}"


@given(PATHS, PATHS)
def test_two_paths_are_one_location_only_if_they_are_one_path(one: str, other: str) -> None:
    """`a b` and `a%20b`, composed and decomposed letters: what a file system distinguishes, nothing here may join."""
    assert (canonical_location(one) == canonical_location(other)) == (one == other)
    assert (hadoop_path(one) == hadoop_path(other)) == (one == other)


@given(st.text(st.sampled_from("aA/.:%3dD fileS"), min_size=1, max_size=20))
def test_a_canonical_path_is_its_own_canonical_path(path: str) -> None:
    assert canonical_path(canonical_path(path)) == canonical_path(path)


TABLES = ("/lake/t", "file:/lake/a b", "file:///lake/a%20b", "s3://bucket/t", "s3a://bucket/a%20b/t", "gs://b/t", "/")
BEGINNINGS = (
    *("/lake/t", "file:/lake/t", "file:///lake/t", "file:////lake/t", "FILE:/lake/t", "/lake/a b", "/lake/a%20b", ""),
    *("file:/lake/a%20b", "s3://bucket/t", "s3a://bucket/t", "s3n://bucket/t", "s3://bucket/a%20b/t", "gs://b/t", "//"),
)
NAMES = ("data", "p=1", "..", ".", "", "2", "x.parquet", "x..y", ".hidden", "%2e%2e", "%2Fx", "a:b", "\\x")


@given(
    st.sampled_from(TABLES),
    st.sampled_from(BEGINNINGS),
    st.lists(st.sampled_from(NAMES), max_size=4).map("/".join),
    st.booleans(),
)
def test_first_external_is_the_rule_for_each_file(table: str, beginning: str, rest: str, slash: bool) -> None:
    location, path = canonical_location(table), beginning + "/" * slash + rest
    file, boundary = DataFile(path, 1, WHOLE_TABLE), Boundary()
    assert boundary.first_external(location, [file]) == boundary.external(location, file)
