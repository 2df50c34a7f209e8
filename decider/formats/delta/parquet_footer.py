"""Reads what Parquet's footers and headers of pages say, which Thrift's compact protocol writes, with errors alone.

pyarrow describes the chunks of a footer, too, but ends the process where a footer contradicts itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_FOOTER_BYTES = 64 * 1024 * 1024
"""Largest footer: a minute of reading, and that of a hundred thousand chunks of columns."""

_MAX_DEPTH = 16
"""Structs and lists within each other; a footer has eight."""

_MAX_VARINT_BYTES = 10
_TAIL_BYTES = 8
_LONG_LIST = 15
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
_BYTE_ARRAY = 6


@dataclass(frozen=True, slots=True)
class Chunk:
    """One column of a row group: where its pages begin, in bytes, how long they are, and how many values they have.

    `is_bytes`: its values are of any length.
    """

    start: int
    size: int
    values: int
    codec: str
    is_bytes: bool


def chunks(data: memoryview, columns: int) -> Sequence[Sequence[Chunk]]:
    """Return the chunks of each row group in the order of the columns; raises ValueError where they are not so many."""
    length = int.from_bytes(data[-_TAIL_BYTES : -_TAIL_BYTES // 2], "little")
    if length > MAX_FOOTER_BYTES:
        raise ValueError(f"its footer has {length} bytes, and at most {MAX_FOOTER_BYTES} are read")
    footer = ThriftReader(data[:-_TAIL_BYTES], len(data) - _TAIL_BYTES - length).struct()
    try:
        found = [[_chunk(column[3]) for column in group[1]] for group in footer.get(4, ())]
    except (KeyError, TypeError, IndexError, AttributeError) as problem:
        raise ValueError(f"its footer lacks what describes a column: {problem}") from problem
    if any(len(group) != columns for group in found):
        raise ValueError(f"its row groups differ from its {columns} columns")
    return found


def _chunk(described: Mapping[int, Any]) -> Chunk:
    kind, codec, values, size, start = (described[number] for number in (1, 4, 5, 7, 9))
    dictionary = described.get(11, 0)
    if any(type(number) is not int for number in (kind, codec, values, size, start, dictionary)):
        raise TypeError("one of its numbers is none")
    return Chunk(
        start=dictionary if 0 < dictionary < start else start,
        size=size,
        values=values,
        codec=_CODECS[codec] if 0 <= codec < len(_CODECS) else "",
        is_bytes=kind == _BYTE_ARRAY,
    )


class ThriftReader:
    """Reads one value after another; raises ValueError at the end, and for what is no such value."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data = data
        self.at = at

    def take(self, length: int) -> memoryview:
        """Return the next bytes."""
        if not 0 <= self.at <= self.at + length <= len(self._data):
            raise ValueError(f"{length} bytes are expected at {self.at}, and the file has {len(self._data)}")
        self.at += length
        return self._data[self.at - length : self.at]

    def struct(self, depth: int = 0) -> Mapping[int, Any]:
        """Return fields by their numbers."""
        found: dict[int, Any] = {}
        number = 0
        while first := self.take(1)[0]:
            number = number + (first >> 4) if first >> 4 else self._number()
            kind = first & 0x0F
            found[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ValueError(f"a value at {self.at} is nested more than {_MAX_DEPTH} times")
        match kind:
            case 1 | 2 | 3:
                return self.take(1)[0]
            case 4 | 5 | 6:
                return self._number()
            case 7:
                return self.take(8)
            case 8:
                return self.take(self._varint())
            case 9 | 10:
                return self._list(depth + 1)
            case 12:
                return self.struct(depth + 1)
            case _:
                raise ValueError(f"a value at {self.at} is of the kind {kind}")

    def _list(self, depth: int) -> Sequence[Any]:
        first = self.take(1)[0]
        count = self._varint() if first >> 4 == _LONG_LIST else first >> 4
        # A value takes a byte at least: more of them than bytes end at the end.
        return [self._value(first & 0x0F, depth) for _ in range(count)]

    def _number(self) -> int:
        found = self._varint()
        return (found >> 1) ^ -(found & 1)

    def _varint(self) -> int:
        found = 0
        for place in range(_MAX_VARINT_BYTES):
            byte = self.take(1)[0]
            found |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
                return found
        raise ValueError(f"a number at {self.at} has more than 64 bits")
