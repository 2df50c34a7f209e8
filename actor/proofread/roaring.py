"""Roaring bitmaps of 64 bits in their portable form, which deletion vectors of both formats hold.

Source: https://github.com/RoaringBitmap/RoaringFormatSpec. Written here, so that rows are not deleted by the library
that the writer of the outputs used.
"""

import struct
from collections.abc import Iterator
from typing import Any

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
