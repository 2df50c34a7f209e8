"""Which stored files an action needs: every spelling of a path, deletion vectors, and files outside of the table."""

from uuid import UUID

import pytest

from shared.formats.delta_references import reference, vector_path
from tests.support.vacuum_world import encode_vector

LOCATION = "s3://bucket/lake/t"
VECTOR = UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")


def test_a_vector_in_a_file_of_its_own_has_the_name_that_the_protocol_gives_it() -> None:
    """The example of the protocol, "Deletion Vector Descriptor Schema"."""
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4}
    found = reference({"path": "x.parquet", "size": 7, "deletionVector": vector}, LOCATION)
    name = f"ab/deletion_vector_{VECTOR}.bin"
    assert found.own == (("x.parquet", 7), (name, 0))
    assert set(found.kept) == {"x.parquet", name}
    assert encode_vector(VECTOR) == "^-aqEH.-t@S}K{vb[*k^"


def test_the_path_of_a_vectors_file_is_spelled_as_a_log_spells_paths() -> None:
    escaped = {"storageType": "u", "pathOrInlineDv": "a%2Fb^-aqEH.-t@S}K{vb[*k^"}
    assert vector_path(escaped) == f"a%252Fb/deletion_vector_{VECTOR}.bin"
    assert (
        reference({"path": "x", "deletionVector": escaped}, LOCATION).own[1][0] == f"a%2Fb/deletion_vector_{VECTOR}.bin"
    )
    assert vector_path({"storageType": "p", "pathOrInlineDv": "s3://b/a%20b.bin"}) == "s3://b/a%20b.bin"
    assert vector_path({"storageType": "i", "pathOrInlineDv": "x"}) is vector_path(None) is None


def test_a_vector_without_a_prefix_lies_in_the_tables_folder_and_an_inline_one_nowhere() -> None:
    plain = {"storageType": "u", "pathOrInlineDv": "^-aqEH.-t@S}K{vb[*k^"}
    assert reference({"path": "x", "deletionVector": plain}, LOCATION).own[1] == (f"deletion_vector_{VECTOR}.bin", 0)
    inline = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
    assert reference({"path": "x", "deletionVector": inline}, LOCATION).own == (("x", 0),)


@pytest.mark.parametrize(
    ("path", "own", "kept"),
    [
        ("a/b.parquet", "a/b.parquet", {"a/b.parquet"}),
        ("dt=a%20b/c.parquet", "dt=a b/c.parquet", {"dt=a b/c.parquet", "dt=a%20b/c.parquet"}),
        ("./a//b.parquet", "a/b.parquet", {"a/b.parquet"}),
        ("s3a://bucket/lake/t/a/b.parquet", "a/b.parquet", {"a/b.parquet"}),
        ("s3://bucket/lake/t/dt=a%20b/c", "dt=a b/c", {"dt=a b/c"}),
    ],
)
def test_a_path_below_the_table_is_one_name_and_each_name_that_it_could_mean_is_kept(
    path: str, own: str, kept: set[str]
) -> None:
    found = reference({"path": path, "size": 3}, LOCATION)
    assert found.own == (() if "://" in path else ((own, 3),))
    assert set(found.kept) == kept
    assert found.outside == ()


@pytest.mark.parametrize(
    "path",
    [
        "s3://bucket/lake/other/a%20b.parquet",
        "s3://other/lake/t/a%20b.parquet",
        "s3://bucket/lake/t2/a%20b.parquet",
        "gs://bucket/lake/t/a%20b.parquet",
        "weird://bucket/lake/t/a%20b.parquet",
        "/lake/t/a%20b.parquet",
        "s3://bucket/lake/t/../t/a%20b.parquet",
    ],
)
def test_a_path_outside_of_the_table_is_never_its_own_and_its_base_name_is_known(path: str) -> None:
    found = reference({"path": path}, LOCATION)
    assert (found.own, found.kept) == ((), ())
    assert set(found.outside) == {"a b.parquet", "a%20b.parquet"}


def test_a_vector_at_a_path_of_its_own_is_known_as_a_path_is() -> None:
    vector = {"storageType": "p", "pathOrInlineDv": "s3://bucket/lake/t/v.bin"}
    assert reference({"path": "x", "deletionVector": vector}, LOCATION).kept == ("x", "v.bin")
    elsewhere = {"storageType": "p", "pathOrInlineDv": "s3://bucket/source/v.bin"}
    assert set(reference({"path": "x", "deletionVector": elsewhere}, LOCATION).outside) == {"v.bin"}


def test_a_local_table_knows_its_own_absolute_paths() -> None:
    for path in ("/lake/t/a.parquet", "file:/lake/t/a.parquet", "file:///lake/t/a.parquet"):
        assert reference({"path": path}, "file:///lake/t").kept == ("a.parquet",)
