"""Lines of a log are read by a fast parser as the standard library reads them, or refused as it refuses them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decider.formats.delta.damage import LogFile
from decider.formats.delta.lines import parsed_lines, split_lines
from shared.errors import Corrupt

LOG = LogFile("file:///lake/t", 12, f"{12:020d}.json")
INT64 = st.integers(-(2**63), 2**63 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | INT64 | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def parsed(data: bytes) -> list[tuple[int, dict[str, object]]]:
    return list(parsed_lines(split_lines(data), LOG))


@given(st.lists(st.dictionaries(st.text(max_size=5), JSON, max_size=4), max_size=4), st.booleans())
def test_whatever_the_standard_library_writes_is_read_as_it_reads_it(
    actions: list[dict[str, object]], ascii_only: bool
) -> None:
    """NaN, infinities and halves of surrogate pairs included."""
    lines = [json.dumps(action, ensure_ascii=ascii_only) for action in actions]
    data = "\n".join(lines).encode(errors="surrogatepass")
    try:
        expected = [json.loads(line) for line in data.decode().split("\n") if line]
    except UnicodeDecodeError:
        with pytest.raises(Corrupt, match="UTF-8"):
            parsed(data)
    else:
        # repr, because NaN is not equal to itself.
        assert repr([action for _, action in parsed(data)]) == repr(expected)
