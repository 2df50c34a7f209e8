"""Deletion vectors are read as the Delta protocol's own examples have them."""

import base64
import struct
from pathlib import Path

import pytest
from pyroaring import BitMap64

from tests.soak.deletion_vectors import ASCII85, MAGIC, Z85, deleted_rows, vector_file


def test_an_inline_vector_is_read(tmp_path: Path) -> None:
    """The rows of the protocol's example; its text is of an older format that Delta does not write any more."""
    body = struct.pack("<i", MAGIC) + BitMap64({3, 4, 7, 11, 18, 29}).serialize()
    padded = body + bytes(-len(body) % 4)
    text = base64.b85encode(padded).translate(bytes.maketrans(ASCII85, Z85)).decode()
    assert deleted_rows(tmp_path, {"storageType": "i", "pathOrInlineDv": text}) == {3, 4, 7, 11, 18, 29}


def test_a_vector_in_a_file_is_found_and_read(tmp_path: Path) -> None:
    """Its name is the protocol's example; its rows lie behind the first vector of the file, beyond 32 bits, too."""
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4}
    assert vector_file(vector) == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    rows = {0, 70_000, 2**33}
    body = struct.pack("<i", MAGIC) + BitMap64(rows).serialize()
    (tmp_path / "ab").mkdir()
    (tmp_path / vector_file(vector)).write_bytes(b"\x01..." + struct.pack(">i", len(body)) + body + b"crc.")
    assert deleted_rows(tmp_path, vector) == rows


def test_no_vector_hides_nothing(tmp_path: Path) -> None:
    assert deleted_rows(tmp_path, None) == set()


@pytest.mark.parametrize(
    "vector", [{"storageType": "p", "pathOrInlineDv": "/x"}, {"storageType": "i", "pathOrInlineDv": "0" * 20}]
)
def test_what_is_no_vector_is_refused(tmp_path: Path, vector: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="deletion vector"):
        deleted_rows(tmp_path, vector)
