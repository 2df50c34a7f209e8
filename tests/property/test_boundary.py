"""A path is inside its table by its first letters only where it is by the whole rule, however it is written."""

from hypothesis import given
from hypothesis import strategies as st

from shared.partitions import WHOLE_TABLE
from shared.paths.boundary import Boundary
from shared.paths.locations import canonical_location
from shared.table import DataFile

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
