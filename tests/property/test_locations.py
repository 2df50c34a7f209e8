"""Any path has one canonical spelling, which leads back to it, and no two paths share one."""

from urllib.parse import quote, unquote, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from shared.paths.locations import MAX_LOCATION_CHARS, canonical_location, decoded_path, hadoop_path
from shared.paths.path_keys import canonical_path

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
