"""Rows that a deletion vector hides, read as the Delta protocol describes its file, without Delta.

The bitmaps themselves are Roaring's portable 64-bit format behind a magic number; pyroaring reads them.
"""

import base64
import struct
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyroaring import BitMap64

MAGIC = 1681511377
ASCII85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_UUID_CHARS = 20


def deleted_rows(table: Path, vector: Mapping[str, Any] | None) -> set[int]:
    """Return the positions of the rows that are deleted; raises ValueError for what is no deletion vector."""
    if not vector:
        return set()
    if vector["storageType"] == "i":
        return _positions(_z85(vector["pathOrInlineDv"]))
    with (table / vector_file(vector)).open("rb") as opened:
        opened.seek(int(vector.get("offset") or 0))
        (size,) = struct.unpack(">i", opened.read(4))
        return _positions(opened.read(size))


def vector_file(vector: Mapping[str, Any]) -> str:
    """Return the file below the table that holds the vector, empty for one that stands in the log itself."""
    if vector["storageType"] == "i":
        return ""
    if vector["storageType"] != "u":
        raise ValueError(f"a deletion vector outside its table: {vector}")
    prefix, encoded = vector["pathOrInlineDv"][:-_UUID_CHARS], vector["pathOrInlineDv"][-_UUID_CHARS:]
    name = f"deletion_vector_{uuid.UUID(bytes=_z85(encoded))}.bin"
    return f"{prefix}/{name}" if prefix else name


def _positions(raw: bytes) -> set[int]:
    (magic,) = struct.unpack("<i", raw[:4])
    if magic != MAGIC:
        raise ValueError(f"a deletion vector that begins with {magic}, expected {MAGIC}")
    return set(BitMap64.deserialize(raw[4:]))


def _z85(text: str) -> bytes:
    return base64.b85decode(text.encode().translate(bytes.maketrans(Z85, ASCII85)))
