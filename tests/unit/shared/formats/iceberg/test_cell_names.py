"""Cells in the names of files: short, read back as they were, and told from any other name."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from decimal import Decimal
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.formats.iceberg.cell_names import MAX_CELL_BYTES, longest_cell, name_prefix, path_of, tag_of, written_name
from shared.formats.iceberg.tags import file_tags
from shared.layout.cells.boxes import NAN, NULL, Span
from shared.layout.cells.tags import CELL_TAG, ColumnPath, encode_cell
from shared.layout.key_values import TEXT_BYTES, number_of

LONGEST = "99999-9999999999-" + "f" * 36 + "-0-99999.parquet"
"""What Iceberg's writers in Spark call a file, at its longest."""

WHOLE = st.integers(-(2**63), 2**63)
DIGITS = st.integers(-(10**38) + 1, 10**38 - 1)


def text(words: bytes) -> int:
    return int.from_bytes(words.ljust(TEXT_BYTES, b"\0"))


NUMBERS = {
    ("long", 15): WHOLE,
    ("double", 15): WHOLE,
    ("string", 15): st.binary(max_size=15).map(text),
    ("string", 1): st.binary(max_size=1).map(text),
    ("decimal(38,20)", 15): DIGITS.map(lambda digits: digits * 10**18),
    ("decimal(38,0)", 15): DIGITS.map(lambda digits: digits * 10**38),
}


@st.composite
def spans(draw: st.DrawFn, numbers: st.SearchStrategy[int]) -> Span:
    low = draw(st.one_of(st.just(NULL), numbers))
    end = draw(st.one_of(st.just(NAN + 1), st.just(NAN), numbers))
    return (low, end) if low < end else (NULL, NAN) if end == low else (end, low)


@st.composite
def cells(draw: st.DrawFn) -> tuple[list[ColumnPath], list[Span]]:
    kinds = draw(st.lists(st.sampled_from([*NUMBERS]), min_size=1, max_size=4))
    ids = draw(st.lists(st.integers(1, 2**31 - 1), min_size=4, max_size=4, unique=True))
    paths = [path_of(one, *kind) for one, kind in zip(ids, kinds, strict=False)]
    return paths, [draw(spans(NUMBERS[kind])) for kind in kinds]


@given(cells())
def test_a_cell_is_read_from_a_name_as_it_was_written_and_names_are_not_too_long(
    cell: tuple[list[ColumnPath], list[Span]],
) -> None:
    paths, box = cell
    tag = encode_cell(tuple(box), paths)
    name = name_prefix(tag) + LONGEST
    assert tag_of(f"s3://bucket/t/data/d=1/{name}") == tag_of(f"/t/0110/01101100-{name}") == tag
    assert written_name(f"/t/01101100-{name}") == written_name(name) == LONGEST
    if longest_cell(paths) <= MAX_CELL_BYTES:
        assert len(f"01101100-{name}") <= 255


def test_three_texts_and_four_numbers_fit_into_a_name_and_four_texts_do_not() -> None:
    texts = [path_of(one, "string", 15) for one in (1, 2, 3, 4)]
    numbers = [path_of(one, "long", 15) for one in (10**9, 10**9 + 1, 10**9 + 2, 10**9 + 3)]
    assert longest_cell(texts[:3]) <= MAX_CELL_BYTES < longest_cell(texts)
    assert longest_cell(numbers) <= MAX_CELL_BYTES


def test_columns_are_named_by_id_and_by_what_their_numbers_mean() -> None:
    assert path_of(7, "timestamp", 15) == ("7", "n")
    assert path_of(7, "decimal(10,2)", 15) == ("7", "d2")
    assert (path_of(7, "string", 15), path_of(7, "string", 3)) == (("7", "t15"), ("7", "t3"))
    number = number_of(Decimal("1.25"), "decimal(10,2)")
    assert tag_of(name_prefix(f'[[["7","d2"],{number},null]]') + "x.parquet") == f'[[["7","d2"],{number},null]]'


def test_a_number_that_its_form_does_not_have_is_not_written() -> None:
    with pytest.raises(ValueError, match="no multiple"):
        name_prefix('[[["7","d38"],1,null],[["8","t1"],1,null]]')


GOOD = name_prefix('[[["1","n"],0,100]]')


def changed(prefix: str, at: int) -> str:
    """Return what comes before a name with a byte changed under the old checksum."""
    code = prefix.split(".")[1]
    body = bytearray(urlsafe_b64decode(code + "=" * (-len(code) % 4)))
    body[at] ^= 1
    return f"cell.{urlsafe_b64encode(body).decode().rstrip('=')}."


@pytest.mark.parametrize(
    "name",
    [
        "00000-1-5f0-0-00001.parquet",
        "cell.parquet",
        f"x{GOOD}a.parquet",
        GOOD,
        GOOD.rstrip("."),
        f"{GOOD[:-3]}.a.parquet",
        f"{GOOD.replace('cell.', 'cell.A')}a.parquet",
        f"{GOOD.upper()}a.parquet",
        "cell.A.a.parquet",
        "cell.AAAAAAAAAA.a.parquet",
        f"{GOOD}ä.parquet",
        f"{changed(GOOD, -5)}a.parquet",
        f"{changed(GOOD, 0)}a.parquet",
    ],
)
def test_any_other_name_is_none_of_ours(name: str) -> None:
    assert tag_of(f"/t/data/{name}") is None


def test_a_name_without_a_cell_before_it_is_none_of_ours() -> None:
    assert written_name("/cell.A.b/00000-1-5f0-0-00001.parquet") == ""
    assert written_name("/t/cell.AQEB-cell.00000-1.parquet") == "00000-1.parquet"


@given(st.binary(max_size=40))
def test_bytes_with_a_right_checksum_that_mean_nothing_name_no_cell(body: bytes) -> None:
    whole = b"\x01" + body
    code = urlsafe_b64encode(whole + blake2b(whole, digest_size=4).digest()).decode().rstrip("=")
    found = tag_of(f"cell.{code}.a.parquet")
    assert found is None or tag_of(name_prefix(found) + "a.parquet") == found


def test_the_name_of_a_file_outlives_the_snapshot_that_added_it() -> None:
    named = f"/t/data/{GOOD}a.parquet"
    tags = {f"{GOOD}a.parquet": {"k": "v"}, "plain.parquet": {"k": "w"}}
    assert file_tags({}, named) == {CELL_TAG: '[[["1","n"],0,100]]'}
    assert file_tags(tags, named) == {"k": "v", CELL_TAG: '[[["1","n"],0,100]]'}
    assert file_tags(tags, "/t/data/plain.parquet") == {"k": "w"}
