"""Checks of an Avro file before it is decoded: everyone who may write to a table chooses its bytes.

The decoder trusts them. By a schema that holds itself it ends the process; values without a size are repeated without
an end; a compressed block may become any number of bytes.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from backports import zstd
from cramjam import snappy

MAX_BYTES = 1024 * 1024 * 1024
"""Most bytes of all blocks of a file once they are decompressed: a hundred manifests of the usual size."""

MAX_DEPTH = 32
"""Deepest nesting of a schema; a manifest's has 7 levels."""

KNOWN_SCHEMAS = 64
"""Schemas whose check is remembered: manifests of a table differ in the types of its partitions alone."""

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_MAX_VARINT_BYTES = 10
_CRC_BYTES = 4
_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class _Cursor:
    """Reads the parts of a file one after another; raises EOFError at its end."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._view = memoryview(body)
        self._end = len(body)
        self.at = 0

    @property
    def is_at_end(self) -> bool:
        return self.at >= self._end

    def varint(self) -> int:
        if self.at < self._end and (byte := self._body[self.at]) < 0x80:  # noqa: PLR2004 - the bit that says that more follow
            self.at += 1
            return byte
        found = shift = 0
        for byte in self._body[self.at : self.at + _MAX_VARINT_BYTES]:
            self.at += 1
            found |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
                return found
            shift += 7
        if self.is_at_end:
            raise EOFError(f"the file ends inside of a number, after {self.at} bytes")
        raise ValueError("a number has more than 64 bits")

    def long(self) -> int:
        """Read a number as Avro writes it, the sign last."""
        found = self.varint()
        return (found >> 1) ^ -(found & 1)

    def take(self, length: int) -> memoryview:
        begin, end = self.at, self.at + length
        if not begin <= end <= self._end:
            raise EOFError(f"{length} bytes are expected at {begin}, and the file has {self._end}")
        self.at = end
        return self._view[begin:end]

    def text(self) -> bytes:
        return bytes(self.take(self.long()))


@dataclass(frozen=True, slots=True)
class AvroFile:
    """A file that may be decoded: the text of its schema, and its blocks, decompressed, with the records in each."""

    schema: bytes
    blocks: tuple[tuple[int, bytes], ...]


def check_blocks(body: bytes) -> AvroFile:
    """Return what an Avro file consists of; raises ValueError or EOFError for one that no decoder should be given."""
    cursor = _Cursor(body)
    if cursor.take(len(_MAGIC)) != _MAGIC:
        raise ValueError("this is no Avro file")
    header = dict(_entries(cursor))
    schema = header.get(b"avro.schema", b"null")
    _check_schema(schema)
    codec = header.get(b"avro.codec", b"null").decode()
    if codec not in _CODECS:
        raise ValueError(f"its codec is {codec}; expected one of {', '.join(_CODECS)}")
    cursor.take(_SYNC_BYTES)
    left, blocks, decompressed = MAX_BYTES, [], _CODECS[codec]
    while not cursor.is_at_end:
        records, block = cursor.long(), decompressed(cursor.take(cursor.long()), left)
        left -= len(block)
        if records > len(block):
            raise ValueError(f"a block of {len(block)} bytes claims {records} records")
        blocks.append((records, block))
        cursor.take(_SYNC_BYTES)
    return AvroFile(schema, tuple(blocks))


@lru_cache(maxsize=KNOWN_SCHEMAS)
def _check_schema(schema: bytes) -> None:
    _Schema().has_size(json.loads(schema))


def _entries(cursor: _Cursor) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of the header's map, which comes in blocks; a negative count is followed by their size."""
    while count := cursor.long():
        if count < 0:
            cursor.long()
        for _ in range(abs(count)):
            yield cursor.text(), cursor.text()


@dataclass(slots=True)
class _Schema:
    """A walk through a schema; `named`: of each type with a name, whether its values have a size, None within it."""

    named: dict[str, bool | None] = field(default_factory=dict)

    def has_size(self, schema: Any, depth: int = 0) -> bool:
        """Return whether every value takes a byte or more; raises ValueError for a schema that is not decoded."""
        if depth > MAX_DEPTH:
            raise ValueError(f"its schema is nested more than {MAX_DEPTH} times")
        match schema:
            case list():
                return self._count(schema, depth) >= 0
            case str():
                return self._of_name(schema)
            case {"type": "array" | "map" as kind}:
                if not self.has_size(schema["items" if kind == "array" else "values"], depth + 1) and kind == "array":
                    raise ValueError("its schema has an array of values without a size")
                return True
            case {"type": "record" | "error", "name": str(name), "fields": list(fields)}:
                self.named[_last_part(name)] = None
                found = self._count([one["type"] for one in fields], depth) > 0
            case {"type": "fixed" | "enum" as kind, "name": str(name)}:
                found = kind == "enum" or schema["size"] > 0
            case _:
                return self.has_size(schema["type"], depth + 1)
        self.named[_last_part(name)] = found
        return found

    def _count(self, schemas: Sequence[Any], depth: int) -> int:
        """Return how many have a size; each is checked."""
        return sum([self.has_size(one, depth + 1) for one in schemas])

    def _of_name(self, name: str) -> bool:
        if name in _PRIMITIVES:
            return name != "null"
        found = self.named[_last_part(name)]
        if found is None:
            raise ValueError(f"its schema has {name} within itself")
        return found


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def _of_none(block: memoryview, left: int) -> bytes:
    _require_room(len(block), left)
    return bytes(block)


def _of_snappy(block: memoryview, left: int) -> bytes:
    """Decompress a block that begins with its size, of which the library allocates no more."""
    _require_room(_Cursor(bytes(block[:_MAX_VARINT_BYTES])).varint(), left)
    return bytes(snappy.decompress_raw(block[:-_CRC_BYTES]))


def _of_stream(start: Callable[[], Any], *, is_one: bool = False) -> Callable[[memoryview, int], bytes]:
    """Return what decompresses a block of a codec, up to one byte more than is left.

    `is_one`: what follows the first stream is ignored, as by other decoders; writers leave a part of a checksum there.
    """

    def decompressed(block: memoryview, left: int) -> bytes:
        stream, found, pending = start(), b"", bytes(block)
        while pending:
            piece = stream.decompress(pending, max(1, left + 1 - len(found)))
            found += piece
            _require_room(len(found), left)
            if is_one or not stream.eof:
                break
            pending, stream = stream.unused_data, start()
        return found

    return decompressed


def _require_room(size: int, left: int) -> None:
    if size > left:
        raise ValueError(f"it has more than {MAX_BYTES} bytes once it is decompressed")


_CODECS: Mapping[str, Callable[[memoryview, int], bytes]] = {
    "null": _of_none,
    "deflate": _of_stream(lambda: zlib.decompressobj(-zlib.MAX_WBITS), is_one=True),
    "snappy": _of_snappy,
    "zstandard": _of_stream(zstd.ZstdDecompressor),
}
"""How a block is decompressed, by the codecs that Iceberg writes."""
