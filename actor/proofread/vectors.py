"""Deletion vectors of Delta, and of Iceberg's Puffin files: bytes to positions, everything checked on the way."""

import base64
import json
import struct
import uuid
import zlib
from collections.abc import Callable, Iterator

from actor.proofread.failures import CannotRead
from actor.proofread.model import DeleteForm, Deletes
from actor.proofread.roaring import positions_of

_DELTA_MAGIC = (1681511377).to_bytes(4, "little")
_PUFFIN_MAGIC = b"\xd1\xd3\x39\x64"
_ENCODED_UUID_CHARACTERS = 20

ReadBytes = Callable[[str, int, int], bytes]
"""Reads a number of bytes of a file from an offset."""


def read_vector(deletes: Deletes, table: str, read: ReadBytes) -> Iterator[int]:
    """Yield the positions of a vector; raises CannotRead for one that is damaged or holds another number of rows."""
    try:
        if deletes.form is DeleteForm.PUFFIN_VECTOR:
            blob = read(deletes.path, deletes.offset, deletes.size_bytes)
            (length,) = struct.unpack_from(">i", blob)
            body = _checked(blob[4 : 4 + length], length, blob[4 + length : 8 + length])
            magic, expected = _PUFFIN_MAGIC, deletes.rows
        else:
            descriptor = json.loads(deletes.text)
            body = _delta_body(descriptor, deletes.path, table, read)
            magic, expected = _DELTA_MAGIC, int(descriptor["cardinality"])
        yield from _counted(positions_of(body, magic), expected)
    except (ValueError, KeyError, struct.error, OSError) as damage:
        raise CannotRead(f"a deletion vector {deletes.path or 'in the log'} cannot be read: {damage}") from damage


def _counted(positions: Iterator[int], expected: int | None) -> Iterator[int]:
    count = 0
    for count, position in enumerate(positions, 1):  # noqa: B007 - the last number is the number of positions
        yield position
    if expected is not None and count != expected:
        raise ValueError(f"it holds {count} rows, and the metadata say {expected}")


def _delta_body(descriptor: dict[str, object], path: str, table: str, read: ReadBytes) -> bytes:
    kind, text = str(descriptor["storageType"]), str(descriptor["pathOrInlineDv"])
    size = int(str(descriptor["sizeInBytes"]))
    if kind == "i":
        return _z85(text)[:size]
    if kind == "u":
        prefix, code = text[:-_ENCODED_UUID_CHARACTERS], text[-_ENCODED_UUID_CHARACTERS:]
        name = f"deletion_vector_{uuid.UUID(bytes=_z85(code))}.bin"
        path = path or "/".join(part for part in (table.rstrip("/"), prefix, name) if part)
    elif kind != "p":
        raise ValueError(f"storage type {kind!r}")
    offset = int(str(descriptor.get("offset") or 0))
    framed = read(path or text, offset, size + 8)
    (length,) = struct.unpack_from(">i", framed)
    return _checked(framed[4 : 4 + size], length, framed[4 + size :])


def _checked(body: bytes, length: int, checksum: bytes) -> bytes:
    """Return the body if it has its length and its CRC-32."""
    if len(body) != length or len(checksum) != 4 or int.from_bytes(checksum, "big") != zlib.crc32(body):  # noqa: PLR2004
        raise ValueError("its length or checksum is wrong")
    return body


def _z85(text: str) -> bytes:
    """Decode Z85, which is Base85 of another alphabet."""
    return base64.b85decode(text.translate(_Z85_TO_B85))


_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85_TO_B85 = str.maketrans(_Z85, _B85)
