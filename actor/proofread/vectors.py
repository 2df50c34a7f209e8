"""Deletion vectors of Delta, and of Iceberg's Puffin files: bytes to positions, everything checked on the way.

Their bitmaps (https://github.com/RoaringBitmap/RoaringFormatSpec) are read here, so that rows are not deleted by the
library that the writer of the outputs used.
"""

import base64
import json
import struct
import uuid
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from actor.proofread.model import CannotRead, DeleteForm, Deletes

_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_MOST_IN_ARRAY = 4096  # Containers of more values are bitmaps of 8 KiB.
_BITMAP_BYTES = 8192
_OFFSETS_FROM = 4  # Containers from which a bitmap with runs stores their offsets.


def positions_of(data: bytes, magic: bytes = b"") -> Iterator[int]:
    """Yield the values in ascending order; raises ValueError for what is no such bitmap after these bytes."""
    if not data.startswith(magic):
        raise ValueError(f"it does not begin with {magic.hex()}")
    try:
        (count,) = struct.unpack_from("<Q", data, len(magic))
        at = len(magic) + 8
        for _ in range(count):
            (high,) = struct.unpack_from("<I", data, at)
            bitmap = _Bitmap(data, at + 4)
            for low in bitmap:
                yield high << 32 | low
            at = bitmap.at
    except struct.error as cut:
        raise ValueError(f"a roaring bitmap is cut off: {cut}") from None
    if at != len(data):
        raise ValueError(f"a roaring bitmap ends at {at} of {len(data)} bytes")


class _Bitmap:
    """A bitmap of 32 bits that begins at `at`; once it was iterated, `at` is its end."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self.at = data, at

    def __iter__(self) -> Iterator[int]:
        count, runs = self._head()
        heads = self._take(f"<{2 * count}H")
        if not runs or count >= _OFFSETS_FROM:
            self.at += 4 * count
        for index in range(count):
            base, values = heads[2 * index] << 16, heads[2 * index + 1] + 1
            if runs and runs[index // 8] >> index % 8 & 1:
                (number,) = self._take("<H")
                bounds = self._take(f"<{2 * number}H")
                for start, more in zip(bounds[::2], bounds[1::2], strict=True):
                    yield from range(base + start, base + start + more + 1)
            elif values <= _MOST_IN_ARRAY:
                yield from (base + value for value in self._take(f"<{values}H"))
            else:
                bits = bin(int.from_bytes(self._take(f"{_BITMAP_BYTES}s")[0], "little"))[:1:-1]
                place = bits.find("1")
                while place >= 0:
                    yield base + place
                    place = bits.find("1", place + 1)

    def _head(self) -> tuple[int, bytes]:
        """Return the number of containers, and which of them are runs."""
        (cookie,) = self._take("<I")
        if cookie & 0xFFFF == _WITH_RUNS:
            count = (cookie >> 16) + 1
            return count, self._take(f"{(count + 7) // 8}s")[0]
        if cookie != _WITHOUT_RUNS:
            raise ValueError(f"a roaring bitmap begins with {cookie}")
        return self._take("<I")[0], b""

    def _take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(form, self._data, self.at)
        self.at += struct.calcsize(form)
        return values


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
