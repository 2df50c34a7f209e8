"""Deletion vectors are decoded as their specifications say, and one that is damaged is never taken for another."""

import base64
import json
import random
import uuid
import zlib
from pathlib import Path

import pytest
from pyroaring import BitMap64

from actor.proofread.failures import CannotRead
from actor.proofread.model import DeleteForm, Deletes
from actor.proofread.roaring import positions_of
from actor.proofread.vectors import read_vector

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
