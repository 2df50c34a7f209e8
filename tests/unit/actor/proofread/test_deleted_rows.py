"""Deleted rows are left out, in whatever form they are named: what is left equals outputs without them."""

import base64
import json
import random
import uuid
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from actor.proofread.model import CannotRead, DeleteForm, Deletes, Field, FoundBy, ProofFile
from actor.proofread.task import Answer, ReadEnding, Work
from actor.proofread.vectors import positions_of, read_vector
from tests.support.proofread_groups import group_of, read, stored

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
ROWS = BitMap64([0, 3, 7, 2**16, 2**32 + 1])
DELTA_BODY = (1681511377).to_bytes(4, "little") + ROWS.serialize()
PUFFIN_BODY = b"\xd1\xd3\x39\x64" + ROWS.serialize()


def z85(data: bytes) -> str:
    return base64.b85encode(data).decode().translate(str.maketrans(B85, Z85))


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def from_disk(path: str, offset: int, size: int) -> bytes:
    return Path(path).read_bytes()[offset : offset + size]


def test_random_bitmaps_have_the_positions_that_another_library_gave_them() -> None:
    rng = random.Random(1)
    for number in range(60):
        values: set[int] = set()
        for _ in range(rng.randrange(4)):
            base = rng.choice((0, 65536, 2**32, 2**33 + 5 * 65536, rng.randrange(2**34)))
            if rng.random() < 0.4:
                values |= set(range(base, base + rng.randrange(30_000)))
            else:
                values |= {base + rng.randrange(100_000) for _ in range(rng.randrange(9_000))}
        bitmap = BitMap64(values)
        if rng.random() < 0.5:
            bitmap.run_optimize()
        assert list(positions_of(bitmap.serialize())) == sorted(values), f"bitmap {number}"


def descriptor(kind: str, text: str, *, rows: int = len(ROWS), offset: int | None = None) -> Deletes:
    fields = {"storageType": kind, "pathOrInlineDv": text, "sizeInBytes": len(DELTA_BODY), "cardinality": rows}
    return Deletes(DeleteForm.DELTA_VECTOR, text=json.dumps(fields | ({"offset": offset} if offset else {})))


def test_delta_vectors_are_read_inline_and_from_relative_and_absolute_paths(tmp_path: Path) -> None:
    name = uuid.uuid4()
    folder = tmp_path / "ab"
    folder.mkdir()
    file = folder / f"deletion_vector_{name}.bin"
    file.write_bytes(b"\1" + framed(b"another") + framed(DELTA_BODY))
    offset = 1 + len(framed(b"another"))
    padded = DELTA_BODY + bytes(-len(DELTA_BODY) % 4)
    for deletes in (
        descriptor("i", z85(padded)),
        descriptor("u", "ab" + z85(name.bytes), offset=offset),
        descriptor("p", str(file), offset=offset),
    ):
        assert list(read_vector(deletes, str(tmp_path), from_disk)) == list(ROWS)


def test_a_vector_of_a_puffin_file_is_read_from_its_blob(tmp_path: Path) -> None:
    path = tmp_path / "d.puffin"
    path.write_bytes(b"PFA1" + framed(PUFFIN_BODY) + b"rest")
    deletes = Deletes(
        DeleteForm.PUFFIN_VECTOR, str(path), offset=4, size_bytes=len(framed(PUFFIN_BODY)), rows=len(ROWS)
    )
    assert list(read_vector(deletes, "", from_disk)) == list(ROWS)


@pytest.mark.parametrize("size", [4, 12, 20, len(ROWS.serialize()) - 1, len(ROWS.serialize()) + 1])
def test_a_bitmap_that_is_cut_or_longer_is_none(size: int) -> None:
    with pytest.raises(ValueError, match="roaring bitmap"):
        list(positions_of((ROWS.serialize() + b"\0")[:size]))


def test_a_bitmap_of_another_kind_is_none() -> None:
    data = bytearray(ROWS.serialize())
    data[12] ^= 8
    with pytest.raises(ValueError, match="begins with"):
        list(positions_of(bytes(data)))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:30],
        lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:],
        lambda data: b"\1" + data[1:],
        lambda data: data.replace(b"\7\0", b"\5\0"),  # As many rows, but others.
        lambda data: data[:4] + b"\0\0\0\0" + data[8:],
        lambda _data: framed(b"\0\0\0\0" + ROWS.serialize()),
        lambda _data: framed(PUFFIN_BODY + b"\0"),
        lambda _data: framed(b"\xd1\xd3\x39\x64" + BitMap64([1]).serialize()),
        lambda _data: b"",
    ],
)
def test_a_damaged_vector_is_not_read(tmp_path: Path, damage) -> None:
    path = tmp_path / "d.puffin"
    path.write_bytes(damage(framed(PUFFIN_BODY)))
    deletes = Deletes(DeleteForm.PUFFIN_VECTOR, str(path), size_bytes=path.stat().st_size, rows=len(ROWS))
    with pytest.raises(CannotRead, match=r"d\.puffin"):
        list(read_vector(deletes, "", from_disk))


@pytest.mark.parametrize(
    "deletes",
    [
        descriptor("i", z85(DELTA_BODY + bytes(-len(DELTA_BODY) % 4)), rows=4),
        descriptor("p", "/nowhere/at/all"),
        descriptor("x", "abc"),
        Deletes(DeleteForm.DELTA_VECTOR, text="{}"),
    ],
)
def test_a_descriptor_that_contradicts_its_vector_is_not_believed(deletes: Deletes) -> None:
    with pytest.raises(CannotRead, match="deletion vector"):
        list(read_vector(deletes, "", from_disk))


LIVE = [number for number in range(10) if number not in ROWS]
COLUMNS = (Field("a", "int64", 1), Field("f", "double", 2))
FILE_PATH, POSITION = 2147483546, 2147483545


def table(numbers: Iterable[int | None]) -> pa.Table:
    listed = list(numbers)
    floats = [None if number is None else number / 2 for number in listed]
    fields = [field("a", pa.int64(), 1), field("f", pa.float64(), 2)]
    return pa.table([pa.array(listed, pa.int64()), pa.array(floats, pa.float64())], schema=pa.schema(fields))


def field(name: str, type_: pa.DataType, number: int | None) -> pa.Field:
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(number)} if number else None)


def position_deletes(path: Path, spelled: str, positions: Iterable[int], ids: tuple[int | None, int | None]) -> Deletes:
    listed = list(positions)
    fields = [field("file_path", pa.string(), ids[0]), field("pos", pa.int64(), ids[1])]
    arrays = [[*([spelled] * len(listed)), "file:/elsewhere"], [*listed, 1]]
    stored(path, pa.table(arrays, schema=pa.schema(fields)))
    return Deletes(DeleteForm.POSITIONS, str(path), rows=len(listed))


def compared(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, deletes: Deletes, live: Iterable[int | None]
) -> Answer:
    file = stored(tmp_path / "in.parquet", table([*range(10)]), row_group_size=3)
    other = stored(tmp_path / "in2.parquet", table([20, None]))
    out = stored(tmp_path / "out.parquet", table([*live, 20, None]))
    group = group_of(COLUMNS, [replace(file, deletes=(deletes,)), other], [out], FoundBy.ID)
    found = [read(connection, group, work) for work in (Work.ROWS, Work.ROWS_AGAIN)]
    assert found[0].ending is found[1].ending
    return found[0]


IN_FILE = [number for number in ROWS if number < 10]


@pytest.mark.parametrize("form", ["delta", "puffin", "positions", "positions of a URI", "equality", "others"])
def test_rows_are_dead_in_each_form(connection: duckdb.DuckDBPyConnection, tmp_path: Path, form: str) -> None:
    match form:
        case "delta":
            padded = DELTA_BODY + bytes(-len(DELTA_BODY) % 4)
            said = {"storageType": "i", "pathOrInlineDv": z85(padded), "sizeInBytes": len(DELTA_BODY), "cardinality": 5}
            deletes = Deletes(DeleteForm.DELTA_VECTOR, text=json.dumps(said))
        case "puffin":
            path = tmp_path / "d.puffin"
            path.write_bytes(b"PFA1" + framed(PUFFIN_BODY))
            deletes = Deletes(DeleteForm.PUFFIN_VECTOR, str(path), offset=4, size_bytes=len(framed(PUFFIN_BODY)))
        case "others":
            deletes = Deletes(DeleteForm.OTHERS, text=json.dumps(LIVE))
        case "equality":
            keys = pa.table([pa.array([0, 3, 7])], schema=pa.schema([field("renamed", pa.int64(), 1)]))
            stored(tmp_path / "eq.parquet", keys)
            deletes = Deletes(DeleteForm.EQUALITY, str(tmp_path / "eq.parquet"), key_ids=(1,))
        case _:
            spelled = f"file://{tmp_path}/in.parquet" if form.endswith("URI") else f"{tmp_path}/in.parquet"
            deletes = position_deletes(tmp_path / "pos.parquet", spelled, IN_FILE, (FILE_PATH, POSITION))
    found = compared(connection, tmp_path, deletes, LIVE)
    assert (found.ending, found.rows) == (ReadEnding.SAME, len(LIVE) + 2), found
    assert compared(connection, tmp_path, deletes, [*LIVE, 3]).ending is ReadEnding.DIFFERENT
    assert compared(connection, tmp_path, deletes, LIVE[1:]).ending is ReadEnding.DIFFERENT


def test_in_equality_deletes_null_equals_null_and_only_the_files_that_name_them_lose_rows(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    keys = pa.table([pa.array([None], pa.float64())], schema=pa.schema([field("f", pa.float64(), 2)]))
    stored(tmp_path / "eq.parquet", keys)
    deletes = Deletes(DeleteForm.EQUALITY, str(tmp_path / "eq.parquet"), key_ids=(2,))
    one, other = (stored(tmp_path / f"{name}.parquet", table([1, None])) for name in "ab")
    out = stored(tmp_path / "out.parquet", table([1, 1, None]))
    found = read(connection, group_of(COLUMNS, [replace(one, deletes=(deletes,)), other], [out], FoundBy.ID))
    assert found.ending is ReadEnding.SAME, found


def test_each_of_several_delete_files_by_value_counts_for_the_files_that_it_applies_to(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """Of the same columns in another order, too, and of others."""
    both = pa.schema([field("f", pa.float64(), 2), field("a", pa.int64(), 1)])
    stored(tmp_path / "eq0.parquet", pa.table([[0.5], [1]], schema=both))
    stored(tmp_path / "eq1.parquet", pa.table([[2]], schema=pa.schema([field("a", pa.int64(), 1)])))
    stored(tmp_path / "eq2.parquet", pa.table([[3]], schema=pa.schema([field("a", pa.int64(), 1)])))
    ids = ((2, 1), (1,), (1,))
    keys = [Deletes(DeleteForm.EQUALITY, str(tmp_path / f"eq{n}.parquet"), key_ids=ids[n]) for n in range(3)]
    files = [stored(tmp_path / f"{name}.parquet", table([1, 2, 3])) for name in "abc"]
    applied = [replace(files[0], deletes=(*keys,)), replace(files[1], deletes=(keys[1],)), files[2]]
    for live, ending in (([1, 3, 1, 2, 3], ReadEnding.SAME), ([1, 2, 3, 1, 3], ReadEnding.SAME)):
        out = stored(tmp_path / "out.parquet", table(live))
        found = read(connection, group_of(COLUMNS, applied, [out], FoundBy.ID))
        assert found.ending is ending, found
    out = stored(tmp_path / "out.parquet", table([1, 3, 1, 2]))
    assert read(connection, group_of(COLUMNS, applied, [out], FoundBy.ID)).ending is ReadEnding.DIFFERENT


def test_each_file_has_its_own_deleted_rows(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    files = []
    for name, dead in (("a", 0), ("b", 1)):
        file = stored(tmp_path / f"{name}.parquet", table([1, 2]))
        deletes = position_deletes(tmp_path / f"pos-{name}.parquet", file.path, [dead], (FILE_PATH, POSITION))
        files.append(replace(file, deletes=(deletes,)))
    out = stored(tmp_path / "out.parquet", table([2, 1]))
    assert read(connection, group_of(COLUMNS, files, [out], FoundBy.ID)).ending is ReadEnding.SAME


def test_a_group_whose_rows_are_all_deleted_has_no_outputs(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    deletes = position_deletes(tmp_path / "pos.parquet", f"{tmp_path}/in.parquet", range(10), (FILE_PATH, POSITION))
    file = stored(tmp_path / "in.parquet", table(range(10)))
    found = read(connection, group_of(COLUMNS, [replace(file, deletes=(deletes,))], [], FoundBy.ID))
    assert (found.ending, found.rows) == (ReadEnding.SAME, 0)
    assert read(connection, group_of(COLUMNS, [file], [], FoundBy.ID)).ending is ReadEnding.DIFFERENT


def test_equality_deletes_by_a_field_that_the_table_lacks_are_unreadable(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    deletes = Deletes(DeleteForm.EQUALITY, str(tmp_path / "eq.parquet"), key_ids=(9,))
    assert compared(connection, tmp_path, deletes, LIVE).ending is ReadEnding.UNREADABLE


def test_a_file_that_is_listed_twice_is_no_group(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    file = stored(tmp_path / "in.parquet", table([1]))
    for work in (Work.ROWS, Work.ROWS_AGAIN, Work.BYTES):
        assert read(connection, group_of(COLUMNS, [file, file], [file]), work).ending is ReadEnding.UNREADABLE


@pytest.mark.parametrize("ids", [(None, None), (FILE_PATH, None), (FILE_PATH, FILE_PATH)])
def test_a_delete_file_without_the_reserved_ids_is_refused(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, ids: tuple[int | None, int | None]
) -> None:
    deletes = position_deletes(tmp_path / "pos.parquet", f"{tmp_path}/in.parquet", [1], ids)
    assert compared(connection, tmp_path, deletes, range(1)).ending is ReadEnding.UNCLEAR


def test_live_rows_must_be_as_many_as_the_metadata_say(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    file, out = (stored(tmp_path / f"{name}.parquet", table(range(4))) for name in "ab")
    said = replace(file, rows=5)
    assert read(connection, group_of(COLUMNS, [file], [out])).ending is ReadEnding.SAME
    assert read(connection, group_of(COLUMNS, [said], [out])).ending is ReadEnding.UNREADABLE
    found = read(connection, group_of(COLUMNS, [out], [said]))
    assert (found.ending, "5 rows" in found.text) == (ReadEnding.DIFFERENT, True)


@pytest.mark.parametrize("name", ["filename", "File_Row_Number"])
def test_a_column_called_as_duckdb_calls_places_is_left_to_the_second_reader(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, name: str
) -> None:
    columns = [Field("a", "int64", 1), Field(name, "int64", 2)]
    schema = pa.schema([field("a", pa.int64(), 1), field(name, pa.int64(), 2)])
    file = stored(tmp_path / "in.parquet", pa.table([[*range(10)], [*range(10)]], schema=schema))
    out = stored(tmp_path / "out.parquet", pa.table([LIVE, LIVE], schema=schema))
    deletes = position_deletes(tmp_path / "pos.parquet", file.path, IN_FILE, (FILE_PATH, POSITION))
    group = group_of(columns, [replace(file, deletes=(deletes,))], [out], FoundBy.ID)
    assert read(connection, group).ending is ReadEnding.UNREADABLE
    assert read(connection, group, Work.ROWS_AGAIN).ending is ReadEnding.SAME
    # Without deletes nothing hides it, and a difference shows no value of it as a file.
    wrong = read(connection, group_of(columns, [file], [out], FoundBy.ID))
    assert (wrong.ending, wrong.files) == (ReadEnding.DIFFERENT, ())


@pytest.mark.parametrize("work", [Work.ROWS, Work.ROWS_AGAIN])
def test_rows_keep_the_ids_that_they_inherited(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, work: Work
) -> None:
    columns = (*COLUMNS, Field("_row_id", "row_id", 2147483540), Field("_seq", "row_version", 2147483539))
    one, other = (stored(tmp_path / f"{start}.parquet", table(range(start, start + 3))) for start in (0, 3))
    inputs = [replace(one, first_row_id=100, sequence=7), replace(other, first_row_id=200, sequence=8)]

    def written(ids: list[int]) -> ProofFile:
        made = table(range(6)).append_column(field("_row_id", pa.int64(), 2147483540), [ids])
        sequences = pa.array([7, 7, 7, 8, 8, 8])
        return stored(tmp_path / "out.parquet", made.append_column(field("s", pa.int64(), 2147483539), sequences))

    right = written([100, 101, 102, 200, 201, 202])
    assert read(connection, group_of(columns, inputs, [right], FoundBy.ID), work).ending is ReadEnding.SAME
    wrong = written([100, 101, 102, 200, 202, 201])
    assert read(connection, group_of(columns, inputs, [wrong], FoundBy.ID), work).ending is ReadEnding.DIFFERENT


def positions(folder: Path, name: str, *named: tuple[str, int], with_ids: bool = True) -> Deletes:
    """Write a file of positions."""
    ids = (2147483546, 2147483545) if with_ids else (None, None)
    fields = [
        pa.field(column, kind, metadata={"PARQUET:field_id": str(one)} if one else None)
        for column, kind, one in zip(("file_path", "pos"), (pa.string(), pa.int64()), ids, strict=True)
    ]
    rows = [{"file_path": path, "pos": place} for path, place in named]
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(fields)), folder / name)
    return Deletes(DeleteForm.POSITIONS, str(folder / name), rows=len(named))


def test_deletes_of_the_same_files_are_compared_by_the_rows_that_they_name(tmp_path: Path) -> None:
    one, two = (str(tmp_path / name) for name in ("one.parquet", "two.parquet"))
    first = positions(tmp_path, "a", (one, 1), (two, 5), ("/gone", 9))
    again = positions(tmp_path, "b", (one, 3), (one, 1))
    vector = tmp_path / "v.puffin"
    body = b"\xd1\xd3\x39\x64" + BitMap64([1, 3]).serialize()
    vector.write_bytes(b"\1" + framed(body))
    of_one = Deletes(DeleteForm.PUFFIN_VECTOR, str(vector), offset=1, size_bytes=len(body) + 8, rows=2)
    before = ProofFile(one, 1, None, (first, again)), ProofFile(two, 1, None, (first,))

    def asked(*after: ProofFile) -> Answer:
        return read(duckdb.connect(), group_of((), before, after, FoundBy.ID), Work.DELETES)

    of_two = positions(tmp_path, "c", (two, 5))
    same = asked(ProofFile(one, 1, None, (of_one,)), ProofFile(two, 1, None, (of_two,)))
    assert (same.ending, same.rows) == (ReadEnding.SAME, 3)
    lost = asked(ProofFile(one, 1, None, (of_one,)), ProofFile(two, 1))
    assert (lost.ending, lost.text) == (
        ReadEnding.DIFFERENT,
        "1 deleted rows would be visible again, and 0 others would be deleted",
    )
    more = positions(tmp_path, "d", (two, 5), (two, 6))
    new = asked(ProofFile(one, 1, None, (of_one,)), ProofFile(two, 1, None, (more,)))
    assert (new.ending, "and 1 others" in new.text) == (ReadEnding.DIFFERENT, True)
    none = read(duckdb.connect(), group_of((), [ProofFile(one, 1)], [ProofFile(one, 1)], FoundBy.ID), Work.DELETES)
    assert (none.ending, none.rows) == (ReadEnding.SAME, 0)
    unclear = positions(tmp_path, "e", (two, 5), with_ids=False)
    assert asked(ProofFile(one, 1, None, (of_one,)), ProofFile(two, 1, None, (unclear,))).ending is ReadEnding.UNCLEAR
